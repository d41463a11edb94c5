"""Make the runs of a command: show the progress, a table at the end, and set the exit code."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

import qdbench
from qdbench.cli import terminal
from qdbench.cli.app import EXIT_FAILED
from qdbench.errors import QdbenchError

if TYPE_CHECKING:
    from qdbench.experiments.job import Job, Outcome, Settings
    from qdbench.experiments.loop import RunProgress
    from qdbench.store.record import Target, Totals


def carry_out(jobs: Sequence[Job], settings: Settings, *, brief: bool = False) -> None:
    """Make all runs, show progress and results (not if `brief`), and exit with the right code.

    Runs that another process is making are left to it.
    """
    from qdbench.experiments.interrupt import Interrupt
    from qdbench.experiments.job import ELSEWHERE, Outcome
    from qdbench.experiments.launchers import launcher_for
    from qdbench.experiments.runs import check_jobs

    check_jobs(jobs, settings)
    interrupt = Interrupt()
    several = len({job.plan.task.name for job in jobs}) > 1
    with interrupt.listening(), terminal.bars() as bars:

        def listener(job: Job, news: RunProgress | Outcome) -> None:
            label = f"{job.plan.task.name}/{job.plan.label}" if several else job.plan.label
            if isinstance(news, Outcome):
                bars(label, None, 1, news.status)
            else:
                done, total, words = _progress(job.target, news)
                bars(label, done, total, f"{words} · on {news.where}" if news.where else words)

        outcomes = launcher_for(settings)(jobs, settings, interrupt, listener)
    if not brief:
        _print_outcomes(jobs, outcomes)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in failed:
        terminal.err.print(f"failed: {outcome.folder}: {outcome.reason}", soft_wrap=True)
    elsewhere = [outcome for outcome in outcomes if outcome.status == ELSEWHERE]
    for outcome in elsewhere:
        terminal.err.print(f"{ELSEWHERE}: {outcome.reason}", soft_wrap=True)
    if interrupt.signal is not None:
        left = len(jobs) - sum(outcome.status in ("finished", "skipped") for outcome in outcomes)
        terminal.err.print(
            f"stopped; {left} of {len(jobs)} runs are unfinished. The same command continues them."
        )
        raise typer.Exit(128 + interrupt.signal)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _progress(target: Target, news: RunProgress) -> tuple[float, float, str]:
    """Return how much of a run is done, how much there is, and its numbers as text."""
    totals, scores = news.totals, news.scores
    evaluations = totals.evaluations + news.in_flight
    shares = [evaluations / target.evaluations] if target.evaluations else []
    shares += [totals.seconds / target.seconds] if target.seconds else []
    if news.correcting is not None:
        done, needed = news.correcting
        return min(1.0, max(shares)), 1.0, f"re-evaluating the elites: {done:,} of {needed:,}"
    if news.replaying:
        return min(1.0, max(shares)), 1.0, f"telling the algorithm again: {evaluations:,} evaluations"
    of_cells = f" of {news.n_cells:,}" if news.n_cells else ""
    rate = totals.evaluations / totals.seconds if totals.seconds else 0.0
    words = (
        f"{evaluations:,} evaluations {rate:,.0f}/s · coverage {scores.coverage:,}{of_cells} "
        f"· QD {scores.qd_score:,.1f} · max {scores.max_fitness:,.1f}"
    )
    return min(1.0, max(shares)), 1.0, words


def _print_outcomes(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    from qdbench.tasks.contract import remark_on_max_fitness, score_interval

    table = terminal.table("run", "status", "evaluations", "seconds", "coverage", "QD score", "max fitness")
    labels = [job.plan.label for job in jobs]
    for job, outcome in zip(jobs, outcomes, strict=True):
        label = job.plan.label if labels.count(job.plan.label) == 1 else str(job.path)
        totals = outcome.totals
        numbers = _last_numbers(outcome)
        table.add_row(label, outcome.status, f"{totals.evaluations:,}", f"{totals.seconds:,.1f}", *numbers)
        _warn(job, totals)
    terminal.out.print(table)
    tasks = {job.plan.task.name: job.plan.task for job in jobs}
    each = "; ".join("{} [{:,g}, {:,g}]".format(name, *score_interval(task)) for name, task in tasks.items())
    terminal.out.print(f"QD scores on the fixed interval: {each}", soft_wrap=True)
    for sentence in filter(None, map(remark_on_max_fitness, tasks.values())):
        terminal.out.print(sentence, soft_wrap=True)
    for job, outcome in zip(jobs, outcomes, strict=True):
        _print_missing_points(job, outcome)
    invalid = sum(outcome.totals.invalid for outcome in outcomes)
    if invalid:
        terminal.out.print(f"{invalid:,} evaluations were invalid; they are in no archive.")
    if any(outcome.totals.evaluations for outcome in outcomes):
        words = ["compare", *sorted({str(job.path.parents[1]) for job in jobs})]
        if not any(job.target.corrections.points for job in jobs):
            runs = {str(job.path.parent) for job in jobs} if len(jobs) > 1 else {str(jobs[0].path)}
            words = ["show", *sorted(runs)]
        terminal.out.print(f"Next: {shlex.join(['qdbench', *words])}", soft_wrap=True)


def _warn(job: Job, totals: Totals) -> None:
    """Say if a fitness is above the interval of the QD score, or impossible by the task's own account."""
    from qdbench.analysis.warnings_of_runs import impossible_warning
    from qdbench.tasks.contract import score_interval

    low, high = score_interval(job.plan.task)
    most, found = totals.highest_fitness, (totals.lowest_fitness, totals.highest_fitness)
    sentences = [impossible_warning(job.path, job.plan.task.fitness_bounds, found)]
    if most > high:
        sentences.append(
            f"{job.path} has a fitness of {most:.10g}, above the interval of the QD score "
            f"[{low:.10g}, {high:.10g}]. An elite above it counts as 1."
        )
    for sentence in filter(None, sentences):
        terminal.err.print(f"warning: {sentence}", soft_wrap=True)


def _last_numbers(outcome: Outcome) -> list[str]:
    """Return coverage, QD score and max fitness at the end; empty texts if unknown."""
    if outcome.status in ("failed", "not begun", "in progress elsewhere") or not outcome.totals.iteration:
        return ["", "", ""]
    try:
        last = {key: values[-1] for key, values in qdbench.load(outcome.folder).metrics.items()}
    except (QdbenchError, OSError) as error:
        terminal.err.print(str(error), soft_wrap=True)
        return ["", "", ""]
    return [f"{last['coverage']:,}", f"{last['qd_score']:,.2f}", f"{last['max_fitness']:,.2f}"]


def _print_missing_points(job: Job, outcome: Outcome) -> None:
    """Say if a run was corrected at fewer points than asked for."""
    from qdbench.experiments.correcting import corrected_after
    from qdbench.store.folder import RunFolder

    asked = job.target.corrections.points
    if not asked or outcome.status not in ("finished", "skipped"):
        return
    made = len(corrected_after(RunFolder(outcome.folder)))
    if made < asked:
        terminal.err.print(
            f"{outcome.folder}: corrected at {made} of {asked} points. Correction points already passed "
            "cannot be added, and an iteration that passes several makes only one.",
            soft_wrap=True,
        )
