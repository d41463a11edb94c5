"""Several runs: one after the other on all cores, or several at a time in processes of their own."""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.loop import Listener, Snapshot, Target, Totals
from qdbench.experiments.plan import Plan, plan_from
from qdbench.experiments.session import Outcome, Settings, check_plan, execute
from qdbench.experiments.store import RunFolder

Report = Callable[[Plan, Snapshot | Outcome], None]
"""Called with every snapshot of a run, and with its outcome."""


def check_all(plans: Sequence[Plan], out: Path, settings: Settings) -> None:
    """Refuse, before any work is done, folders that hold other runs."""
    for plan in plans:
        check_plan(plan, RunFolder(plan.folder(out)), elsewhere=settings.elsewhere)


def execute_all(
    plans: Sequence[Plan], out: Path, target: Target, settings: Settings, interrupt: Interrupt, report: Report
) -> list[Outcome]:
    """Carry out all runs; one that fails does not stop the others. Stop early when interrupted."""
    if settings.jobs > 1 and len(plans) > 1:
        return _in_processes(plans, out, target, settings, interrupt, report)
    outcomes = []
    for plan in plans:
        outcome = execute(plan, out, target, settings, interrupt, _listener(plan, report))
        report(plan, outcome)
        outcomes.append(outcome)
        if interrupt.signal is not None:
            break
    return outcomes


def _listener(plan: Plan, report: Report) -> Listener:
    return lambda snapshot: report(plan, snapshot)


def _in_processes(
    plans: Sequence[Plan], out: Path, target: Target, settings: Settings, interrupt: Interrupt, report: Report
) -> list[Outcome]:
    """Keep `jobs` processes busy; an interruption is passed on to them, and each saves its run."""
    context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    waiting = list(enumerate(plans))
    running: dict[int, BaseProcess] = {}
    outcomes: dict[int, Outcome] = {}
    while waiting or running:
        while waiting and len(running) < settings.jobs and interrupt.signal is None:
            i, plan = waiting.pop(0)
            recipe = (i, plan.determinants(), plan.name, out, target, settings, messages)
            running[i] = context.Process(target=_child, args=recipe)
            running[i].start()
        try:
            with interrupt.allowed():
                i, message = messages.get(timeout=0.2)
        except queue.Empty:
            for i, process in list(running.items()):
                if process.exitcode is not None and messages.empty():
                    reason = f"its process ended with exit code {process.exitcode}"
                    outcomes[i] = Outcome("failed", plans[i].folder(out), Totals(), reason)
                    report(plans[i], outcomes[i])
                    running.pop(i).join()
            continue
        except Interrupted:
            waiting.clear()
            for process in running.values():
                process.terminate()
            continue
        report(plans[i], message)
        if isinstance(message, Outcome):
            outcomes[i] = message
            running.pop(i).join()
    return [outcomes[i] for i in sorted(outcomes)]


def _child(
    i: int,
    determinants: dict[str, Any],
    name: str,
    out: Path,
    target: Target,
    settings: Settings,
    messages: Any,
) -> None:
    interrupt = Interrupt()
    with interrupt.listening():
        plan = plan_from(determinants, name)
        listener: Listener = lambda snapshot: messages.put((i, replace(snapshot)))  # noqa: E731
        messages.put((i, execute(plan, out, target, settings, interrupt, listener)))
