"""The command `plot`: the paper's figure and three more for each task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import IntervalOption, MeasuredOn, OnlyTasks, Results, app
from qdbench.cli.measuring import measured, say_next

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qdbench.analysis.measured import Measured


@app.command()
def plot(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalOption = "fixed",
    on: MeasuredOn = "own",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Write the figures into this folder.")] = Path(
        "figures"
    ),
) -> None:
    """Draw the figures of every task: the paper's figure, archives, effect of the re-evaluations.

    Writes TASK-figure (the paper's), TASK-self-normalised (the QD score on each archive's own range),
    TASK-archives and, if elites were re-evaluated, TASK-samples (scores by number of re-evaluations),
    TASK-sizes (losses by number of elites) and TASK-spreads (how far the re-evaluations of each elite
    scatter), each as PNG, SVG and PDF. Unfinished, failed and damaged runs are left out and named. So are
    tasks whose runs cannot be compared, because budgets or options differ.
    """
    from qdbench.reports.plot import plot as drawn
    from qdbench.reports.plot import require_can_plot

    require_can_plot(out)
    found = measured(results, tasks, interval, on)
    print_figures(found, drawn(found, out=out))
    say_next("report" if found.is_all_corrected else "correct", results)


def print_figures(found: Measured, paths: Iterable[Path]) -> None:
    """Print how every task was measured, and which figures were written."""
    for task in found.tasks:
        n = len(task.variants)
        terminal.out.print(
            f"{task.task}: {n} algorithm{'s' * (n != 1)}, {len(task.runs)} runs; {task.by}", soft_wrap=True
        )
    formats: dict[Path, list[str]] = {}
    for path in paths:
        formats.setdefault(path.with_suffix(""), []).append(path.suffix.removeprefix("."))
    for stem, endings in formats.items():
        terminal.out.print(f"Written: {stem}.{{{','.join(endings)}}}", soft_wrap=True)
