"""Two fixed ways to divide the box of descriptors: a grid, and the regions of a Voronoi tessellation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from qdbench.archives.archive import Cells
from qdbench.seeds import stream

SAMPLES_PER_CENTROID = 20
LLOYD_STEPS = 10


class Box:
    """The bounds of a descriptor, and descriptors as shares of it."""

    def __init__(self, bounds: ArrayLike) -> None:
        self.bounds = np.array(bounds, np.float64).reshape(-1, 2)  #: (dimensions, 2)
        self._low = self.bounds[:, 0]
        self._width = self.bounds[:, 1] - self._low

    def shares(self, descriptors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return descriptors in units of the box: 0 to 1 inside it."""
        return (descriptors - self._low) / self._width


class Grid:
    """Equal cells along every dimension, numbered row by row (the last dimension runs fastest)."""

    kind = "grid"

    def __init__(self, bounds: ArrayLike, shape: Sequence[int]) -> None:
        self._box = Box(bounds)
        self.shape = tuple(shape)
        self.n_cells = prod(self.shape)
        self._counts = np.array(self.shape, np.float64)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Grid)
            and self.shape == other.shape
            and np.array_equal(self._box.bounds, other._box.bounds)
        )

    __hash__ = None  # type: ignore[assignment]  # nothing needs a grid as a key

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return the cell of every descriptor; values outside the bounds count into the border."""
        along = np.clip(self._box.shares(descriptors) * self._counts, 0, self._counts - 1)
        cells: Cells = np.ravel_multi_index(tuple(along.astype(np.int64).T), self.shape)
        return cells

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the bounds, and the number of cells along every dimension."""
        return {"descriptor_bounds": self._box.bounds, "shape": np.array(self.shape, np.int64)}


class Cvt:
    """Cells around centroids that are spread evenly over the box (Vassiliades et al. 2018).

    A descriptor belongs to the nearest centroid, measured in shares of the box, so that dimensions of
    different units weigh alike; outside the box it is moved to the border first, as in a grid.
    """

    kind = "cvt"

    def __init__(self, bounds: ArrayLike, centroids: NDArray[np.float64]) -> None:
        self._box = Box(bounds)
        self.centroids = centroids  #: (cells, dimensions) in shares of the box
        self.n_cells = len(centroids)
        self._tree = KDTree(centroids)

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return the cell of every descriptor: that of the nearest centroid."""
        nearest: NDArray[Any] = self._tree.query(np.clip(self._box.shares(descriptors), 0, 1))[1]
        return nearest.astype(np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the bounds, and the centroids in shares of the box."""
        return {"descriptor_bounds": self._box.bounds, "centroids": self.centroids}


@lru_cache(maxsize=4)
def centroids(n: int, dimensions: int) -> NDArray[np.float64]:
    """Return `n` evenly spread points of the unit box, always the same: k-means over uniform samples.

    A fixed number of Lloyd's steps from a low-discrepancy start, the samples from a fixed stream, so that
    every replication of a task has the same cells.
    """
    samples = stream(0, "cvt", n, dimensions).random((n * SAMPLES_PER_CENTROID, dimensions))
    points = _low_discrepancy(n, dimensions)
    for _ in range(LLOYD_STEPS):
        nearest = KDTree(points).query(samples, workers=-1)[1]
        counts = np.bincount(nearest, minlength=n)
        sums = [np.bincount(nearest, weights=column, minlength=n) for column in samples.T]
        reached = counts > 0
        points[reached] = np.stack(sums, axis=1)[reached] / counts[reached, None]
    points.flags.writeable = False
    return points


def _low_discrepancy(n: int, dimensions: int) -> NDArray[np.float64]:
    """Return an additive recurrence with the generalised golden ratio, the root of x^(d+1) = x + 1."""
    ratio = 2.0
    for _ in range(60):  # a contraction: far more steps than double precision needs
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    return np.modf(0.5 + np.arange(1, n + 1)[:, None] * steps)[0]
