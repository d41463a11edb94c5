"""The command `explore`: runs in a browser, where a click on a cell shows its gait."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from qdbench.cli import terminal
from qdbench.cli.app import Trust, app
from qdbench.errors import InvalidInput
from qdbench.sources import import_problem


@app.command()
def explore(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that contain run folders.")
    ],
    port: Annotated[
        int | None,
        typer.Option(
            metavar="P",
            help="Port of the page; 0 means any free one.",
            show_default="the first free from 8080",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open the page in a browser, if this computer has one with windows.")
    ] = True,
    draw: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Your own picture of a solution, for tasks without a robot: parameters in, a line of points "
            "or an image out.",
            show_default="none",
        ),
    ] = None,
    trust: Trust = False,
) -> None:
    """Show archives in a browser: click a cell, and its robot walks.

    The page can be opened on this computer only. Ctrl-C ends it.
    """
    from qdbench.explorer.server import explore as opened
    from qdbench.explorer.server import require_viser

    require_viser()
    function = None if draw is None else _function(draw)
    with opened(runs, port=port, browser=False, trust=trust, draw=function) as explorer:
        found = explorer.library.catalogue
        for skipped in found.skipped:
            terminal.err.print(f"left out: {skipped.path}: {skipped.reason}", soft_wrap=True)
        n = len(found.runs)
        terminal.out.print(f"Exploring {n} run{'s' * (n != 1)}: {explorer.address}", soft_wrap=True)
        is_open = browser and explorer.open_browser()
        following = "click a cell" if is_open else "open this address in a browser and click a cell"
        with suppress(KeyboardInterrupt):
            terminal.out.print(f"Next: {following}. Ctrl-C ends it.")
            explorer.wait()
    terminal.out.print("Ended.")


def _function(name: str) -> Any:
    """Return the function that --draw names."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InvalidInput(f"--draw is {name!r}; give module:function")
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InvalidInput(f"cannot load --draw {name!r}: {import_problem(error, module)}") from error
