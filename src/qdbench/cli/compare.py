"""The command `compare`: tables that compare algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import AsJson, IntervalOption, MeasuredOn, OnlyTasks, Results, app
from qdbench.cli.measuring import measured, say_next

if TYPE_CHECKING:
    from qdbench.analysis.compare import Comparison
    from qdbench.analysis.tables import Table


@app.command()
def compare(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalOption = "fixed",
    on: MeasuredOn = "own",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write compare.md, compare.tex, compare.csv and pairs.csv into this folder.",
            show_default="print only",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare algorithms: estimates over replications, tests of every pair, an aggregate over tasks.

    Unfinished, failed and damaged runs are left out and named. Runs of different tasks, budgets or options
    under one name are refused.
    """
    from qdbench.analysis.compare import compare as compared
    from qdbench.analysis.table_files import FILES
    from qdbench.analysis.table_files import as_json as in_json
    from qdbench.store.files import require_folder

    if out is not None:
        require_folder(out)
    found = measured(results, tasks, interval, on)
    comparison = compared(found, out=out)
    if as_json:
        return terminal.print_json(in_json(comparison))
    print_comparison(comparison)
    if out is not None:
        terminal.out.print(f"Written: {', '.join(str(out / name) for name in FILES)}", soft_wrap=True)
    elif any(not pair.primary for pair in comparison.pairs):
        terminal.out.print("Tests of the other metrics: --out DIR or --json.")
    return say_next("plot" if found.is_all_corrected else "correct", results)


def print_comparison(comparison: Comparison) -> None:
    """Print all tables except the exploratory ones, and how to read them."""
    from qdbench.analysis.tables import METHOD, tables

    for table in tables(comparison, exploratory=False):
        _print_table(table)
    for sentence in METHOD:
        terminal.out.print(sentence)


def _print_table(table: Table) -> None:
    from qdbench.analysis.tables import TEXT_COLUMNS

    terminal.out.print(table.title, style="bold", soft_wrap=True)
    if table.rows:
        rows = terminal.table(*table.columns)
        for column in rows.columns:
            if column.header in TEXT_COLUMNS:
                column.justify = "left"
        for row in table.rows:
            rows.add_row(*row)
        terminal.out.print(rows)
    for note in (*table.warnings, *table.notes):
        terminal.out.print(f"  {note}")
    terminal.out.print()
