"""Runs to carry out: checked before any work is done, from Python or the command line."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qdbench.algorithms.registry import Factory
from qdbench.checks import checked_flag, checked_function, checked_path, shown
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.evaluators import Evaluators, evaluators_on
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.iterations import OnIteration, also_telling
from qdbench.experiments.job import ELSEWHERE, Job, Settings, StartedElsewhere, check_job
from qdbench.experiments.loop import RunProgress
from qdbench.experiments.one_run import execute
from qdbench.experiments.places import require_places
from qdbench.experiments.plan import plan_for, plan_from
from qdbench.store.loading import StoredRun, load
from qdbench.store.locks import in_use
from qdbench.store.record import CorrectionPlan, Target
from qdbench.tasks.contract import Task
from qdbench.tasks.registry import make


def check_jobs(jobs: Sequence[Job], settings: Settings) -> None:
    """Refuse, before any work is done, options that an algorithm rejects and folders that cannot be used."""
    plans = [job.plan for job in jobs]
    for plan in {(plan.task.name, plan.algorithm, repr(plan.options)): plan for plan in plans}.values():
        plan.check()
    for job in jobs:
        try:
            check_job(job, settings)
        except StartedElsewhere:
            if not in_use(job.path):  # else another process sees to it
                raise
    require_places(jobs)


def recorded_job(
    path: Path,
    target: Target | None = None,
    corrections: CorrectionPlan | None = None,
    *,
    trust: bool = False,
) -> Job:
    """Return the run in a folder as it was begun, with another target or corrections if given."""
    record = load(path).record
    plan = plan_from(record.determinants, record.name, trust=trust)
    as_begun = record.target.corrections
    chosen = replace(target or record.target, corrections=corrections or as_begun)
    return Job(plan, path, chosen)


def target_of(
    evaluations: int | None, seconds: float | None, corrections: int = 0, reevaluations: int = 50
) -> Target:
    """Return when a run ends and what is corrected, or say what is missing."""
    if evaluations is None and seconds is None:
        raise InvalidInput("a run needs an end: give evaluations (--evaluations N) or seconds (--seconds X)")
    plan = CorrectionPlan(corrections, reevaluations)
    if plan.points and evaluations is None:
        raise InvalidInput(
            "corrections are evenly spaced in evaluations: give evaluations (--evaluations N) too"
        )
    return Target(evaluations, seconds, plan)


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
    evaluators: Evaluators | None = None,
    on: str | None = None,
    elsewhere: bool = False,
    changed_code: bool = False,
    on_iteration: OnIteration | None = None,
    **chosen: Any,
) -> StoredRun:
    """Run an algorithm on a task, or continue such a run, and return the stored run.

    Further keywords are the algorithm's options. `algorithm` is a name, `package.module:Class` or a class.
    The task may be an object of your own. The command line can only resume a run whose task `qdbench.make`
    finds by name, and whose algorithm can be imported.

    `workers` is the number of threads. `on="ray"` evaluates on all nodes of a cluster: that in RAY_ADDRESS,
    else one on this machine; "ray://HOST:PORT" names one. `evaluators` makes something else that evaluates
    (see `qdbench.experiments.evaluators`). `corrections` is the number of correction points, `reevaluations`
    the number per elite. `elsewhere` resumes a run from another CPU or with other versions, `changed_code`
    one whose algorithm was edited. `on_iteration` is called after every iteration, with its numbers: to log
    them, for example. Ctrl-C and SIGTERM take effect when the last completed iteration has been
    saved.
    """
    target = target_of(evaluations, seconds, corrections, reevaluations)
    folder = checked_path("out", out)
    elsewhere, changed_code = checked_flag("elsewhere", elsewhere), checked_flag("changed_code", changed_code)
    if on_iteration is not None:
        checked_function("on_iteration", on_iteration)
    found = made(task)
    source = task if isinstance(task, str) else found.name
    plan = plan_for(found, source, algorithm, chosen, seed=seed, name=name)
    job = Job(plan, plan.folder(folder), target)
    plan.check()
    require_places([job])
    interrupt = Interrupt()
    with evaluators_on(on, workers=workers, elsewhere=elsewhere) as usual, interrupt.listening():
        settings = Settings(evaluators=evaluators or usual, elsewhere=elsewhere, changed_code=changed_code)
        outcome = execute(job, settings, interrupt, also_telling(on_iteration, plan, _silent))
    if outcome.status in ("failed", ELSEWHERE):
        raise QdbenchError(f"{plan.label} failed: {outcome.reason}") from outcome.error
    if interrupt.signal is not None:  # all is saved: now it does what it would have done
        signal.raise_signal(interrupt.signal)
    return load(outcome.folder)


def made(task: Task | str) -> Task:
    """Return a task by its name, or as it is."""
    if isinstance(task, str):
        return make(task)
    if not isinstance(task, Task):
        raise InvalidInput(
            f"the task is {shown(task)}; give a name, module:attribute, or an object with the members of "
            "qdbench.Task"
        )
    return task


def _silent(news: RunProgress) -> None:
    """Show nothing."""
