"""The command `report`: a whole comparison as one HTML file."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from qdbench import terminal
from qdbench.cli.app import IntervalKind, MeasuredOn, OnlyTasks, Results, app, require_writable
from qdbench.errors import InvalidInput


@app.command()
def report(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalKind = "fixed",
    on: MeasuredOn = "own",
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Where it goes.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading. [default: the tasks]")] = "",
) -> None:
    """Write figures, tables, warnings, runs and commands as one HTML file that opens offline.

    Unfinished, failed and damaged runs are named and left out; runs with other tasks, budgets or options
    under one name are refused.
    """
    from qdbench.analysis.collect import collect

    if find_spec("matplotlib") is None:
        raise InvalidInput("a report needs matplotlib: pip install 'qdbench[plot]'")
    require_writable(out, ".html", ".htm")
    collected = collect(results, tasks=tasks or ())

    from qdbench.report.page import write_report

    total, done = sum(len(variant.runs) for variant in collected.variants), 0
    with terminal.progress("measuring", "runs") as progress:

        def one_more() -> None:
            nonlocal done
            done += 1
            progress(done, total)

        written = write_report(
            collected, out, results=results, tasks=tasks or (), interval=interval, on=on, title=title,
            progress=one_more,
        )  # fmt: skip
    for one in written.comparison.skipped:
        terminal.err.print(f"skipped: {one.path}: {one.reason}", soft_wrap=True)
    for warning in written.warnings:
        terminal.err.print(f"warning: {warning}", soft_wrap=True)
    size = out.stat().st_size / 2**20
    terminal.out.print(f"Written: {out} ({len(written.runs)} runs, {size:.1f} MB)", soft_wrap=True)
    if any(one.corrected is None for _, one in written.runs):
        following = ["qdbench", "correct", *map(str, results)]
        terminal.out.print(f"Next: {shlex.join(following)}", soft_wrap=True)
    else:
        terminal.out.print(f"Next: open {out} in a browser", soft_wrap=True)
