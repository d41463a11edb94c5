"""Runs to carry out: checked before any work is done, from Python or the command line."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qdbench.algorithms.registry import Factory
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.loop import RunProgress
from qdbench.experiments.one_run import Job, Settings, check_job, execute
from qdbench.experiments.plan import plan_for, plan_from
from qdbench.store.loading import StoredRun, load
from qdbench.store.record import CorrectionPlan, Target
from qdbench.tasks.contract import Task, checked_workers
from qdbench.tasks.registry import make


def check_jobs(jobs: Sequence[Job], settings: Settings) -> None:
    """Refuse, before any work is done, options that an algorithm rejects and folders with other runs."""
    for plan in {(job.plan.algorithm, repr(job.plan.options)): job.plan for job in jobs}.values():
        plan.small()
    for job in jobs:
        check_job(job, elsewhere=settings.elsewhere)


def recorded_job(path: Path, target: Target | None = None, corrections: CorrectionPlan | None = None) -> Job:
    """Return the run in a folder as it was begun, with another target or corrections if given."""
    record = load(path).record
    plan, as_begun = plan_from(record.determinants, record.name), record.target.corrections
    chosen = replace(target or record.target, corrections=corrections or as_begun)
    return Job(plan, path, chosen)


def target_of(
    evaluations: int | None, seconds: float | None, corrections: int = 0, reevaluations: int = 50
) -> Target:
    """Return when a run ends and what is corrected, or say what is missing."""
    if evaluations is None and seconds is None:
        raise InvalidInput("a run needs an end: give evaluations or seconds")
    if corrections and evaluations is None:
        raise InvalidInput("corrections are evenly spaced in evaluations: give evaluations too")
    return Target(evaluations, seconds, CorrectionPlan(corrections, reevaluations))


def run(
    task: Task | str,
    algorithm: str | Factory = "map_elites",
    *,
    seed: int = 0,
    evaluations: int | None = None,
    seconds: float | None = None,
    corrections: int = 0,
    reevaluations: int = 50,
    out: str | Path = "results",
    name: str = "",
    workers: int | None = None,
    elsewhere: bool = False,
    **chosen: Any,
) -> StoredRun:
    """Run an algorithm on a task, or continue such a run, and return what it left behind.

    Further keywords are the algorithm's options. `algorithm` is a name, `package.module:Class` or a class.
    The task may be an object of your own, but only a task that `qdbench.make` finds by name, and an
    algorithm that can be imported, can be resumed from the command line. `corrections` and `reevaluations`
    re-evaluate all elites at so many points, so often. Ctrl-C and SIGTERM take effect when the last whole
    iteration has been saved.
    """
    target = target_of(evaluations, seconds, corrections, reevaluations)
    found = make(task) if isinstance(task, str) else task
    source = task if isinstance(task, str) else task.name
    plan = plan_for(found, source, algorithm, chosen, seed=seed, name=name)
    job = Job(plan, plan.folder(Path(out)), target)
    interrupt = Interrupt()
    with interrupt.listening():
        settings = Settings(evaluators=Threads(checked_workers(workers)), elsewhere=elsewhere)
        outcome = execute(job, settings, interrupt, _silent)
    if outcome.status == "failed":
        raise QdbenchError(f"{plan.label} failed: {outcome.reason}") from outcome.error
    if interrupt.signal is not None:  # all is saved: now it does what it would have done
        signal.raise_signal(interrupt.signal)
    return load(outcome.folder)


def _silent(news: RunProgress) -> None:
    """Show nothing."""
