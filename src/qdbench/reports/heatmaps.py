"""Heatmaps of archives: colour is fitness, white is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Grid, Unstructured
from qdbench.reports.raster import Image, axes_of, raster
from qdbench.store.loading import StoredRun

COLOURS = "viridis"  # even in brightness: safe for the colour-blind, and in black and white
DPI = 300
_MOST_TICKS = 10
_BAR_EDGE = 0.5
"""Points; a bar narrower than a pixel would not be drawn, or only palely. It is narrower than an axis."""
_SMALLEST_DOT = 0.008
"""Least width of an elite of an unstructured archive, as a share of the descriptor range."""


@dataclass(frozen=True, eq=False)
class Plane:
    """What a picture needs besides an archive: the task's grid and the names of the descriptors."""

    grid: Grid
    names: tuple[str, ...]

    @classmethod
    def of(cls, run: StoredRun) -> Plane:
        """Return the plane of a run's task."""
        return cls(run.grid, run.record.facts.descriptor_names)


def save_archive(run: StoredRun, path: Path) -> None:
    """Write a picture of a run's archive. The file name's ending selects the format."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"pdf.fonttype": 42, "text.parse_math": False}):  # TrueType; names may have a $
        archive = run.archive.placed()
        dimensions = _dimensions(archive)
        size = {1: (7, 3), 2: (5.6, 5)}.get(dimensions, (7, 6.4))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        limits = fitness_limits(archive, if_empty=run.record.task.fitness_bounds)
        colours = draw_archive(axes, archive, Plane.of(run), limits)
        if dimensions > 1:  # else the y axis says it
            add_colour_bar(axes, colours)
        axes.set_title(title(run), fontsize="medium")
        figure.savefig(path, dpi=DPI, bbox_inches="tight")


def draw_archive(axes: Any, archive: Archive, plane: Plane, limits: tuple[float, float]) -> Any:
    """Draw an archive on matplotlib axes; return an object for a colour bar.

    `limits` are the fitness of the darkest and of the brightest colour; use the same ones for pictures that
    are compared. Grids and CVTs with up to two dimensions and unstructured archives with two are drawn
    directly. Others are projected onto the task's grid. Grids with more dimensions are nested: see
    `qdbench.reports.raster`.
    """
    from matplotlib.colors import Normalize

    look = {"cmap": COLOURS, "norm": Normalize(*limits)}
    if _dimensions(archive) == 1:
        return _draw_bars(axes, archive, plane, look)
    if _dimensions(archive) > 2:
        return _draw_nested(axes, archive, plane, look)
    if isinstance(archive.geometry, Unstructured):
        return _draw_elites(axes, archive, archive.geometry, plane, look)
    return _draw_plane(axes, archive, plane, look)


def add_colour_bar(axes: Any, colours: Any) -> None:
    """Put a colour bar of the same height beside axes; `colours` is what `draw_archive` returned.

    Save the figure with `bbox_inches="tight"`: constrained layout leaves no space for it.
    """
    axes.figure.colorbar(colours, cax=axes.inset_axes((1.04, 0, 0.04, 1)), label="fitness")


def fitness_limits(*archives: Archive, if_empty: tuple[float, float]) -> tuple[float, float]:
    """Return the lowest and the highest fitness in several archives."""
    fitness = np.concatenate([archive.elites.fitness for archive in archives])
    return (float(fitness.min()), float(fitness.max())) if len(fitness) else if_empty


def title(run: StoredRun) -> str:
    """Return the title of the picture of a run's archive, in two or three lines."""
    archive, record = run.archive.placed(), run.record
    n, cells = len(archive), archive.geometry.n_cells
    filled = f"coverage {n:,} of {cells:,} cells ({n / cells:.1%})" if cells else f"{n:,} elites"
    evaluations = run.archive.n_evaluations
    row = run.metrics["evaluations"] == evaluations  # none, if it was stopped in the first iteration
    beside = f" ({record.name})" if record.name else ""
    low, high = record.facts.score_interval
    lines = [
        f"{record.task.name}, {record.algorithm.name}{beside}, seed {record.seed}, "
        f"{evaluations:,} evaluations",
        f"{filled}, QD score {run.metrics['qd_score'][row].sum():,.1f} on [{low:,g}, {high:,g}]",
    ]
    if is_projected(archive):
        lines.append("projected onto the task's grid: the fittest elite of every cell")
    return "\n".join(lines)


