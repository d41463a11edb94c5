"""Where elites are on a plane: what every picture of an archive shares.

More than two descriptor dimensions are nested: dimensions 1, 3, 5 are along x, dimensions 2, 4, 6 along y.
Earlier ones select a block, later ones the place in it. If an axis has the dimensions i, j, k, the place of a
cell is (index_i * n_j + index_j) * n_k + index_k. Row 0 is the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from qdbench.archives.geometry import Cells, Cvt, Geometry, Grid

Rows = NDArray[np.int64]  #: numbers of elites; -1 where there is none

PIXELS = {1: 3600, 2: 1000}
"""Resolution of the regions of a CVT along every dimension, by the number of dimensions."""


def drawn_on(geometry: Geometry, grid: Grid) -> Grid | Cvt:
    """Return the cells that a picture shows: the archive's own, or the task's grid if they cannot be drawn.

    Grids can always be drawn, CVTs with one or two dimensions.
    """
    if isinstance(geometry, Grid):
        return geometry
    return geometry if isinstance(geometry, Cvt) and len(geometry.bounds) in PIXELS else grid


def rows_on_plane(
    geometry: Grid | Cvt,
    descriptors: NDArray[np.float64],
    fitness: NDArray[np.float64],
    *,
    pixels: int | None = None,
) -> Rows:
    """Return which elite is at every place of the plane, (rows, columns): the fittest of each cell.

    A place is a cell of a grid, or one of `pixels` (by default PIXELS) along each of one or two dimensions of
    a CVT.
    """
    if isinstance(geometry, Grid):
        return nested(rows_in_cells(geometry.cells(descriptors), fitness, geometry.shape))
    found = rows_in_cells(geometry.cells(descriptors), fitness, (geometry.n_cells,))
    return nested(found[_regions(geometry, pixels or PIXELS[len(geometry.bounds)])])


def rows_in_cells(cells: Cells, fitness: NDArray[np.float64], shape: Sequence[int]) -> Rows:
    """Return the row of the fittest elite in every cell; of equal ones the first."""
    rows = np.full(prod(shape), -1, np.int64)
    order = np.lexsort((-np.arange(len(fitness)), fitness))
    rows[cells[order]] = order  # of several for one cell, the last is kept
    return rows.reshape(shape)


def values_at(rows: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the value of the elite at every place; NaN where there is none."""
    return np.append(values, np.nan)[rows]


def nested(values: NDArray[Any]) -> NDArray[Any]:
    """Arrange an array of any number of dimensions on a plane; every cell appears once."""
    x, y = axes_of(values.ndim)
    return values.transpose(*y, *x).reshape(-1, prod(values.shape[i] for i in x))


def axes_of(dimensions: int) -> tuple[range, range]:
    """Return the dimensions (from 0) on the x axis and on the y axis, outermost first."""
    return range(0, dimensions, 2), range(1, dimensions, 2)


def nested_places(cells: Cells, shape: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns and the rows of cells of a grid on the plane."""
    places = np.unravel_index(cells, tuple(shape))
    columns, rows = (
        np.ravel_multi_index([places[i] for i in axis], [shape[i] for i in axis]) if axis else 0 * cells
        for axis in axes_of(len(shape))
    )
    return np.asarray(columns), np.asarray(rows)


def rows_of_discs(places: NDArray[np.float64], radius: float, pixels: int) -> Rows:
    """Return which elite is at every pixel of the unit square: the nearest, if it is not beyond `radius`."""
    middles = (np.arange(pixels) + 0.5) / pixels
    points = np.stack(np.meshgrid(middles, middles, indexing="xy"), axis=-1).reshape(-1, 2)
    if not len(places):
        return np.full((pixels, pixels), -1, np.int64)
    apart, nearest = KDTree(places).query(points, distance_upper_bound=radius)
    return np.where(np.isfinite(apart), nearest, -1).astype(np.int64).reshape(pixels, pixels)


def _regions(geometry: Cvt, pixels: int) -> Cells:
    """Return the CVT cell of every pixel."""
    middles = (np.arange(pixels) + 0.5) / pixels
    along = [low + middles * (high - low) for low, high in geometry.bounds]
    places = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
    return geometry.cells(places.reshape(-1, len(geometry.bounds))).reshape(places.shape[:-1])
