"""Heatmaps of archives: colour is fitness, white is empty."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from qdbench.experiments.loading import StoredRun
from qdbench.report.raster import Drawable, Image, axes_of, on_grid, raster

COLOURS = "viridis"  # grows evenly in brightness: safe for the colour-blind, and in black and white
DPI = 300
_MOST_TICKS = 10
_SMALLEST_DOT = 0.008
"""Of the box; an elite of an unstructured archive is drawn at least that wide."""


def save_archive(run: StoredRun, path: Path) -> None:
    """Write a picture of a run's archive; the file's ending chooses the format."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    archive = run.archive
    dimensions = _dimensions(archive)
    size = {1: (7, 3), 2: (5.6, 5)}.get(dimensions, (7, 6.4))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    colours = draw_archive(axes, archive)
    if dimensions > 1:  # else the y axis says it
        add_colour_bar(axes, colours)
    axes.set_title(title(run), fontsize="medium")
    with rc_context({"pdf.fonttype": 42}):  # TrueType, as publishers want it
        figure.savefig(path, dpi=DPI, bbox_inches="tight")


def draw_archive(axes: Any, archive: Drawable, *, limits: tuple[float, float] | None = None) -> Any:
    """Draw an archive on matplotlib axes; return what a colour bar can be made of.

    `limits` are the fitness of the darkest and of the brightest colour; pictures that are to be compared
    share them. Grids and CVTs of up to two dimensions and unstructured archives of two are drawn as they
    are, others on the task's grid; grids of more dimensions are nested as `qdbench.report.raster` says.
    """
    from matplotlib.colors import Normalize

    look = {"cmap": COLOURS, "norm": Normalize(*(limits or fitness_limits(archive)))}
    if _dimensions(archive) == 1:
        return _draw_bars(axes, archive, look)
    if _dimensions(archive) > 2:
        return _draw_nested(axes, archive, look)
    as_regions = archive.kind in ("grid", "cvt")
    return (_draw_plane if as_regions else _draw_elites)(axes, archive, look)


def add_colour_bar(axes: Any, colours: Any) -> None:
    """Put a colour bar beside axes, as high as they are; `colours` is what `draw_archive` returned.

    Save the figure with `bbox_inches="tight"`: constrained layout leaves no room for it.
    """
    axes.figure.colorbar(colours, cax=axes.inset_axes((1.04, 0, 0.04, 1)), label="fitness")


def fitness_limits(*archives: Drawable) -> tuple[float, float]:
    """Return the lowest and the highest fitness in some archives."""
    fitness = np.concatenate([archive.fitness for archive in archives])
    if not len(fitness):
        low, high = archives[0].about["fitness_bounds"]
        return low, high
    return float(fitness.min()), float(fitness.max())


def title(run: StoredRun) -> str:
    """Return what the picture of a run's archive shows, in two or three lines."""
    archive, record = run.archive, run.record
    n, cells = len(archive), archive.container.n_cells
    filled = f"coverage {n:,} of {cells:,} cells ({n / cells:.1%})" if cells else f"{n:,} elites"
    evaluations = archive.about["n_evaluations"]
    row = run.metrics["evaluations"] == evaluations  # none, if it was stopped in the first iteration
    beside = f" ({record['name']})" if record["name"] else ""
    low, high = record["task"]["fitness_bounds"]
    lines = [
        f"{record['task']['name']}, {record['algorithm']['name']}{beside}, seed {record['seed']}, "
        f"{evaluations:,} evaluations",
        f"{filled}, QD score {run.metrics['qd_score'][row].sum():,.1f} on [{low:,g}, {high:,g}]",
    ]
    if is_projected(archive):
        lines.append("drawn on the task's grid, the fittest elite of every cell")
    return "\n".join(lines)


def is_projected(archive: Drawable) -> bool:
    """Return whether the picture shows the task's grid instead of the archive's own container."""
    own = archive.kind == "grid" or (archive.kind == "cvt" and _dimensions(archive) == 1)
    return not own and _dimensions(archive) != 2


def _dimensions(archive: Drawable) -> int:
    return len(archive.geometry["descriptor_bounds"])


