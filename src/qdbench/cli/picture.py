"""A picture of an archive with one or two dimensions, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qdbench.cli import terminal

if TYPE_CHECKING:
    from rich.text import Text

    from qdbench.reports.raster import Image
    from qdbench.store.loading import StoredRun

SHADES = ".:-=+*#%@"
VIRIDIS = tuple(
    map(bytes.fromhex, ("472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"))
)
"""Safe for the colour-blind. The darkest eighth is left out: it is invisible on a black terminal."""
STRIP, STRIP_ROWS = 90, 2  # columns and rows of a picture with one dimension
SQUARE = 36  # columns and rows of a picture with two dimensions, in characters; coloured ones are finer
COLOURED_SQUARE = 64


def picture(run: StoredRun) -> list[Text]:
    """Return the lines of a framed picture of an archive with one or two dimensions, with a legend."""
    from rich.text import Text

    from qdbench.reports.raster import pooled, raster

    console = terminal.out
    coloured = bool(console.color_system) and not console.no_color and not console.options.ascii_only
    archive, names = run.archive.placed(), run.record.facts.descriptor_names
    (left, right), *upwards = archive.geometry.bounds.tolist()
    widest = (COLOURED_SQUARE if coloured else SQUARE) if upwards else STRIP
    columns = min(widest, max(console.width - 12, 8))
    image, block = pooled(raster(archive, run.grid), columns, columns)
    zoom = max(columns // max(image.shape), 1)
    image = image.repeat(zoom, axis=1).repeat(zoom if upwards else STRIP_ROWS, axis=0)
    fitness = archive.elites.fitness
    low, high = float(fitness.min()), float(fitness.max())
    shades = (image - low) / ((high - low) or 1.0)
    rows = _half_blocks(shades) if coloured else _characters(shades, 2 if upwards else 1)
    bottom, top = (f"{bound:g}" for bound in upwards[0]) if upwards else ("", "")
    margin = " " * (max(len(bottom), len(top)) + 1)
    border = f"+{'-' * len(rows[0])}+"
    along = f"{left:g}", f"{right:g}"
    name = f" {names[0]} ".center(len(rows[0]) - len("".join(along)))
    return [
        *([Text(f"{margin} {names[1]}")] if upwards else []),
        Text(f"{top:>{len(margin)}}{border}"),
        *(Text.assemble(margin, "|", row, "|") for row in rows),
        Text(f"{bottom:>{len(margin)}}{border}"),
        Text(f"{margin} {name.join(along)}"),
        Text.assemble(margin, " ", *_legend(low, high, coloured), _remark(archive.geometry.kind, block)),
    ]


def _characters(shades: Image, times: int) -> list[Text]:
    """Return one row of pixels per line; every character is repeated `times` times."""
    from rich.text import Text

    def mark(shade: float) -> str:
        return (" " if shade != shade else SHADES[min(int(shade * len(SHADES)), len(SHADES) - 1)]) * times

    return [Text("".join(map(mark, row))) for row in shades[::-1].tolist()]


def _half_blocks(shades: Image) -> list[Text]:
    """Return two rows of pixels per line: the upper one as foreground, the lower one as background."""
    import numpy as np
    from rich.text import Text

    if len(shades) % 2:
        shades = np.pad(shades, ((0, 1), (0, 0)), constant_values=np.nan)
    lines = []
    for upper, lower in zip(shades[-1::-2].tolist(), shades[-2::-2].tolist(), strict=True):
        line = Text()
        for above, below in zip(map(_colour, upper), map(_colour, lower), strict=True):
            if above and below:
                line.append("\N{UPPER HALF BLOCK}", f"{above} on {below}")
            elif above:
                line.append("\N{UPPER HALF BLOCK}", above)
            else:
                line.append("\N{LOWER HALF BLOCK}" if below else " ", below)
        lines.append(line)
    return lines


def _colour(shade: float) -> str:
    """Return a colour of VIRIDIS, interpolated; empty for NaN."""
    if shade != shade:
        return ""
    place = shade * (len(VIRIDIS) - 1)
    first = min(int(place), len(VIRIDIS) - 2)
    mixed = (
        round(one + (place - first) * (other - one))
        for one, other in zip(VIRIDIS[first], VIRIDIS[first + 1], strict=True)
    )
    return f"#{bytes(mixed).hex()}"


def _legend(low: float, high: float, coloured: bool) -> list[str | Text | tuple[str, str]]:
    if not coloured:
        return [f"fitness {low:,.2f} {SHADES} {high:,.2f}"]
    ramp = [("\N{FULL BLOCK}", _colour(i / 15)) for i in range(16)]
    return [f"fitness {low:,.2f} ", *ramp, f" {high:,.2f}"]


def _remark(kind: str, block: tuple[int, int]) -> str:
    """Say what one mark shows, if it is not exactly one cell."""
    if kind == "cvt":
        return "; one mark is the fittest of the cells it touches"
    size = shape_text([n for n in block if n > 1])
    several = f"; one mark is the fittest of {size} cells" if size else ""
    return several + "; projected onto the task's grid" * (kind != "grid")


def shape_text(shape: Sequence[int]) -> str:
    """Return the shape of a grid as text, like 30x30."""
    return "x".join(map(str, shape))
