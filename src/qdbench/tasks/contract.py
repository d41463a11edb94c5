"""What every task offers, whether it has a robot or is a Python function."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.errors import InvalidInput, UnknownName
from qdbench.policy import Parameters
from qdbench.seeds import Seeds

Progress = Callable[[int, int], None]
"""Called from time to time during `evaluate`, with the number of evaluations done and of all."""

Bounds = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Evaluations:
    """The results of evaluating a batch of solutions: one evaluation per row."""

    fitness: NDArray[np.float64]  #: (n,) NaN where invalid
    descriptors: NDArray[np.float64]  #: (n, dimensions) raw, never clipped; NaN where invalid
    steps: NDArray[np.int64]  #: (n,) control steps made
    valid: NDArray[np.bool_]  #: (n,) False where the simulation diverged
    terms: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """The reward terms by name, (n,) each. Costs are negative: the sum, in this order, is the fitness."""


@runtime_checkable
class Task(Protocol):
    """What algorithms, runs and metrics need. Any object with these members is a task.

    It may also have `descriptor_names`, a label for each dimension; `remark_on_max_fitness`, a sentence; and
    `options()`, which returns what a user may change, with the current values.
    """

    @property
    def name(self) -> str:
        """The name of the task."""

    @property
    def version(self) -> int:
        """Raised when results are no longer comparable with earlier ones."""

    @property
    def n_parameters(self) -> int:
        """The length of a solution."""

    @property
    def descriptor_bounds(self) -> Bounds:
        """The range of descriptors that the cells cover, (low, high) for every dimension."""

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of the task's grid along every dimension."""

    @property
    def fitness_bounds(self) -> tuple[float, float]:
        """The fixed interval of the QD score. No fitness is outside."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines results. Equal fingerprints mean comparable results."""

    def random_solutions(self, n: int, generator: np.random.Generator) -> Parameters:
        """Return `n` random solutions, the usual start of an algorithm."""

    def evaluate(
        self,
        solutions: Parameters,
        seeds: ArrayLike,
        *,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Evaluations:
        """Evaluate each solution once, with its own seed."""


# Optional members of a task


def descriptor_names(task: Task) -> tuple[str, ...]:
    """Return a label for each descriptor dimension: the task's `descriptor_names`, or numbers."""
    names = getattr(task, "descriptor_names", ())
    return tuple(names) or tuple(f"descriptor {i + 1}" for i in range(len(task.cells)))


def counts_steps(task: Task) -> bool:
    """Return whether the descriptor is a share of an episode's steps."""
    return bool(getattr(task, "counts_steps", False))


def remark_on_max_fitness(task: Task) -> str:
    """Return a remark to show with max fitness if it can be misread; empty if there is none."""
    return str(getattr(task, "remark_on_max_fitness", ""))


def task_options(task: Task) -> dict[str, Any]:
    """Return what a user may change, with the current values: the task's `options()`, or nothing."""
    options = getattr(task, "options", dict)
    return dict(options())


def fingerprint(facts: Mapping[str, Any]) -> str:
    """Return a hash of everything that determines a task's results."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def checked_solutions(task: str, solutions: Parameters, n_parameters: int) -> Parameters:
    """Return the solutions; raise InvalidInput if they are wrong."""
    if not isinstance(solutions, np.ndarray) or solutions.dtype != np.float32:
        found = solutions.dtype if isinstance(solutions, np.ndarray) else type(solutions).__name__
        raise InvalidInput(f"solutions must be a float32 NumPy array, not {found}; use .astype(np.float32)")
    if solutions.ndim != 2 or solutions.shape[1] != n_parameters:
        raise InvalidInput(
            f"solutions have shape {solutions.shape}; {task} takes (n, {n_parameters}), one row per solution"
        )
    for start in range(0, len(solutions), 256):  # in chunks, because the mask of a large batch is large, too
        bad = ~np.isfinite(solutions[start : start + 256]).all(axis=1)
        if bad.any():
            row = start + int(bad.argmax())
            raise InvalidInput(f"solution {row} has NaN or infinity; every parameter must be finite")
    return solutions


def checked_seeds(seeds: ArrayLike, n: int) -> Seeds:
    """Return the seeds as an array; raise InvalidInput if they are wrong."""
    array = seeds if isinstance(seeds, np.ndarray) else np.array(seeds, object)
    if array.shape != (n,):
        raise InvalidInput(
            f"seeds have shape {array.shape} for {n} solutions; give one seed per solution, shape ({n},)"
        )
    if array.dtype == object:  # Python integers: NumPy would turn large ones into floats
        integers = all(isinstance(seed, int | np.integer) and not isinstance(seed, bool) for seed in array)
    else:
        integers = array.dtype.kind in "iu"
    if not integers:
        raise InvalidInput(
            f"seeds are not all integers: {array.tolist()[:5]}; give integers from 0 to 2**64 - 1"
        )
    if n and not 0 <= int(array.min()) <= int(array.max()) < 2**64:
        raise InvalidInput(
            f"seeds reach from {array.min()} to {array.max()}; give integers from 0 to 2**64 - 1"
        )
    return array.astype(np.uint64)


def checked_workers(workers: int | None) -> int:
    """Return the number of worker threads; by default, the cores of this process."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return checked_count("workers", workers)


def checked_count(name: str, value: int) -> int:
    """Return a whole number of at least 1; raise InvalidInput for others."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**31:
        raise InvalidInput(f"{name} is {value!r}; give a whole number from 1 to 2**31 - 1")
    return int(value)


def checked_number(name: str, value: float, low: float = -math.inf) -> float:
    """Return a finite number of at least `low` as a float; raise InvalidInput for others."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value < math.inf or value == -math.inf:
        at_least = "" if low == -math.inf else f" of {low:g} or more"
        raise InvalidInput(f"{name} is {value!r}; give a finite number{at_least}")
    return float(value)


def checked_interval(name: str, value: Sequence[float], *, finite: bool = True) -> tuple[float, float]:
    """Return (low, high) as floats; raise InvalidInput if they are not ascending."""
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: {value!r} is not an interval; give (low, high)") from None
    if not low < high or (finite and not -math.inf < low < high < math.inf):
        raise InvalidInput(f"{name}: ({low}, {high}) must be {'finite and ' if finite else ''}ascending")
    return low, high


def checked_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise UnknownName if a word is not one of the choices."""
    if value not in choices:
        raise UnknownName(name, str(value), choices, f"use {' or '.join(map(repr, choices))}")


def checked_geometry(
    bounds: Sequence[Sequence[float]], cells: Sequence[int]
) -> tuple[Bounds, tuple[int, ...]]:
    """Return descriptor bounds and cells as tuples; raise InvalidInput if they are wrong."""
    if isinstance(bounds, str) or not np.iterable(bounds):
        raise InvalidInput(f"descriptor_bounds are {bounds!r}; give (low, high) for every dimension")
    box = tuple(checked_interval("descriptor_bounds", interval) for interval in bounds)
    if isinstance(cells, str) or not np.iterable(cells):
        raise InvalidInput(f"cells is {cells!r}; give one number for every dimension, like (30, 30)")
    counts = tuple(checked_count("cells", n) for n in cells)
    if len(counts) != len(box) or not counts:
        raise InvalidInput(
            f"cells {counts} are for {len(counts)} dimensions, descriptor_bounds for {len(box)}; give "
            "the same number"
        )
    return box, counts
