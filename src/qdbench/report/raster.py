"""An archive as fitness on a plane: the numbers behind every picture of it.

Descriptors of more than two dimensions are nested: the 1st, 3rd, 5th run along x, the 2nd, 4th, 6th along
y; earlier ones choose the block, later ones the place in it. On an axis that dimensions i, j, k share, the
cell is (index_i * n_j + index_j) * n_k + index_k. Rows count upwards: row 0 is the lowest.
"""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Cvt, Grid

Image = NDArray[np.float64]  #: (rows, columns) fitness; NaN where there is no elite

PIXELS = {1: 3600, 2: 1000}
"""How finely the regions of a CVT are drawn, along every dimension, by the number of dimensions."""


class Drawable(Protocol):
    """What a picture needs to know of an archive; a stored one is one."""

    @property
    def fitness(self) -> NDArray[np.float64]:
        """Of the elites, (n,)."""

    @property
    def descriptors(self) -> NDArray[np.float64]:
        """Of the elites, (n, dimensions)."""

    @property
    def cells(self) -> NDArray[np.int64]:
        """Of the elites, (n,)."""

    @property
    def kind(self) -> str:
        """`grid`, `cvt` or `unstructured`."""

    @property
    def geometry(self) -> dict[str, NDArray[Any]]:
        """descriptor_bounds (dimensions, 2); and shape, centroids or threshold."""

    @property
    def about(self) -> dict[str, Any]:
        """grid_shape and fitness_bounds, among others."""


def raster(archive: Drawable) -> Image:
    """Return the best fitness at every place; a CVT of one or two dimensions keeps its true regions."""
    dimensions = len(archive.geometry["descriptor_bounds"])
    if archive.kind == "cvt" and dimensions in PIXELS:
        return nested(_regions(archive, PIXELS[dimensions]))
    return nested(on_grid(archive))


def on_grid(archive: Drawable) -> NDArray[np.float64]:
    """Return the best fitness in every cell of its grid, or of the task's grid if it has none of its own."""
    if archive.kind == "grid":
        return _best(archive, archive.cells, archive.geometry["shape"].tolist())
    grid = Grid(archive.geometry["descriptor_bounds"], archive.about["grid_shape"])
    return _best(archive, grid.cells(archive.descriptors), grid.shape)


def nested(values: NDArray[np.float64]) -> Image:
    """Lay an array of any dimensions out on a plane, every cell once."""
    x, y = axes_of(values.ndim)
    return values.transpose(*y, *x).reshape(-1, prod(values.shape[i] for i in x))


def axes_of(dimensions: int) -> tuple[range, range]:
    """Return which dimensions, counted from 0, share the x axis and which the y axis, outermost first."""
    return range(0, dimensions, 2), range(1, dimensions, 2)


def pooled(image: Image, columns: int, rows: int) -> tuple[Image, tuple[int, int]]:
    """Return a smaller image of the fittest of every block, and a block's (columns, rows)."""
    height, width = image.shape
    across, up = -(-width // columns), -(-height // rows)
    padded = np.pad(image, ((0, -height % up), (0, -width % across)), constant_values=np.nan)
    blocks = padded.reshape(len(padded) // up, up, -1, across)
    return np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1), (across, up)


def _regions(archive: Drawable, pixels: int) -> NDArray[np.float64]:
    """Return for every pixel of the box the fitness in the region it lies in."""
    bounds, centroids = archive.geometry["descriptor_bounds"], archive.geometry["centroids"]
    middles = (np.arange(pixels) + 0.5) / pixels
    along = [low + middles * (high - low) for low, high in bounds]
    places = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
    region = Cvt(bounds, centroids).cells(places.reshape(-1, len(bounds)))
    return _best(archive, archive.cells, (len(centroids),))[region].reshape(places.shape[:-1])


def _best(archive: Drawable, cells: NDArray[np.int64], shape: Any) -> NDArray[np.float64]:
    values = np.full(prod(shape), np.nan)
    np.fmax.at(values, cells, archive.fitness)
    return values.reshape(shape)
