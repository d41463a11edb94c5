"""What every task offers, whether it has a robot or is a Python function."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.checks import Bounds, checked_column, require_equal_lengths, shown
from qdbench.errors import InvalidInput
from qdbench.policy import Parameters

Progress = Callable[[int, int], None]
"""Called from time to time during `evaluate`, with the number of evaluations done and of all."""


@dataclass(frozen=True, eq=False)
class Evaluations:
    """The results of evaluating a batch of solutions: one evaluation per row."""

    fitness: NDArray[np.float64]  #: (n,) NaN where invalid
    descriptors: NDArray[np.float64]  #: (n, dimensions) raw, never clipped; NaN where invalid
    steps: NDArray[np.int64]  #: (n,) control steps made
    valid: NDArray[np.bool_]  #: (n,) False where the simulation diverged
    terms: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """The reward terms by name, (n,) each. Costs are negative: the sum, in this order, is the fitness."""

    def __post_init__(self) -> None:
        if not isinstance(self.terms, Mapping):
            raise InvalidInput(f"terms are {shown(self.terms)}; give a dictionary of arrays")
        columns = {
            "fitness": checked_column("fitness", self.fitness, np.float64, 1),
            "descriptors": checked_column("descriptors", self.descriptors, np.float64, 2),
            "steps": checked_column("steps", self.steps, np.int64, 1),
            "valid": checked_column("valid", self.valid, np.bool_, 1),
        }
        parts = {name: checked_column(name, part, np.float64, 1) for name, part in self.terms.items()}
        require_equal_lengths("an evaluation", columns | parts)
        if (columns["steps"] < 0).any():
            raise InvalidInput(f"an evaluation made {columns['steps'].min()} steps; give 0 or more")
        for name, column in columns.items():
            object.__setattr__(self, name, column)


@runtime_checkable
class Task(Protocol):
    """What algorithms, runs and metrics need. Any object with these members is a task.

    It may also have `score_interval`, the fitness interval of the QD score, if it is not `fitness_bounds`;
    `descriptor_names`, a label for each dimension; `remark_on_max_fitness`, a sentence; and `options()`,
    which returns what a user may change, with the current values.
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
        """The possible fitness: none is outside. Algorithms know it."""

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


def score_interval(task: Task) -> tuple[float, float]:
    """Return the fixed fitness interval of the QD score: the task's `score_interval`, or what is possible."""
    low, high = getattr(task, "score_interval", None) or task.fitness_bounds
    return float(low), float(high)


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
