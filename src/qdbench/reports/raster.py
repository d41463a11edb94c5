"""An archive as fitness values on a plane: the numbers behind every picture.

More than two descriptor dimensions are nested: dimensions 1, 3, 5 are along x, dimensions 2, 4, 6 along y.
Earlier ones select a block, later ones the place in it. If an axis has the dimensions i, j, k, the place of a
cell is (index_i * n_j + index_j) * n_k + index_k. Row 0 is the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Cells, Cvt, Grid

Image = NDArray[np.float64]  #: (rows, columns) fitness; NaN where there is no elite

PIXELS = {1: 3600, 2: 1000}
"""Resolution of the regions of a CVT along every dimension, by the number of dimensions."""


def raster(archive: Archive, grid: Grid) -> Image:
    """Return the best fitness at every place. A CVT with one or two dimensions keeps its true regions.

    `grid` is the task's grid, for archives that cannot be drawn directly.
    """
    dimensions = len(archive.geometry.bounds)
    if isinstance(archive.geometry, Cvt) and dimensions in PIXELS:
        return nested(_regions(archive, archive.geometry, PIXELS[dimensions]))
    return nested(on_grid(archive, grid))


def on_grid(archive: Archive, grid: Grid) -> NDArray[np.float64]:
    """Return the best fitness in every cell of the archive's grid, or of the task's grid if it has none."""
    if isinstance(archive.geometry, Grid):
        return _best(archive, archive.cells, archive.geometry.shape)
    return _best(archive, grid.cells(archive.elites.descriptors), grid.shape)


def nested(values: NDArray[np.float64]) -> Image:
    """Arrange an array of any number of dimensions on a plane; every cell appears once."""
    x, y = axes_of(values.ndim)
    return values.transpose(*y, *x).reshape(-1, prod(values.shape[i] for i in x))


def axes_of(dimensions: int) -> tuple[range, range]:
    """Return the dimensions (from 0) on the x axis and on the y axis, outermost first."""
    return range(0, dimensions, 2), range(1, dimensions, 2)


def pooled(image: Image, columns: int, rows: int) -> tuple[Image, tuple[int, int]]:
    """Return a smaller image with the fittest of every block, and the size of a block, (columns, rows)."""
    height, width = image.shape
    across, up = -(-width // columns), -(-height // rows)
    padded = np.pad(image, ((0, -height % up), (0, -width % across)), constant_values=np.nan)
    blocks = padded.reshape(len(padded) // up, up, -1, across)
    return np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1), (across, up)


def _regions(archive: Archive, geometry: Cvt, pixels: int) -> NDArray[np.float64]:
    """Return for every pixel the fitness of the CVT cell that it is in."""
    middles = (np.arange(pixels) + 0.5) / pixels
    along = [low + middles * (high - low) for low, high in geometry.bounds]
    places = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
    region = geometry.cells(places.reshape(-1, len(geometry.bounds)))
    return _best(archive, archive.cells, (geometry.n_cells,))[region].reshape(places.shape[:-1])


def _best(archive: Archive, cells: Cells, shape: Sequence[int]) -> NDArray[np.float64]:
    values = np.full(prod(shape), np.nan)
    np.fmax.at(values, cells, archive.elites.fitness)
    return values.reshape(shape)
