"""What a user's `on_iteration` is called with, to log a run while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qdbench.errors import QdbenchError
from qdbench.experiments.loop import Listener, RunProgress
from qdbench.experiments.plan import Plan

NUMBERS = (
    "iteration", "evaluations", "seconds", "steps", "invalid", "coverage", "qd_score", "max_fitness",
    "alive_coverage", "alive_qd_score",
)  # fmt: skip
"""Those columns of metrics.csv that an `Iteration` has."""


@dataclass(frozen=True)
class Iteration:
    """The numbers of one iteration of a run."""

    run: str
    """TASK/VARIANT/seed-S."""
    numbers: dict[str, float]
    """By name: iteration, evaluations, seconds, coverage, qd_score, max_fitness and others of metrics.csv."""


OnIteration = Callable[[Iteration], object]


def also_telling(on_iteration: OnIteration | None, plan: Plan, listener: Listener) -> Listener:
    """Return a listener that also tells a user's function every iteration; the same one if there is none."""
    if on_iteration is None:
        return listener
    run, tell = f"{plan.task.name}/{plan.label}", on_iteration

    def both(news: RunProgress) -> None:
        listener(news)
        if news.row is None:
            return
        numbers = {name: float(news.row[name]) for name in NUMBERS}
        try:
            tell(Iteration(run, numbers))
        except Exception as error:
            what = " ".join(str(error).split())
            raise QdbenchError(
                f"on_iteration raised {type(error).__name__}{': ' if what else ''}{what}; the run has ended "
                "after that iteration. The same call continues it"
            ) from error

    return both
