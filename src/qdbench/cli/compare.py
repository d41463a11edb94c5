"""The command `compare`: tables that compare algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import AsJson, IntervalOption, MeasuredOn, OnlyTasks, Results, app
from qdbench.cli.measuring import measured, say_next
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.analysis.compare import Comparison
    from qdbench.analysis.tables import Table
    from qdbench.store.reference_file import Reference


@app.command()
def compare(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalOption = "fixed",
    on: MeasuredOn = "own",
    metrics: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help="Show only these metrics. compare.csv has their names.",
            show_default="the most important, and in files all; over several tasks and in compare.tex, the "
            "primary one",
        ),
    ] = "",
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LABEL|FILE",
            help="Call an algorithm by this label in all tables; or read such lines from a file. May be "
            "repeated.",
            show_default="the algorithms' names",
        ),
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Test only pairs with this algorithm (a name or a label): fewer tests, so Holm's correction "
            "costs less.",
            show_default="all pairs",
        ),
    ] = "",
    use_references: Annotated[
        bool,
        typer.Option(
            "--with-references",
            help="Also compare with the reference results of the same tasks and budgets. They give the "
            "anchors.",
        ),
    ] = False,
    references: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --with-references: also those in this folder.",
            show_default="those of this package",
        ),
    ] = None,
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
    """Compare algorithms: estimates over replications, tests of pairs, an aggregate over tasks.

    It prints the most important metrics; of several tasks an overview, normalised scores and the primary
    tests. --out and --json have all metrics of all tasks. Unfinished, failed and damaged runs are left out
    and named. So are tasks whose runs cannot be compared, because budgets or options differ.
    """
    from qdbench.analysis.chosen import chosen_metrics, read_labels
    from qdbench.analysis.compare import compare as compared
    from qdbench.analysis.table_files import FILES
    from qdbench.analysis.table_files import as_json as in_json
    from qdbench.store.files import require_folder

    if out is not None:
        require_folder(out)
    wanted, names = chosen_metrics(metrics), read_labels(labels or ())
    beside = _references(references) if use_references else ()
    if references is not None and not use_references:
        raise InvalidInput("--references DIR needs --with-references")
    found = measured(results, tasks, interval, on)
    comparison = compared(found, metrics=wanted, labels=names, against=against, references=beside, out=out)
    if use_references:
        for sentence in dict.fromkeys(note for task in comparison.tasks for note in task.notes):
            if sentence.startswith(("reference ", "there are no reference ")) and not as_json:
                terminal.err.print(sentence, soft_wrap=True)
    if as_json:
        return terminal.print_json(in_json(comparison))
    print_comparison(comparison)
    if out is not None:
        terminal.out.print(f"Written: {', '.join(str(out / name) for name in FILES)}", soft_wrap=True)
    elif comparison.aggregate is not None:
        terminal.out.print("All metrics of all tasks: --out DIR or --json; of one task: --task T.")
    elif any(not pair.primary for pair in comparison.pairs):
        terminal.out.print("More metrics, and their tests: --out DIR or --json; chosen ones: --metrics A,B.")
    return say_next("plot" if found.is_all_corrected else "correct", results)


def _references(folder: Path | None) -> Sequence[Reference]:
    from qdbench.paper.references import usable_references

    found = usable_references(folder)
    for sentence in found.problems:
        terminal.err.print(f"warning: {sentence}", soft_wrap=True)
    if not found.found:
        raise InvalidInput(
            "there are no reference results; leave out --with-references, or give --references DIR"
        )
    return found.found


def print_comparison(comparison: Comparison) -> None:
    """Print the tables of one task, or the aggregate over several, and how to read them."""
    from qdbench.analysis.tables import in_brief, method, over_tasks, tables

    for table in over_tasks(comparison) or tables(in_brief(comparison), exploratory=False):
        print_table(table)
    for sentence in method(comparison):
        terminal.out.print(sentence)


def print_table(table: Table) -> None:
    """Print a table with its title and notes; a wide one that does not fit in its narrow form."""
    from qdbench.analysis.tables import TEXT_COLUMNS, by_algorithm

    if table.is_wide and not terminal.fits(table.columns, table.rows):
        table = by_algorithm(table)
    terminal.out.print(table.title, style="bold", soft_wrap=True)
    if table.rows:
        rows = terminal.filled(table.columns, table.rows)
        for column in rows.columns:
            if column.header in TEXT_COLUMNS:
                column.justify = "left"
        terminal.out.print(rows)
    for note in table.notes:  # warnings are on stderr
        terminal.out.print(f"  {note}")
    terminal.out.print()
