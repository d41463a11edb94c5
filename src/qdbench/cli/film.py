"""The command `film`: an elite in motion, as a file for slides and papers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from qdbench.cli import terminal
from qdbench.cli.app import Trust, app
from qdbench.cli.simulate import chosen_elite
from qdbench.errors import InvalidInput


@app.command()
def film(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    elite: Annotated[
        str | None,
        typer.Option(
            metavar="best|N", help="The best elite, or its row in the archive, from 0.", show_default="best"
        ),
    ] = None,
    cell: Annotated[
        str | None,
        typer.Option(
            metavar="I,J",
            help="The elite of this cell, by its place along each dimension (3,7) or by its number (42).",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Write a page with a player (.html), a video (.mp4 or .gif) or a filmstrip (.png).",
        ),
    ] = Path("gait.html"),
    ghosts: Annotated[
        int,
        typer.Option(
            min=0,
            max=50,
            metavar="N",
            help="Also show, translucent, N episodes of the same policy under other seeds: those of its "
            "re-evaluations.",
        ),
    ] = 4,
    speed: Annotated[float, typer.Option(metavar="X", help="Simulated seconds per second of video.")] = 1.0,
    rate: Annotated[float, typer.Option(metavar="N", help="Pictures per second of video.")] = 25.0,
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of a picture in pixels.")] = "640x360",
    theme: Annotated[
        Literal["light", "dark"], typer.Option(help="Colours of the floor and the sky.")
    ] = "light",
    trust: Trust = False,
) -> None:
    """Write a film of an elite: its stored episode, simulated again, with ghosts under other seeds.

    It needs no screen. The page ignores speed, rate, size and theme: the player has its own.
    """
    import qdbench

    try:
        pixels = [int(part) for part in size.split("x")]
    except ValueError:
        raise InvalidInput(f"--size is {size!r}; write it like 640x360") from None
    chosen, place = chosen_elite(elite, cell)
    with terminal.progress("drawing", "pictures") as progress:
        path = qdbench.film(
            run, chosen, cell=place, out=out, ghosts=ghosts, speed=speed, rate=rate, size=pixels, theme=theme,
            trust=trust, progress=progress,
        )  # fmt: skip
    terminal.out.print(f"Written: {path} ({path.stat().st_size / 1000:,.0f} kB)", soft_wrap=True)
    look = "in a browser" if path.suffix == ".html" else "in a viewer"
    report = shlex.join(["qdbench", "report", str(run)])
    terminal.out.print(f"Next: open {path} {look}; {report} shows more elites", soft_wrap=True)
