"""The command `report`: a complete comparison as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import IntervalOption, MeasuredOn, OnlyTasks, Replays, Results, Trust, app
from qdbench.cli.measuring import measured, say_next


@app.command()
def report(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalOption = "fixed",
    on: MeasuredOn = "own",
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Write the page to this file.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str, typer.Option(help="Heading of the page.", show_default="names algorithms and tasks")
    ] = "",
    replays: Replays = True,
    trust: Trust = False,
) -> None:
    """Write figures, replays, tables, warnings, runs and commands as one HTML file that opens offline.

    Unfinished, failed and damaged runs are left out and named. So are tasks whose runs cannot be compared,
    because budgets or options differ.
    """
    from qdbench.reports.page import report as written
    from qdbench.reports.page import require_can_report

    require_can_report(out)
    found = measured(results, tasks, interval, on)
    with terminal.progress("filming", "algorithms") as filming:
        path = written(found, out=out, title=title, replays=replays, trust=trust, filming=filming)
    size = path.stat().st_size / 2**20
    terminal.out.print(f"Written: {out} ({len(found.runs)} runs, {size:.1f} MB)", soft_wrap=True)
    if found.is_all_corrected:
        terminal.out.print(f"Next: open {out} in a browser", soft_wrap=True)
    else:
        say_next("correct", results)
