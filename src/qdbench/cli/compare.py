"""The command `compare`: algorithms side by side, in tables."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench import terminal
from qdbench.cli.app import AsJson, IntervalKind, MeasuredOn, OnlyTasks, Results, app
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.analysis.compare import Comparison
    from qdbench.analysis.tables import Table


@app.command()
def compare(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalKind = "fixed",
    on: MeasuredOn = "own",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write compare.md, compare.tex, compare.csv and pairs.csv there."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare algorithms: estimates over replications, tests of every pair, an aggregate over tasks.

    Unfinished, failed and damaged runs are named and left out; runs with other tasks, budgets or options
    under one name are refused.
    """
    from qdbench.analysis import tables as made
    from qdbench.analysis.collect import collect
    from qdbench.analysis.compare import compare as compared

    if out is not None and any(path.exists() and not path.is_dir() for path in (out, *out.parents)):
        raise InvalidInput(f"cannot write into {str(out)!r}: it is not a folder")
    collected = collect(results, tasks=tasks or ())
    comparison = compared(collected, interval=interval, on=on)
    if out is not None:
        _write(comparison, out)
    _warn(comparison)
    if as_json:
        return terminal.print_json(made.as_json(comparison))
    for table in made.tables(comparison, exploratory=False):
        _print_table(table)
    for sentence in made.METHOD:
        terminal.out.print(sentence)
    if out is not None:
        terminal.out.print(f"Written: {', '.join(str(out / name) for name in made.FILES)}", soft_wrap=True)
    elif len(comparison.pairs) > sum(pair.primary for pair in comparison.pairs):
        terminal.out.print("The tests of the other metrics are in what --out DIR writes, and in --json.")
    command = ["qdbench", "plot" if _corrected(comparison) else "correct", *map(str, results)]
    return terminal.out.print(f"Next: {shlex.join(command)}", soft_wrap=True)


def _corrected(comparison: Comparison) -> bool:
    entries = (entry for task in comparison.tasks for entry in task.entries)
    return all(entry.estimate.n == entry.n_runs for entry in entries if entry.metric == "corrected_qd_score")


def _write(comparison: Comparison, out: Path) -> None:
    from qdbench.analysis.tables import FILES
    from qdbench.experiments.files import write_text

    out.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        write_text(out / name, text(comparison))


def _warn(comparison: Comparison) -> None:
    """Say on stderr what must not be overlooked."""
    for one in comparison.skipped:
        terminal.err.print(f"skipped: {one.path}: {one.reason}", soft_wrap=True)
    for task in comparison.tasks:
        for warning in task.warnings:
            terminal.err.print(f"WARNING: {warning}", style="bold red", soft_wrap=True)


def _print_table(table: Table) -> None:
    terminal.out.print(table.title, style="bold", soft_wrap=True)
    if table.rows:
        rows = terminal.table(*table.columns)
        for column in rows.columns:
            if column.header in ("algorithm", "metric", "A", "B"):
                column.justify = "left"
        for row in table.rows:
            rows.add_row(*row)
        terminal.out.print(rows)
    for note in (*table.warnings, *table.notes):
        terminal.out.print(f"  {note}")
    terminal.out.print()
