"""Does an algorithm keep the contract? A check that anyone can run on their own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from traceback import extract_tb

import numpy as np

from qdbench.algorithms.contract import Algorithm, Problem, SavesState
from qdbench.algorithms.registry import build, checked_options, find, keyword_only, misplaced_options, name_of
from qdbench.algorithms.state import flatten, unflatten
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.errors import BrokenAlgorithm, QdbenchError
from qdbench.policy import Parameters
from qdbench.seeds import numbered_seeds

ITERATIONS = 24
SAVED_AFTER = (1, 9)
"""After how many iterations an algorithm that saves its state is restored."""


def check_algorithm(algorithm: str | Callable[..., Algorithm], **options: object) -> None:
    """Run an algorithm on a small noisy problem and raise BrokenAlgorithm at the first broken promise.

    `algorithm` is a class, a name, or `package.module:Class`. Checked are: shape, type and finiteness of
    what it asks for; that asking twice changes nothing; that told the same it asks for the same again, here
    and in another process with another hash seed (unless it `compiles` code, or is defined in a script or a
    notebook, which no other process can import), and that another seed gives other solutions; that it leaves
    told arrays alone, survives batches that are partly or completely invalid, and keeps no invalid solution;
    that its collection remembers evaluations as they were told, and means of several samples as such; and, if
    it saves its state, that a restored copy continues in the same way, also between `ask` and `tell`. Its
    options must be keyword-only, and none of its methods may raise anything or end the process.
    """

    name = name_of(algorithm)
    factory = find(algorithm) if isinstance(algorithm, str) else algorithm
    options = checked_options(factory, options, name)
    misplaced = misplaced_options(factory)
    _require(not misplaced, keyword_only(misplaced))

    def fresh(seed: int = 1) -> Algorithm:
        return build(algorithm, _problem(), seed, options)

    reference, again, other = _Trial(fresh()), _Trial(fresh()), _Trial(fresh(seed=2))
    for trial in (reference, again, other):
        for _ in range(ITERATIONS):
            trial.iterate()
    _require_archive(reference.algorithm)
    _require(reference.same_as(again), "the same seed gave other solutions; take all randomness from `seed`")
    _require(not reference.same_as(other), "two seeds gave the same solutions; take randomness from `seed`")
    alone = getattr(reference.algorithm, "compiles", False) or not _leads_to(name, algorithm)
    elsewhere = None if alone else _digest_elsewhere(name, options)
    _require(
        elsewhere in (None, reference.digest()),
        "in another process it asked for other solutions; does it depend on hash(), id() or the process?",
    )
    if isinstance(reference.algorithm, SavesState):
        for n in SAVED_AFTER:
            for asked in (False, True):
                _check_restore(fresh, reference, n, asked)


def _check_restore(fresh: Callable[[], Algorithm], reference: _Trial, n: int, asked: bool) -> None:
    """Save and restore after some iterations, or with solutions asked and not told."""
    trial = _Trial(fresh())
    for _ in range(n):
        trial.iterate()
    if asked:
        trial.algorithm.ask()
    assert isinstance(trial.algorithm, SavesState)
    with _blamed("state()", n):
        state = trial.algorithm.state()
    arrays, rest = flatten(state)
    saved = unflatten({k: v.copy() for k, v in arrays.items()}, json.loads(json.dumps(rest)))
    trial.algorithm = fresh()
    assert isinstance(trial.algorithm, SavesState)
    with _blamed("restore()", n):
        trial.algorithm.restore(saved)
    while len(trial.asked) < ITERATIONS:
        trial.iterate()
    moment = "between ask and tell" if asked else "between iterations"
    _require(reference.same_as(trial), f"restored from a state taken {moment}, it continued differently")


def _leads_to(name: str, algorithm: str | Callable[..., Algorithm]) -> bool:
    """Return whether another process finds the same algorithm by its name."""
    if name.startswith("__main__:"):
        return False
    try:
        return isinstance(algorithm, str) or find(name) is algorithm
    except QdbenchError:  # defined in a function
        return False


def _digest_elsewhere(name: str, options: dict[str, object]) -> str | None:
    """Return the digest of a trial in another process with another hash seed; None if it cannot be told."""
    program = (
        "import json, sys; from qdbench.algorithms.conformance import digest_of_trial; "
        "sys.path[:0] = json.loads(sys.argv[3]); print(digest_of_trial(sys.argv[1], json.loads(sys.argv[2])))"
    )
    try:
        arguments = [name, json.dumps(options), json.dumps(sys.path)]
    except TypeError:
        return None  # options that only this process has
    other = "12345" if os.environ.get("PYTHONHASHSEED") != "12345" else "54321"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONHASHSEED": other},
        capture_output=True,
        text=True,
    )
    last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
    _require(done.returncode == 0, f"in another process it failed: {last}")
    return done.stdout.split()[-1]


def digest_of_trial(name: str, options: dict[str, object]) -> str:
    """Return a digest of all that an algorithm asks for in a trial."""
    trial = _Trial(build(name, _problem(), 1, options))
    for _ in range(ITERATIONS):
        trial.iterate()
    return trial.digest()


class _Trial:
    """An algorithm under test and all it asked for and was told."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self.asked: list[Parameters] = []
        self.told: list[Evaluated] = []

    def iterate(self) -> None:
        iteration = len(self.asked) + 1
        with _blamed("ask()", iteration):
            solutions = self.algorithm.ask()
        _check_solutions(solutions)
        solutions = solutions.copy()
        with _blamed("ask(), asked again,", iteration):
            again = self.algorithm.ask()
        _require(np.array_equal(solutions, again), "asked twice before tell, it returned other solutions")
        told = self._evaluate(solutions)
        copy = Evaluated(**{f.name: getattr(told, f.name).copy() for f in fields(told)})
        self.asked.append(copy.solutions)
        self.told.append(copy)
        with _blamed("tell()", iteration):
            self.algorithm.tell(told)
        for field in fields(told):
            before, after = getattr(copy, field.name), getattr(told, field.name)
            _require(np.array_equal(before, after, equal_nan=True), f"tell changed the told {field.name}")
            getattr(told, field.name)[:] = 0  # the arrays are the caller's: whoever kept them finds zeros
        self._check_collection(self._collection())

    def _collection(self) -> Evaluated:
        with _blamed("collection()", len(self.asked)):
            return self.algorithm.collection()

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
        self._check_means(collection)
        once = np.flatnonzero(collection.samples == 1)
        column = numbers[once].argmax(axis=1)
        number = numbers[once, column]
        for name in _REMEMBERED:
            kept = getattr(collection, name)[once]
            if name == "seeds":
                kept = kept[np.arange(len(once)), column][:, None]
            differ = "differs" if name == "fitness" else "differ"
            _require(
                np.array_equal(kept, told[name][number]),
                f"an elite's {name} {differ} from what its evaluation gave",
            )

    def _check_means(self, collection: Evaluated) -> None:
        """An elite of several samples has their mean fitness and descriptor."""
        several = np.flatnonzero(collection.samples > 1).tolist()
        told = {name: np.concatenate([getattr(t, name) for t in self.told]) for name in _REMEMBERED}
        for row in several:
            given = collection.evaluations[row] >= 0
            numbers = collection.evaluations[row][given]
            for name in ("fitness", "descriptors"):
                mean = told[name][numbers].mean(axis=0)
                _require(
                    np.allclose(getattr(collection, name)[row], mean, rtol=1e-9, atol=1e-12),
                    f"the {name} of an elite of several samples is not their mean",
                )
            _require(
                bool((told["solutions"][numbers] == collection.solutions[row]).all()),
                "an elite of several samples is not the solution that was sampled",
            )
            _require(
                np.array_equal(told["seeds"][numbers, 0], collection.seeds[row][given]),
                "an elite's seeds differ from those of its evaluations",
            )

    def digest(self) -> str:
        """Return a digest of all it asked for, and of what it hands over in the end."""
        collection = self._collection()
        arrays = [*self.asked, *(getattr(collection, field.name) for field in fields(Evaluated))]
        return hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)).hexdigest()

    def same_as(self, other: _Trial) -> bool:
        """Return whether two trials asked for the same solutions and ended with the same collection."""
        mine, theirs = self._collection(), other._collection()
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


@contextmanager
def _blamed(what: str, iteration: int) -> Iterator[None]:
    """Turn what an algorithm's method raises into a broken promise; the end of the process, too."""
    try:
        yield
    except (QdbenchError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raised = ": ".join(filter(None, [type(error).__name__, " ".join(str(error).split())]))
        raise BrokenAlgorithm(f"{what} raised {raised}, in iteration {iteration}, {_place(error)}") from error


def _place(error: BaseException) -> str:
    """Return where it was raised: the innermost line of the user's file, not of the libraries it calls."""
    frames = extract_tb(error.__traceback__)
    ours = Path(__file__).parents[1]
    outside = [frame for frame in frames if not Path(frame.filename).is_relative_to(ours)] or frames[-1:]
    last = [frame for frame in outside if frame.filename == outside[0].filename][-1]
    here = Path(last.filename)
    shown = here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here
    return f"at {shown}:{last.lineno}"


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise BrokenAlgorithm(broken)