def is_projected(archive: Archive) -> bool:
    """Return whether the picture shows the task's grid instead of the archive's geometry."""
    kind, dimensions = archive.geometry.kind, _dimensions(archive)
    own = kind == "grid" or (kind == "cvt" and dimensions == 1)
    return not own and dimensions != 2


def _dimensions(archive: Archive) -> int:
    return len(archive.geometry.bounds)


def _draw_bars(axes: Any, archive: Archive, plane: Plane, look: dict[str, Any]) -> Any:
    from matplotlib.collections import PolyCollection

    (values,) = raster(archive, plane.grid)
    ((left, right),) = archive.geometry.bounds
    edges = np.linspace(left, right, len(values) + 1)
    norm = look["norm"]
    height = (norm.vmax - norm.vmin) or 1.0
    bottom = norm.vmin - 0.1 * height  # so that the lowest bar is visible
    filled = np.flatnonzero(np.isfinite(values))
    corners = [
        [(edges[i], bottom), (edges[i], values[i]), (edges[i + 1], values[i]), (edges[i + 1], bottom)]
        for i in filled
    ]
    bars = PolyCollection(corners, array=values[filled], edgecolor="face", linewidth=_BAR_EDGE, **look)
    axes.add_collection(bars)
    axes.set(xlim=(left, right), ylim=(bottom, norm.vmax + 0.05 * height))
    axes.set(xlabel=plane.names[0], ylabel="fitness")
    return bars


def _draw_plane(axes: Any, archive: Archive, plane: Plane, look: dict[str, Any]) -> Any:
    x, y = archive.geometry.bounds
    image = _show(axes, raster(archive, plane.grid), (*x, *y), look)
    axes.set(xlabel=plane.names[0], ylabel=plane.names[1])
    return image


def _draw_elites(
    axes: Any, archive: Archive, geometry: Unstructured, plane: Plane, look: dict[str, Any]
) -> Any:
    """Draw every elite as a disc with the width of the threshold: discs do not overlap."""
    from matplotlib.collections import EllipseCollection
    from matplotlib.patches import Rectangle

    places = archive.elites.descriptors
    low, high = geometry.bounds.T
    discs = (high - low) * max(_SMALLEST_DOT, geometry.threshold)
    width, height = discs.tolist()
    drawn = EllipseCollection(
        width, height, 0, units="xy", offsets=places, offset_transform=axes.transData,
        array=archive.elites.fitness, linewidth=0, **look,
    )  # fmt: skip
    axes.add_collection(drawn)
    if ((places < low) | (places > high)).any():  # show elites outside the bounds, and the bounds
        (west, south), (east, north) = low.tolist(), high.tolist()
        axes.add_patch(Rectangle((west, south), east - west, north - south, fill=False, color="grey"))
        low = np.minimum(low, places.min(axis=0) - discs / 2)
        high = np.maximum(high, places.max(axis=0) + discs / 2)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), box_aspect=1)
    axes.set(xlabel=plane.names[0], ylabel=plane.names[1])
    return drawn


def _draw_nested(axes: Any, archive: Archive, plane: Plane, look: dict[str, Any]) -> Any:
    grid = archive.geometry if isinstance(archive.geometry, Grid) else plane.grid
    shape, bounds = grid.shape, grid.bounds
    image = raster(archive, grid)
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
        axes.set(**{f"{axis}label": _nesting(dimensions, bounds, plane.names)})
    return drawn


def _draw_borders(line: Any, counts: Sequence[int]) -> None:
    """Draw the borders of the blocks; the outermost are the strongest."""
    for level in range(len(counts) - 1):
        blocks, size = prod(counts[: level + 1]), prod(counts[level + 1 :])
        strength = {"color": "black", "linewidth": 1.2} if level == 0 else {"color": "grey", "linewidth": 0.4}
        for i in range(1, blocks):
            if level == 0 or i % counts[level]:  # else it is a border of an outer level
                line(i * size, **strength)


def _nesting(dimensions: Sequence[int], bounds: Any, names: Sequence[str]) -> str:
    """Return the label of an axis. Ticks show the first dimension; the others are inside every block."""
    lines = [names[dimensions[0]]]
    for i in dimensions[1:]:
        low, high = map(_number, bounds[i])
        block = "block" if i == dimensions[1] else "smaller block"
        lines.append(f"in each {block}: {names[i]}, {low} to {high}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _show(axes: Any, image: Image, extent: tuple[float, ...], look: dict[str, Any]) -> Any:
    drawn = axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest", **look)
    axes.set_box_aspect(1)
    return drawn
