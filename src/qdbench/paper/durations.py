"""How long runs will take: the speed of this machine, measured just before, and the steps of known runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import fsum

from qdbench.analysis.aggregate import ONE
from qdbench.checks import checked_workers
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.job import Job, Settings, is_done
from qdbench.paper.suite_scales import SuiteScale
from qdbench.seeds import stream
from qdbench.store.folder import RunFolder
from qdbench.store.reference_file import Reference
from qdbench.tasks.contract import Task

PROBE = 128
"""Random policies per worker whose episodes are timed, again and again for at least `PROBE_SECONDS`."""
PROBE_SECONDS = 0.5


def measured_here(settings: Settings) -> tuple[int, float]:
    """Return on how many threads of this machine the speed is measured, and how many times as many work.

    The nodes of a cluster are taken as fast as this machine.
    """
    workers = settings.evaluators.workers * settings.jobs
    cluster = settings.launcher is not None or not isinstance(settings.evaluators, Threads)
    here = min(workers, checked_workers(None)) if cluster else workers
    return here, workers / here


def expected_seconds(
    scale: SuiteScale, jobs: Sequence[Job], settings: Settings, references: Sequence[Reference] = ()
) -> dict[str, float]:
    """Return how long the runs of every task will take; a task whose runs are finished takes no time."""
    here, times = measured_here(settings)
    left: dict[str, float] = {}
    tasks: dict[str, Task] = {}
    for job in jobs:
        name = job.plan.task.name
        left[name] = left.get(name, 0.0) + _share_left(job)
        tasks[name] = job.plan.task
    return {
        name: runs * expected_steps(scale, name, references) / times / steps_per_second(tasks[name], here)
        if runs
        else 0.0
        for name, runs in left.items()
    }


def _share_left(job: Job) -> float:
    record = RunFolder(job.path).read_record()
    if record is None or job.target.evaluations is None:
        return 1.0
    if record.status == "finished" and is_done(record, job):
        return 0.0
    return max(0.0, 1 - record.totals.evaluations / job.target.evaluations)


def expected_steps(scale: SuiteScale, task: str, references: Sequence[Reference] = ()) -> float:
    """Return the control steps of a run with its re-evaluations: those of MAP-Elites, if they are known.

    If not, episodes are taken as full-length, and re-evaluations as many as evaluations.
    """
    for one in references:
        if (one.scale.name, one.task.name, one.variant) == (scale.name, task, ONE):
            return fsum(run.totals.steps + run.reevaluation_steps for run in one.runs) / len(one.runs)
    size = scale.tasks[task]
    return scale.steps.get(task, 2.0 * size.evaluations * size.episode_length)


def steps_per_second(task: Task, workers: int) -> float:
    """Measure how many control steps of random policies are simulated in a second."""
    n, steps = PROBE * workers, 0
    solutions = task.random_solutions(n, stream(0, "probe"))
    task.evaluate(solutions[:workers], range(workers), workers=workers)  # the first call sets things up
    start = time.perf_counter()
    while (seconds := time.perf_counter() - start) < PROBE_SECONDS:
        steps += int(task.evaluate(solutions, range(n), workers=workers).steps.sum())
    return steps / seconds


def in_words(seconds: float) -> str:
    """Return a duration as a reader would say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.{1 if seconds < 600 else 0}f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 36 * 3600 else f"{seconds / 86400:,.0f} days"
