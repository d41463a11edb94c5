"""The command `leaderboard`: the reference results as one table."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from qdbench.cli import terminal
from qdbench.cli.app import AsJson, app
from qdbench.cli.suite import ReferencesFolder, ScaleName


@app.command()
def leaderboard(
    scale: ScaleName = "quick",
    folder: ReferencesFolder = None,
    markdown: Annotated[
        bool, typer.Option("--markdown/--no-markdown", help="Print the table as Markdown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the corrected QD scores of all reference results, the best algorithm first."""
    from qdbench.paper.leaderboard import leaderboard as table_of
    from qdbench.store.plain import as_json as plain

    found = table_of(scale, references=folder)
    for sentence in found.problems:
        terminal.err.print(f"warning: {sentence}", soft_wrap=True)
    if as_json:
        numbers = plain(found)
        del numbers["rows"]
        return terminal.print_json(numbers)
    if markdown:
        return terminal.out.print(found.markdown(), soft_wrap=True, markup=False, highlight=False)
    table = terminal.table("task", *found.algorithms)
    for row in found.rows:
        table.add_row(*(_shown(cell) for cell in row))
    terminal.out.print(found.title, soft_wrap=True)
    terminal.out.print(table)
    for note in found.notes:
        terminal.out.print(note.replace("`", ""), soft_wrap=True)
    return terminal.out.print(f"Next: qdbench suite YOUR_ALGORITHM --scale {scale}")


def _shown(cell: str) -> Text:
    """Return a cell of the Markdown table for the terminal: what is bold there is bold here."""
    found = Text()
    for i, part in enumerate(cell.replace("`", "").split("**")):
        found.append(part, style="bold" if i % 2 else "")
    return found
