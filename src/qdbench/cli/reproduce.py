"""The command `reproduce`: the paper's experiment, from the first run to the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import qdbench
from qdbench import terminal
from qdbench.cli.app import Workers, app
from qdbench.cli.compare import compare
from qdbench.cli.experiment import CheckpointEvery, carry_out
from qdbench.cli.plot import plot
from qdbench.errors import InvalidInput, QdbenchError

if TYPE_CHECKING:
    from qdbench.analysis.collect import Variant
    from qdbench.analysis.findings import Finding
    from qdbench.experiments.protocol import Scale
    from qdbench.experiments.runs import Job

PROBE = 64  # random policies whose episodes are timed for the estimate


@app.command()
def reproduce(
    scale: Annotated[
        Literal["smoke", "laptop", "paper"],
        typer.Option(help="About 2 minutes, an hour, or many days on two cores."),
    ] = "smoke",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where all of it goes. [default: results/SCALE]")
    ] = None,
    workers: Workers = None,
    checkpoint_every: CheckpointEvery = 30.0,
) -> None:
    """Repeat the paper's experiment: run, correct, compare, plot, and judge its findings.

    MAP-Elites, CVT-MAP-Elites and random search (with both initialisations) on ant_omni. The same command
    continues after an interruption.
    """
    from qdbench.analysis.collect import collect
    from qdbench.experiments.protocol import REPRODUCED_TASK, VERSION, scale_of
    from qdbench.experiments.session import Settings
    from qdbench.report.page import write_report
    from qdbench.tasks.contract import checked_workers

    if find_spec("matplotlib") is None:  # said now, not after all the runs
        raise InvalidInput("drawing needs matplotlib: pip install 'qdbench[plot]'")
    chosen, folder = scale_of(scale), out or Path("results") / scale
    n_workers = checked_workers(workers)
    jobs = _jobs(chosen, folder / "runs")
    terminal.out.print(
        f"Protocol version {VERSION}, {scale}: {len(jobs)} runs of {chosen.evaluations:,} evaluations, "
        f"{chosen.episode_length} steps, {chosen.corrections} corrections by {chosen.reevaluations} samples",
        soft_wrap=True,
    )
    terminal.out.print(_estimate(chosen, jobs, n_workers), soft_wrap=True)
    carry_out(
        jobs,
        Settings(workers=n_workers, checkpoint_every=checkpoint_every),
    )
    runs = folder / "runs"
    only = [REPRODUCED_TASK]  # whatever else is in the folder
    compare([runs], tasks=only, out=folder)
    plot([runs], tasks=only, out=folder / "figures")
    collected = collect([runs], tasks=only)
    found = _judge(collected.variants)
    write_report(collected, folder / "report.html", results=[runs], tasks=only, findings=found)
    _print_findings(found, folder)


def _jobs(scale: Scale, out: Path) -> list[Job]:
    from qdbench.algorithms.registry import configure
    from qdbench.experiments.loop import Corrections, Target
    from qdbench.experiments.plan import Plan
    from qdbench.experiments.protocol import CONTENDERS, REPRODUCED_TASK
    from qdbench.experiments.runs import Job

    task = qdbench.make(REPRODUCED_TASK, episode_length=scale.episode_length)
    plans = [
        Plan(
            task=task,
            task_source=REPRODUCED_TASK,
            algorithm=contender.algorithm,
            options=configure(
                contender.algorithm, {"batch_size": str(scale.batch_size), **dict(contender.settings)}
            ),
            seed=seed,
            name=contender.name,
        )
        for seed in range(scale.replications)  # seed by seed, so that what drifts with time hits all alike
        for contender in CONTENDERS
    ]
    corrections = Corrections(scale.corrections, scale.reevaluations)
    target = Target(scale.evaluations, corrections=corrections)
    return [Job(plan, plan.folder(out), target) for plan in plans]


def _estimate(scale: Scale, jobs: Sequence[Job], workers: int) -> str:
    """Time a few episodes, and say how long all of them will take."""
    import time

    from qdbench.experiments.store import RunFolder

    done = sum(
        record["totals"]["evaluations"]
        for job in jobs
        if (record := RunFolder(job.path).read_record()) is not None
    )
    left = max(0, len(jobs) * scale.evaluations - done)
    task = jobs[0].plan.task
    solutions = task.random_solutions(PROBE, qdbench.stream(0, "probe"))
    start = time.perf_counter()
    task.evaluate(solutions, range(PROBE), workers=workers)
    hours = left / PROBE * (time.perf_counter() - start) / 3600
    words = f"{hours * 60:,.0f} minutes" if hours < 2 else f"{hours:,.0f} hours"
    return (
        f"The runs will take about {words} with {workers} workers; the re-evaluations about as long again, "
        "depending on how many elites are found. It can be interrupted; the same command continues."
    )


def _judge(variants: Sequence[Variant]) -> list[Finding]:
    import numpy as np

    from qdbench.analysis.comparable import times_comparable
    from qdbench.analysis.findings import findings
    from qdbench.analysis.measures import final, fixed_interval

    measured = {}
    for variant in variants:
        rows = []
        for run in variant.runs:
            with suppress(QdbenchError, OSError):  # a damaged one was named by `compare`
                rows.append(final(run, fixed_interval(run)))
        if rows:
            measured[variant.label] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return findings(measured, times_comparable(variants))


def _print_findings(found: Sequence[Finding], folder: Path) -> None:
    from qdbench.analysis.findings import CAVEAT
    from qdbench.experiments.files import write_text

    lines = ["# The paper's findings", "", CAVEAT, ""]
    for finding in found:
        lines += [f"**{finding.verdict}**: {finding.claim}", "", f"Criterion: {finding.criterion}", ""]
        lines += [*(f"- {number}" for number in finding.numbers), ""]
    write_text(folder / "findings.md", "\n".join(lines))
    terminal.out.print()
    for finding in found:
        terminal.out.print(f"{finding.verdict.upper()}: {finding.claim}", style="bold", soft_wrap=True)
        terminal.out.print(f"  {finding.criterion}", soft_wrap=True)
        for number in finding.numbers:
            terminal.out.print(f"  {number}", soft_wrap=True)
    terminal.out.print(CAVEAT, soft_wrap=True)
    terminal.out.print(
        f"Written: {folder / 'findings.md'}, {folder / 'report.html'}; all results are in {folder}",
        soft_wrap=True,
    )
