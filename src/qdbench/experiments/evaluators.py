"""Who evaluates: the loop and the corrector are given a callable, and do not know what is behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from numpy.typing import ArrayLike

from qdbench.policy import Parameters
from qdbench.tasks.contract import Evaluations, Progress, Task


class Evaluator(Protocol):
    """Evaluates solutions of one task, each once under its own seed."""

    def __call__(
        self, solutions: Parameters, seeds: ArrayLike, *, progress: Progress | None = None
    ) -> Evaluations:
        """Return what came out, in the order of the solutions."""


class Evaluators(Protocol):
    """Makes the evaluator of a task. It must survive pickling, for runs in other processes."""

    @property
    def workers(self) -> int:
        """How many episodes can be simulated at once; recorded with the run's times."""

    def __call__(self, task: Task) -> Evaluator:
        """Return the evaluator of a task."""


@dataclass(frozen=True)
class Threads:
    """Evaluate in this process, on so many threads."""

    workers: int

    def __call__(self, task: Task) -> Evaluator:
        """Return the task's own `evaluate` on these threads."""
        return partial(task.evaluate, workers=self.workers)
