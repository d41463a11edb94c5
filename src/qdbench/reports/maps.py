"""A small picture of an archive on which elites are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import numpy as np

from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Grid
from qdbench.reports.heatmaps import Plane, draw_archive, fitness_limits
from qdbench.reports.raster import axes_of
from qdbench.reports.style import SMALL, style

Spot = tuple[float, float]
"""A place in a picture: shares of its width, from the left, and of its height, from the top."""
_DPI = 110


def archive_map(
    archive: Archive, plane: Plane, elites: Sequence[tuple[Sequence[float], float]]
) -> tuple[bytes, tuple[int, int], list[Spot]]:
    """Return a PNG of an archive, its size in pixels, and where elites are, given descriptor and fitness."""
    from matplotlib.figure import Figure

    dimensions = len(archive.geometry.bounds)
    size = (3.5, 2.0) if dimensions == 1 else (3.5, 3.1)
    with style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        limits = fitness_limits(archive, if_empty=(0.0, 1.0))
        colours = draw_archive(axes, archive, plane, limits)
        if dimensions > 1:
            figure.colorbar(colours, ax=axes, label="fitness", aspect=25)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set_fontsize(SMALL)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        places = axes.transData.transform([_place(archive, plane, *elite) for elite in elites])
        width, height = figure.get_size_inches() * figure.dpi
        low, high = axes.bbox.get_points()
        file = BytesIO()
        figure.savefig(file, format="png", dpi=_DPI)
    inside = np.clip(places, low, high)  # a descriptor outside the bounds is at the border
    spots = [(float(x / width), float(1 - y / height)) for x, y in inside]
    return file.getvalue(), (round(size[0] * _DPI), round(size[1] * _DPI)), spots


def _place(
    archive: Archive, plane: Plane, descriptor: Sequence[float], fitness: float
) -> tuple[float, float]:
    """Return where an elite is drawn, in the coordinates of the axes."""
    dimensions = len(archive.geometry.bounds)
    if dimensions == 1:
        return descriptor[0], fitness
    if dimensions == 2:
        return descriptor[0], descriptor[1]
    grid = archive.geometry if isinstance(archive.geometry, Grid) else plane.grid
    cell = np.unravel_index(int(grid.cells(np.array([descriptor]))[0]), grid.shape)
    x, y = (
        int(np.ravel_multi_index([cell[i] for i in along], [grid.shape[i] for i in along])) + 0.5
        for along in axes_of(dimensions)
    )
    return x, y
