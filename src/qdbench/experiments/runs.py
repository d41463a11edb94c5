"""Several runs: one after the other on all cores, or several at a time in processes of their own."""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from qdbench.algorithms.registry import find, options
from qdbench.errors import InvalidInput, QdbenchError, UnknownName
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.loading import StoredRun, load
from qdbench.experiments.loop import Snapshot, Target, Totals
from qdbench.experiments.plan import Plan, plan_from
from qdbench.experiments.session import Outcome, Settings, check_plan, execute
from qdbench.experiments.store import RunFolder
from qdbench.tasks.contract import Task, checked_workers
from qdbench.tasks.registry import make


@dataclass(frozen=True)
class Job:
    """A run to carry out: what, where, how far."""

    plan: Plan
    path: Path
    target: Target


Report = Callable[[Job, Snapshot | Outcome], None]
"""Called with every snapshot of a run, and with its outcome."""


def check_jobs(jobs: Sequence[Job], settings: Settings) -> None:
    """Refuse, before any work is done, folders that hold other runs."""
    for job in jobs:
        check_plan(job.plan, RunFolder(job.path), elsewhere=settings.elsewhere)


def recorded_job(path: Path, evaluations: int | None = None) -> Job:
    """Return the run in a folder as it was begun, with a farther target if given."""
    record = load(path).record
    target = Target(**record["target"])
    return Job(
        plan_from(record, record["name"]),
        path,
        Target(evaluations, target.seconds) if evaluations else target,
    )


def execute_all(
    jobs: Sequence[Job], settings: Settings, interrupt: Interrupt, report: Report
) -> list[Outcome]:
    """Carry out all runs; one that fails does not stop the others. Stop early when interrupted."""
    if settings.jobs > 1 and len(jobs) > 1:
        return _in_processes(jobs, settings, interrupt, report)
    outcomes = []
    for job in jobs:
        if interrupt.signal is None:
            outcome = execute(job.plan, job.path, job.target, settings, interrupt, partial(report, job))
            report(job, outcome)
        else:
            outcome = not_begun(job)
        outcomes.append(outcome)
    return outcomes


def not_begun(job: Job) -> Outcome:
    """Return the outcome of a run that an interruption left no time for."""
    return Outcome("not begun", job.path, Totals())


def _in_processes(
    jobs: Sequence[Job], settings: Settings, interrupt: Interrupt, report: Report
) -> list[Outcome]:
    """Keep as many processes busy as allowed; an interruption is passed on, and each saves its run."""
    context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    waiting = list(enumerate(jobs))
    running: dict[int, BaseProcess] = {}
    outcomes: dict[int, Outcome] = {}
    while waiting or running:
        while waiting and len(running) < settings.jobs and interrupt.signal is None:
            i, job = waiting.pop(0)
            recipe = (i, job.plan.determinants(), job.plan.name, job.path, job.target, settings, messages)
            running[i] = context.Process(target=_child, args=recipe)
            running[i].start()
        try:
            with interrupt.allowed():
                i, message = messages.get(timeout=0.2)
        except queue.Empty:
            for i in [i for i, process in running.items() if process.exitcode is not None]:
                reason = f"its process ended with exit code {running.pop(i).exitcode}"
                outcomes[i] = Outcome("failed", jobs[i].path, Totals(), reason)
                report(jobs[i], outcomes[i])
        except Interrupted:
            waiting.clear()
            for process in running.values():
                process.terminate()
            interrupt.passed_on()
        else:
            report(jobs[i], message)
            if isinstance(message, Outcome):
                outcomes[i] = message
                running.pop(i).join()
    return [outcomes.get(i) or not_begun(job) for i, job in enumerate(jobs)]


def _child(
    i: int,
    determinants: dict[str, Any],
    name: str,
    path: Path,
    target: Target,
    settings: Settings,
    messages: Any,
) -> None:
    """Carry out one run in a process of its own; what it has to say goes into the queue."""
    interrupt = Interrupt()
    with interrupt.listening():
        plan = plan_from(determinants, name)
        outcome = execute(plan, path, target, settings, interrupt, lambda s: messages.put((i, s)))
        messages.put((i, outcome))


def run(
    task: Task | str,
    algorithm: str = "map_elites",
    *,
    seed: int = 0,
    evaluations: int | None = None,
    seconds: float | None = None,
    out: str | Path = "results",
    name: str = "",
    workers: int | None = None,
    **chosen: Any,
) -> StoredRun:
    """Run an algorithm on a task, or continue such a run, and return what it left behind.

    Further keywords are the algorithm's options. `algorithm` is a name or `package.module:Class`; the
    task may be an object of your own, but only one that `qdbench.make` finds by name can be resumed
    from the command line.
    """
    if evaluations is None and seconds is None:
        raise InvalidInput("a run needs an end: give evaluations or seconds")
    found = make(task) if isinstance(task, str) else task
    defaults = {key: option.default for key, option in options(find(algorithm)).items()}
    for key in chosen:
        if key not in defaults:
            raise UnknownName("option", key, defaults, f"{algorithm} takes {', '.join(defaults) or 'none'}")
    source = task if isinstance(task, str) else task.name
    plan = Plan(
        task=found, task_source=source, algorithm=algorithm, options=defaults | chosen, seed=seed, name=name
    )
    job = Job(plan, plan.folder(Path(out)), Target(evaluations, seconds))
    interrupt = Interrupt()
    with interrupt.listening():
        settings = Settings(workers=checked_workers(workers))
        outcome = execute(plan, job.path, job.target, settings, interrupt, lambda snapshot: None)
    if outcome.status == "failed":
        raise QdbenchError(f"{plan.label} failed: {outcome.reason}")
    if outcome.status == "stopped":
        raise KeyboardInterrupt
    return load(outcome.folder)