def _draw_bars(axes: Any, archive: Drawable, look: dict[str, Any]) -> Any:
    from matplotlib.collections import PolyCollection

    (values,) = raster(archive)
    ((left, right),) = archive.geometry["descriptor_bounds"]
    edges = np.linspace(left, right, len(values) + 1)
    norm = look["norm"]
    height = (norm.vmax - norm.vmin) or 1.0
    bottom = norm.vmin - 0.1 * height  # so that the lowest is seen
    filled = np.flatnonzero(np.isfinite(values))
    corners = [
        [(edges[i], bottom), (edges[i], values[i]), (edges[i + 1], values[i]), (edges[i + 1], bottom)]
        for i in filled
    ]
    bars = PolyCollection(corners, array=values[filled], antialiased=False, linewidth=0, **look)
    axes.add_collection(bars)
    axes.set(xlim=(left, right), ylim=(bottom, norm.vmax + 0.05 * height))
    axes.set(xlabel="descriptor", ylabel="fitness")
    return bars


def _draw_plane(axes: Any, archive: Drawable, look: dict[str, Any]) -> Any:
    x, y = archive.geometry["descriptor_bounds"]
    image = _show(axes, raster(archive), (*x, *y), look)
    axes.set(xlabel="descriptor 1", ylabel="descriptor 2")
    return image


def _draw_elites(axes: Any, archive: Drawable, look: dict[str, Any]) -> Any:
    """Draw every elite as a disc as wide as the threshold: no two overlap."""
    from matplotlib.collections import EllipseCollection
    from matplotlib.patches import Rectangle

    bounds, places = archive.geometry["descriptor_bounds"], archive.descriptors
    low, high = bounds.T
    discs = (high - low) * max(_SMALLEST_DOT, float(archive.geometry.get("threshold", 0)))
    width, height = discs.tolist()
    drawn = EllipseCollection(
        width, height, 0, units="xy", offsets=places, offset_transform=axes.transData,
        array=archive.fitness, linewidth=0, **look,
    )  # fmt: skip
    axes.add_collection(drawn)
    if ((places < low) | (places > high)).any():  # show them too, and where the box ends
        (west, south), (east, north) = low.tolist(), high.tolist()
        axes.add_patch(Rectangle((west, south), east - west, north - south, fill=False, color="grey"))
        low = np.minimum(low, places.min(axis=0) - discs / 2)
        high = np.maximum(high, places.max(axis=0) + discs / 2)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), box_aspect=1)
    axes.set(xlabel="descriptor 1", ylabel="descriptor 2")
    return drawn


def _draw_nested(axes: Any, archive: Drawable, look: dict[str, Any]) -> Any:
    shape, bounds = on_grid(archive).shape, archive.geometry["descriptor_bounds"]
    image = raster(archive)
    height, width = image.shape
    drawn = _show(axes, image, (0, width, 0, height), look)
    for axis, line, dimensions in zip("xy", (axes.axvline, axes.axhline), axes_of(len(shape)), strict=True):
        counts = [shape[i] for i in dimensions]
        _draw_borders(line, counts)
        low, high = bounds[dimensions[0]]
        edges = np.linspace(low, high, counts[0] + 1)
        marked = np.arange(0, len(edges), -(-counts[0] // _MOST_TICKS))
        axes.set(**{f"{axis}ticks": marked * prod(counts[1:])})
        axes.set(**{f"{axis}ticklabels": [_number(value) for value in edges[marked]]})
        axes.set(**{f"{axis}label": _nesting(dimensions, bounds)})
    return drawn


def _draw_borders(line: Any, counts: Sequence[int]) -> None:
    """Draw the borders of the blocks, the outermost strongest."""
    for level in range(len(counts) - 1):
        blocks, size = prod(counts[: level + 1]), prod(counts[level + 1 :])
        strength = {"color": "black", "linewidth": 1.2} if level == 0 else {"color": "grey", "linewidth": 0.4}
        for i in range(1, blocks):
            if level == 0 or i % counts[level]:  # else an outer level's
                line(i * size, **strength)


def _nesting(dimensions: Sequence[int], bounds: Any) -> str:
    """Return an axis's label: the ticks are the first dimension's, the others run through every block."""
    lines = [f"descriptor {dimensions[0] + 1}"]
    for i in dimensions[1:]:
        low, high = map(_number, bounds[i])
        block = "block" if i == dimensions[1] else "smaller block"
        lines.append(f"in each {block}: descriptor {i + 1} from {low} to {high}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _show(axes: Any, image: Image, extent: tuple[float, ...], look: dict[str, Any]) -> Any:
    drawn = axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest", **look)
    axes.set_box_aspect(1)
    return drawn
