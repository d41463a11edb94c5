"""Who evaluates: the loop and the corrector are given a callable, and do not know what is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from numpy.typing import ArrayLike

from qdbench.checks import checked_workers
from qdbench.experiments.interrupt import Interrupt
from qdbench.policy import Parameters
from qdbench.store.record import NodeRecord
from qdbench.tasks.contract import Evaluations, Progress, Task


class Evaluator(Protocol):
    """Evaluates solutions of one task, each once under its own seed."""

    def __call__(
        self, solutions: Parameters, seeds: ArrayLike, *, progress: Progress | None = None
    ) -> Evaluations:
        """Return what came out, in the order of the solutions."""


class Evaluators(Protocol):
    """Makes the evaluator of a task. It must survive pickling, for runs in other processes.

    It may also have `nodes`, the machines that evaluate now, as run.json records them.
    """

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


def nodes_of(evaluators: Evaluators) -> tuple[NodeRecord, ...]:
    """Return the machines of a cluster that evaluate now; none if it is this one alone."""
    return tuple(getattr(evaluators, "nodes", ()))


def interruptible(evaluate: Evaluator, interrupt: Interrupt) -> AbstractContextManager[None]:
    """Return a context in which an interruption stops an evaluation.

    One on a cluster has `asks`: a signal must not be raised in the middle of Ray's code. It calls `progress`
    often enough, which asks whether there was one.
    """
    return nullcontext() if getattr(evaluate, "asks", False) else interrupt.allowed()


def where_of(evaluate: Evaluator) -> str:
    """Return on which machines of a cluster is evaluated, for a progress display; else nothing."""
    return str(getattr(evaluate, "where", ""))


@contextmanager
def evaluators_on(
    on: str | None, *, workers: int | None = None, elsewhere: bool = False
) -> Iterator[Evaluators]:
    """Yield what evaluates: threads of this machine, or all nodes of a cluster (`on`).

    Modules of the user must have been imported before: their code goes to the nodes.
    """
    n = None if workers is None else checked_workers(workers)
    if on is None:
        yield Threads(checked_workers(n))
        return
    from qdbench.experiments.cluster.connection import connected

    with connected(on, cpus=n, elsewhere=elsewhere) as cluster:
        from qdbench.experiments.cluster.batches import OnNodes

        spread = OnNodes(cluster, n)
        try:
            yield spread
        finally:
            spread.dismiss()
