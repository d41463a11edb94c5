"""Does an algorithm keep the contract? A check that anyone can run on their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields

import numpy as np

from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.algorithms.registry import build
from qdbench.algorithms.state import flatten, unflatten
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.errors import BrokenAlgorithm
from qdbench.policy import Parameters
from qdbench.seeds import numbered_seeds

ITERATIONS = 6


def check_algorithm(algorithm: str | Callable[..., Algorithm], **options: object) -> None:
    """Run an algorithm on a small noisy problem and raise BrokenAlgorithm at the first broken promise.

    `algorithm` is a class, a name, or `package.module:Class`. Checked are: shape, type and finiteness of
    what it asks for; that asking twice changes nothing; that the same seed gives the same bits and
    another seed does not; that it leaves told arrays alone, survives batches that are wholly or partly
    invalid, and keeps no invalid solution; that its collection remembers evaluations as they were told;
    and that a restored copy continues to the same bits, also between `ask` and `tell`.
    """

    def fresh(seed: int = 1) -> Algorithm:
        return build(algorithm, _problem(), seed, options)

    reference = _Trial(fresh())
    for _ in range(ITERATIONS):
        reference.iterate()
    again, other = _Trial(fresh()), _Trial(fresh(seed=2))
    for _ in range(ITERATIONS):
        again.iterate()
        other.iterate()
    _require_archive(reference.algorithm)
    _require(reference.same_as(again), "the same seed gave other solutions; take all randomness from `seed`")
    _require(not reference.same_as(other), "two seeds gave the same solutions; take randomness from `seed`")
    for asked in (False, True):
        _check_restore(fresh, reference, asked)


def _check_restore(fresh: Callable[[], Algorithm], reference: _Trial, asked: bool) -> None:
    """Save and restore half-way, between iterations or with solutions asked and not told."""
    trial = _Trial(fresh())
    for _ in range(ITERATIONS // 2):
        trial.iterate()
    if asked:
        trial.algorithm.ask()
    arrays, rest = flatten(trial.algorithm.state())
    saved = unflatten({k: v.copy() for k, v in arrays.items()}, json.loads(json.dumps(rest)))
    trial.algorithm = fresh()
    trial.algorithm.restore(saved)
    while len(trial.asked) < ITERATIONS:
        trial.iterate()
    moment = "between ask and tell" if asked else "between iterations"
    _require(reference.same_as(trial), f"restored from a state taken {moment}, it continued differently")


class _Trial:
    """An algorithm under test and all it asked for and was told."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self.asked: list[Parameters] = []
        self.told: list[Evaluated] = []

    def iterate(self) -> None:
        solutions = self.algorithm.ask()
        _check_solutions(solutions)
        solutions = solutions.copy()
        _require(
            np.array_equal(solutions, self.algorithm.ask()),
            "asked twice before tell, it returned other solutions",
        )
        told = self._evaluate(solutions)
        copy = Evaluated(**{f.name: getattr(told, f.name).copy() for f in fields(told)})
        self.asked.append(copy.solutions)
        self.told.append(copy)
        self.algorithm.tell(told)
        for field in fields(told):
            before, after = getattr(copy, field.name), getattr(told, field.name)
            _require(np.array_equal(before, after, equal_nan=True), f"tell changed the told {field.name}")
            getattr(told, field.name)[:] = 0  # the arrays are the caller's: whoever kept them finds zeros
        self._check_collection(self.algorithm.collection())

    def _evaluate(self, solutions: Parameters) -> Evaluated:
        """A noisy sphere; every solution of the first batch and some of the others are invalid."""
        n, first = len(solutions), sum(map(len, self.asked))
        seeds = numbered_seeds(0, "check", first=first, n=n)
        noise = (seeds % 1000).astype(np.float64) / 1e6
        fitness = -np.square(solutions, dtype=np.float64).sum(axis=1) + noise
        descriptors = np.clip(solutions[:, :2].astype(np.float64), -1, 1)
        invalid = np.arange(n) % 7 == 3 if self.asked else np.ones(n, bool)
        fitness[invalid] = np.nan
        descriptors[invalid] = np.nan
        numbers = np.arange(first, first + n)
        return Evaluated(solutions, fitness, descriptors, numbers[:, None], seeds[:, None])

    def _check_collection(self, collection: Evaluated) -> None:
        _require(isinstance(collection, Evaluated), "collection() must return a qdbench.Evaluated")
        _require(bool(collection.valid.all()), "its collection holds an invalid solution")
        n = len(collection)
        _require(
            all(len(getattr(collection, field.name)) == n for field in fields(collection)),
            "the arrays of its collection differ in length",
        )
        told = {name: np.concatenate([getattr(t, name) for t in self.told]) for name in _REMEMBERED}
        known = sum(map(len, self.told))
        numbers = collection.evaluations
        _require(bool(((numbers >= -1) & (numbers < known)).all()), "an evaluation number was never told")
        _require(bool((collection.samples >= 1).all()), "an elite remembers no evaluation")
        once = np.flatnonzero(collection.samples == 1)
        column = numbers[once].argmax(axis=1)
        number = numbers[once, column]
        for name in _REMEMBERED:
            kept = getattr(collection, name)[once]
            if name == "seeds":
                kept = kept[np.arange(len(once)), column][:, None]
            _require(
                np.array_equal(kept, told[name][number]),
                f"an elite's {name} differ from what its evaluation gave",
            )

    def same_as(self, other: _Trial) -> bool:
        """Return whether two trials asked for the same solutions and ended with the same collection."""
        mine, theirs = self.algorithm.collection(), other.algorithm.collection()
        return (
            len(self.asked) == len(other.asked)
            and all(map(np.array_equal, self.asked, other.asked))
            and all(np.array_equal(getattr(mine, f.name), getattr(theirs, f.name)) for f in fields(Evaluated))
        )


def _require_archive(algorithm: Algorithm) -> None:
    archive = getattr(algorithm, "archive", None)
    _require(
        archive is None or isinstance(archive, Archive),
        f"its attribute `archive` is {type(archive).__name__}; it must be a qdbench.Archive",
    )


_REMEMBERED = ("solutions", "fitness", "descriptors", "seeds")


def _problem() -> Problem:
    return Problem(
        n_parameters=6,
        descriptor_bounds=((-1.0, 1.0), (-1.0, 1.0)),
        cells=(8, 8),
        fitness_bounds=(-100.0, 1.0),
        random_solutions=lambda n, generator: generator.uniform(-1, 1, (n, 6)).astype(np.float32),
    )


def _check_solutions(solutions: Parameters) -> None:
    is_array = isinstance(solutions, np.ndarray)
    found = f"{solutions.dtype} {solutions.shape}" if is_array else type(solutions).__name__
    _require(
        is_array and solutions.dtype == np.float32 and solutions.ndim == 2 and solutions.shape[1] == 6,
        f"ask() must return a float32 array (n, parameters), here (n, 6), not {found}",
    )
    _require(len(solutions) > 0, "ask() returned no solutions")
    _require(bool(np.isfinite(solutions).all()), "ask() returned NaN or infinity")


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise BrokenAlgorithm(broken)
