"""Many runs: one after the other in this process, or several at a time in processes of their own."""

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
from typing import Protocol

from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.interrupt import Interrupt, signals_held_back, signals_let_through
from qdbench.experiments.job import ELSEWHERE, Job, Outcome, Settings, check_job, is_done
from qdbench.experiments.loop import RunProgress
from qdbench.experiments.one_run import execute
from qdbench.experiments.plan import plan_from
from qdbench.store.plain import differences
from qdbench.store.record import Determinants, Target, Totals

JobListener = Callable[[Job, RunProgress | Outcome], None]
"""Called with the progress of every run, and with its outcome."""


@dataclass(frozen=True)
class Recipe:
    """A job as it travels to another process, which makes its plan again."""

    determinants: Determinants
    name: str
    path: Path
    target: Target

    @classmethod
    def of(cls, job: Job) -> Recipe:
        """Return the recipe of a job."""
        return cls(job.plan.determinants(), job.plan.name, job.path, job.target)

    def job(self) -> Job:
        """Return the job again; its task and algorithm must be what they were."""
        plan = plan_from(self.determinants, self.name, trust=True)  # the parent has it from its user
        others = differences(self.determinants, plan.determinants())
        if others:
            raise InvalidInput(f"the task or the algorithm is another one here ({'; '.join(others)})")
        return Job(plan, self.path, self.target)


class Launcher(Protocol):
    """Carries out all runs; one that fails does not stop the others. It stops early when interrupted."""

    def __call__(
        self, jobs: Sequence[Job], settings: Settings, interrupt: Interrupt, listener: JobListener
    ) -> list[Outcome]:
        """Return the outcomes in the order of the jobs."""


def launcher_for(settings: Settings) -> Launcher:
    """Return what carries out as many runs at a time as the settings say."""
    if settings.launcher is not None:
        return settings.launcher
    return in_this_process if settings.jobs == 1 else InProcesses(settings.jobs)


def in_this_process(
    jobs: Sequence[Job], settings: Settings, interrupt: Interrupt, listener: JobListener
) -> list[Outcome]:
    """Carry out one run after the other."""
    outcomes = []
    for job in jobs:
        if interrupt.signal is None:
            outcome = execute(job, settings, interrupt, partial(listener, job))
            listener(job, outcome)
        else:
            outcome = not_begun(job)
        outcomes.append(outcome)
    return settled(jobs, outcomes, settings)


def settled(jobs: Sequence[Job], outcomes: Sequence[Outcome], settings: Settings) -> list[Outcome]:
    """Return the outcomes, now that all is done: what another process was making may be finished, too."""
    return [
        _looked_at_again(job, outcome, settings) if outcome.status == ELSEWHERE else outcome
        for job, outcome in zip(jobs, outcomes, strict=True)
    ]


def _looked_at_again(job: Job, outcome: Outcome, settings: Settings) -> Outcome:
    with suppress(QdbenchError, OSError):  # then it is as it was
        record = check_job(job, settings)
        if record is not None and is_done(record, job):
            return Outcome("skipped", job.path, record.totals)
    return outcome


def not_begun(job: Job) -> Outcome:
    """Return the outcome of a run that an interruption left no time for."""
    return Outcome("not begun", job.path, Totals())


@dataclass(frozen=True)
class InProcesses:
    """Keep so many processes busy; an interruption is passed on, and each saves its run."""

    n: int

    def __call__(
        self, jobs: Sequence[Job], settings: Settings, interrupt: Interrupt, listener: JobListener
    ) -> list[Outcome]:
        """Carry out all runs, `n` at a time."""
        waiting = list(enumerate(jobs))
        running: dict[Connection, tuple[int, BaseProcess]] = {}
        outcomes: dict[int, Outcome] = {}
        told = False
        while running or (waiting and interrupt.signal is None):
            while waiting and len(running) < self.n and interrupt.signal is None:
                i, job = waiting.pop(0)
                connection, process = start(Recipe.of(job), settings)
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
                except (EOFError, OSError):  # it ended without a message
                    process.join()
                    message = not_begun(jobs[i]) if interrupt.signal else died(jobs[i].path, process.exitcode)
                listener(jobs[i], message)
                if isinstance(message, Outcome):
                    outcomes[i] = message
                    del running[connection]
                    process.join()
                    connection.close()
        ends = [outcomes.get(i) or not_begun(job) for i, job in enumerate(jobs)]
        return settled(jobs, ends, settings)


def start(recipe: Recipe, settings: Settings) -> tuple[Connection, BaseProcess]:
    """Start a process for one run; signals wait until it can handle them."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(recipe, settings, sender))
    with signals_held_back():
        process.start()
    sender.close()  # ours: the child's is now the only one, so that its end is noticed
    return receiver, process


def died(path: Path, exit_code: int | None) -> Outcome:
    """Return the outcome of a run whose process ended without a word."""
    return Outcome("failed", path, Totals(), f"its process ended with exit code {exit_code}")


def _child(recipe: Recipe, settings: Settings, sender: Connection) -> None:
    """Carry out one run in a process of its own, and stop like on a signal when the parent is gone."""
    interrupt = Interrupt()
    with interrupt.listening():
        signals_let_through()
        parent = multiprocessing.parent_process()
        if parent is not None:
            threading.Thread(target=_outlive, args=(parent,), daemon=True).start()

        def listener(news: RunProgress) -> None:
            with suppress(OSError):  # nobody listens any more
                sender.send(news)

        try:
            outcome = execute(recipe.job(), settings, interrupt, listener)
        except QdbenchError as error:
            outcome = Outcome("failed", recipe.path, Totals(), str(error))
        with suppress(OSError):
            sender.send(replace(outcome, error=None))  # whatever a user raised may not travel


def _outlive(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
