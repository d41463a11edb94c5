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
    from qdbench.analysis.tables import Table, by_algorithm
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
    rows = tuple((task.replace("**", ""), *cells) for task, *cells in found.rows)
    wide = Table(found.title, ("task", *found.algorithms), rows, found.notes, is_wide=True)
    shown = wide if terminal.fits(wide.columns, wide.rows) else by_algorithm(wide)
    terminal.out.print(shown.title, soft_wrap=True)
    terminal.out.print(terminal.filled(shown.columns, [[_shown(cell) for cell in row] for row in shown.rows]))
    for note in shown.notes:
        mark = "bold:" if terminal.out.is_terminal else "*:"
        terminal.out.print(_shown(note.replace("bold:", mark)), soft_wrap=True)
    return terminal.out.print(f"Next: qdbench suite YOUR_ALGORITHM --scale {scale}")


def _shown(cell: str) -> Text:
    """Return a cell of the Markdown table for the terminal, bold or with a star what is bold there."""
    found, is_bold = Text(), terminal.out.is_terminal
    for i, part in enumerate(cell.replace("`", "").split("**")):
        found.append(part if is_bold or not i % 2 else f"{part}*", style="bold" if i % 2 else "")
    return found
