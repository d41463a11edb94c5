"""An archive as fitness values on a plane: the numbers behind every picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Grid
from qdbench.archives.layout import PIXELS, axes_of, drawn_on, nested, rows_in_cells, rows_on_plane, values_at

__all__ = ["PIXELS", "Image", "axes_of", "nested", "on_grid", "pooled", "raster"]

Image = NDArray[np.float64]  #: (rows, columns) fitness; NaN where there is no elite


def raster(archive: Archive, grid: Grid) -> Image:
    """Return the best fitness at every place. A CVT with one or two dimensions keeps its true regions.

    `grid` is the task's grid, for archives that cannot be drawn directly.
    """
    elites = archive.elites
    drawn = drawn_on(archive.geometry, grid)
    return values_at(rows_on_plane(drawn, elites.descriptors, elites.fitness), elites.fitness)


def on_grid(archive: Archive, grid: Grid) -> NDArray[np.float64]:
    """Return the best fitness in every cell of the archive's grid, or of the task's grid if it has none."""
    drawn = archive.geometry if isinstance(archive.geometry, Grid) else grid
    elites = archive.elites
    return values_at(
        rows_in_cells(drawn.cells(elites.descriptors), elites.fitness, drawn.shape), elites.fitness
    )


def pooled(image: Image, columns: int, rows: int) -> tuple[Image, tuple[int, int]]:
    """Return a smaller image with the fittest of every block, and the size of a block, (columns, rows)."""
    height, width = image.shape
    across, up = -(-width // columns), -(-height // rows)
    padded = np.pad(image, ((0, -height % up), (0, -width % across)), constant_values=np.nan)
    blocks = padded.reshape(len(padded) // up, up, -1, across)
    return np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1), (across, up)
