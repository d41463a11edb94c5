"""Several runs: one after the other on all cores, or several at a time in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from qdbench.algorithms.registry import find, options
from qdbench.errors import InvalidInput, QdbenchError, UnknownName
from qdbench.experiments.interrupt import Interrupt, signals_held_back, signals_let_through
from qdbench.experiments.loading import StoredRun, load
from qdbench.experiments.loop import Corrections, Snapshot, Target, Totals
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
    """Refuse, before any work is done, options that an algorithm rejects and folders with other runs."""
    for plan in {(job.plan.algorithm, repr(job.plan.options)): job.plan for job in jobs}.values():
        plan.try_out()
    for job in jobs:
        check_plan(job.plan, RunFolder(job.path), job.target, elsewhere=settings.elsewhere)


def recorded_job(path: Path, target: Target | None = None, corrections: Corrections | None = None) -> Job:
    """Return the run in a folder as it was begun, with another target or corrections if given."""
    record = load(path).record
    chosen = target or Target(**record["target"])
    as_begun = Corrections(**record.get("corrections", {}))
    return Job(plan_from(record, record["name"]), path, replace(chosen, corrections=corrections or as_begun))


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
    waiting = list(enumerate(jobs))
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    outcomes: dict[int, Outcome] = {}
    told = False
    while running or (waiting and interrupt.signal is None):
        while waiting and len(running) < settings.jobs and interrupt.signal is None:
            i, job = waiting.pop(0)
            connection, process = _start(job, settings)
            running[connection] = i, process
        if interrupt.signal is not None and not told:
            told = True
            for _, process in running.values():
                process.terminate()
        ready = set(wait(list(running), timeout=0.2))
        for connection in [connection for connection in running if connection in ready]:
            i, process = running[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):  # it ended without a word
                process.join()
                message = _died(jobs[i], process.exitcode, interrupt)
            report(jobs[i], message)
            if isinstance(message, Outcome):
                outcomes[i] = message
                del running[connection]
                process.join()
                connection.close()
    return [outcomes.get(i) or not_begun(job) for i, job in enumerate(jobs)]


def _start(job: Job, settings: Settings) -> tuple[Connection, BaseProcess]:
    """Start a process for one run; signals wait until it can handle them."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    recipe = (job.plan.determinants(), job.plan.name, job.path, job.target, settings, sender)
    process = context.Process(target=_child, args=recipe)
    with signals_held_back():
        process.start()
    sender.close()  # ours: the child's is now the only one, so that its end is noticed
    return receiver, process


def _died(job: Job, exit_code: int | None, interrupt: Interrupt) -> Outcome:
    if interrupt.signal is not None:
        return not_begun(job)
    return Outcome("failed", job.path, Totals(), f"its process ended with exit code {exit_code}")


def _child(
    determinants: dict[str, Any],
    name: str,
    path: Path,
    target: Target,
    settings: Settings,
    sender: Connection,
) -> None:
    """Carry out one run in a process of its own, and stop like on a signal when the parent is gone."""
    interrupt = Interrupt()
    with interrupt.listening():
        signals_let_through()
        parent = multiprocessing.parent_process()
        if parent is not None:
            threading.Thread(target=_outlive, args=(parent,), daemon=True).start()

        def listener(snapshot: Snapshot) -> None:
            with suppress(OSError):  # nobody listens any more
                sender.send(snapshot)

        outcome = execute(plan_from(determinants, name), path, target, settings, interrupt, listener)
        with suppress(OSError):
            sender.send(replace(outcome, error=None))  # whatever a user raised may not travel


def _outlive(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


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
    elsewhere: bool = False,
    **chosen: Any,
) -> StoredRun:
    """Run an algorithm on a task, or continue such a run, and return what it left behind.

    Further keywords are the algorithm's options. `algorithm` is a name or `package.module:Class`; the
    task may be an object of your own, but only one that `qdbench.make` finds by name can be resumed
    from the command line. Ctrl-C and SIGTERM take effect when the last whole iteration has been saved.
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
        settings = Settings(workers=checked_workers(workers), elsewhere=elsewhere)
        outcome = execute(plan, job.path, job.target, settings, interrupt, lambda snapshot: None)
    if outcome.status == "failed":
        raise QdbenchError(f"{plan.label} failed: {outcome.reason}") from outcome.error
    if interrupt.signal is not None:  # all is saved: now it does what it would have done
        signal.raise_signal(interrupt.signal)
    return load(outcome.folder)
