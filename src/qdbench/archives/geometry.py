"""How descriptors are divided into cells: a grid, a CVT, or no cells but a minimum distance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from qdbench.checks import BoundsLike, checked_column, checked_geometry
from qdbench.errors import InvalidInput
from qdbench.seeds import stream

Cells = NDArray[np.int64]

SAMPLES_PER_CENTROID = 20
LLOYD_STEPS = 10


@runtime_checkable
class Geometry(Protocol):
    """How descriptors are divided into cells."""

    @property
    def kind(self) -> str:
        """The name of the geometry in files."""

    @property
    def bounds(self) -> NDArray[np.float64]:
        """The descriptor bounds, (dimensions, 2)."""

    @property
    def n_cells(self) -> int | None:
        """The number of cells; None for an unstructured archive."""

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return the cell of every descriptor. Values outside the bounds count into the border cells."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `geometry_from` makes the same geometry."""


def geometry_from(kind: str, arrays: Mapping[str, NDArray[Any]]) -> Geometry:
    """Return the geometry that a file describes."""
    bounds = arrays["descriptor_bounds"]
    if kind == "grid":
        return Grid(bounds, arrays["shape"].tolist())
    if kind == "cvt":
        return Cvt(bounds, arrays["centroids"])
    if kind == "unstructured":
        return Unstructured(bounds, float(arrays["threshold"]))
    raise InvalidInput(f"no geometry {kind!r}; there are grid, cvt and unstructured")


class Box:
    """The descriptor bounds, and descriptors normalised by them."""

    def __init__(self, bounds: ArrayLike) -> None:
        self.bounds = np.array(bounds, np.float64).reshape(-1, 2)  #: (dimensions, 2)
        self._low = self.bounds[:, 0]
        self._width = self.bounds[:, 1] - self._low

    def shares(self, descriptors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return normalised descriptors: 0 to 1 within the bounds."""
        return (descriptors - self._low) / self._width


class Grid:
    """Cells of equal size along every dimension, numbered row by row (the last dimension varies fastest)."""

    kind = "grid"

    def __init__(self, bounds: BoundsLike, shape: Sequence[int]) -> None:
        intervals, self.shape = checked_geometry(bounds, shape)
        self._box = Box(intervals)
        self.bounds = self._box.bounds  #: (dimensions, 2)
        self.n_cells = prod(self.shape)
        self._counts = np.array(self.shape, np.float64)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Grid)
            and self.shape == other.shape
            and np.array_equal(self.bounds, other.bounds)
        )

    __hash__ = None  # type: ignore[assignment]  # nothing needs a grid as a key

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return the cell of every descriptor. Values outside the bounds count into the border cells."""
        descriptors = checked_column("descriptors", descriptors, np.float64, 2)
        if descriptors.shape[1] != len(self.shape) or np.isnan(descriptors).any():
            raise InvalidInput(
                f"descriptors of shape {descriptors.shape} have no cells in {len(self.shape)} dimensions, or "
                "hold NaN; give (n, dimensions), without invalid ones"
            )
        along = np.clip(self._box.shares(descriptors) * self._counts, 0, self._counts - 1)
        cells: Cells = np.ravel_multi_index(tuple(along.astype(np.int64).T), self.shape)
        return cells

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the bounds, and the number of cells along every dimension."""
        return {"descriptor_bounds": self.bounds, "shape": np.array(self.shape, np.int64)}


class Cvt:
    """A centroidal Voronoi tessellation: cells around evenly spread centroids (Vassiliades et al. 2018).

    A descriptor belongs to the nearest centroid. Distances are between normalised descriptors, so that
    dimensions with different units have equal weight. A descriptor outside the bounds is first moved to the
    border, as in a grid.
    """

    kind = "cvt"

    def __init__(self, bounds: ArrayLike, centroids: NDArray[np.float64]) -> None:
        self._box = Box(bounds)
        self.bounds = self._box.bounds  #: (dimensions, 2)
        self.centroids = centroids  #: (cells, dimensions) normalised
        self.n_cells = len(centroids)
        self._tree = KDTree(centroids)

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return the cell of every descriptor: that of the nearest centroid."""
        nearest: NDArray[Any] = self._tree.query(np.clip(self._box.shares(descriptors), 0, 1))[1]
        return nearest.astype(np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the bounds and the normalised centroids."""
        return {"descriptor_bounds": self.bounds, "centroids": self.centroids}


class Unstructured:
    """No cells, only a minimum distance between elites. The cell of an elite is the number of its row."""

    kind = "unstructured"
    n_cells = None

    def __init__(self, bounds: ArrayLike, threshold: float) -> None:
        self.box = Box(bounds)
        self.bounds = self.box.bounds  #: (dimensions, 2)
        self.threshold = threshold
        """The minimum distance between normalised descriptors."""

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return a cell of its own for every descriptor: the number of its row."""
        return np.arange(len(descriptors))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the bounds and the threshold."""
        return {"descriptor_bounds": self.bounds, "threshold": np.array(self.threshold)}


def cell_width(shape: Sequence[int]) -> float:
    """Return the mean width of the cells of a grid, in shares of its box."""
    return float(prod(shape) ** (-1 / len(shape)))


def has_cells_of(own: Geometry, grid: Grid) -> bool:
    """Return whether an archive has the grid's cells, or those of our CVT with as many."""
    if not isinstance(own, Cvt):
        return own == grid
    same_size = np.array_equal(own.bounds, grid.bounds) and own.n_cells == grid.n_cells
    return same_size and np.allclose(own.centroids, centroids(grid.n_cells, len(grid.shape)))


@lru_cache(maxsize=4)
def centroids(n: int, dimensions: int) -> NDArray[np.float64]:
    """Return `n` evenly spread points of the unit cube, always the same: k-means over uniform samples.

    It makes a fixed number of Lloyd's steps from a low-discrepancy start. The samples come from a fixed
    random stream. So every replication of a task has the same cells.
    """
    samples = stream(0, "cvt", n, dimensions).random((n * SAMPLES_PER_CENTROID, dimensions))
    points = _low_discrepancy(n, dimensions)
    for _ in range(LLOYD_STEPS):
        nearest = _nearest(points, samples)
        counts = np.bincount(nearest, minlength=n)
        sums = [np.bincount(nearest, weights=column, minlength=n) for column in samples.T]
        reached = counts > 0
        points[reached] = np.stack(sums, axis=1)[reached] / counts[reached, None]
    points.flags.writeable = False
    return points


def _nearest(points: NDArray[np.float64], samples: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the nearest point of every sample, on all cores.

    In threads of our own: SciPy's would go on writing when an interruption leaves its call.
    """
    tree, parts = KDTree(points), np.array_split(samples, os.cpu_count() or 1)
    with ThreadPoolExecutor(len(parts)) as pool:  # waits for its threads, whatever happens
        found = list(pool.map(lambda part: tree.query(part)[1], parts))
    return np.concatenate(found)


def _low_discrepancy(n: int, dimensions: int) -> NDArray[np.float64]:
    """Return an additive recurrence with the generalised golden ratio, the root of x^(d+1) = x + 1."""
    ratio = 2.0
    for _ in range(60):  # a contraction: far more steps than double precision needs
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    return np.modf(0.5 + np.arange(1, n + 1)[:, None] * steps)[0]
