"""An archive without cells: elites keep their distance from one another.

The rule, after Cully and Demiris (2018, "Quality and diversity optimization: a unifying modular
framework"), without their epsilon: a solution farther than `threshold` from every elite is added. One
within the threshold of exactly one elite competes with it, and replaces it if strictly fitter. One
within the threshold of two or more is turned away: replacing one would leave it too close to the other.
So elites are always farther than the threshold from each other. Distances are Euclidean, in shares of
the box of descriptors; nothing is clipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from qdbench.archives.archive import Archive, Cells
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Box

CHUNK = 256
"""Candidates that are compared at once; more would only make longer lists of neighbours."""


class Apart:
    """No cells, only a distance to keep; every elite has a place of its own, numbered by its row."""

    kind = "unstructured"
    n_cells = None

    def __init__(self, bounds: ArrayLike, threshold: float) -> None:
        self.box = Box(bounds)
        self.threshold = threshold

    def cells(self, descriptors: NDArray[np.float64]) -> Cells:
        """Return one place per descriptor: there is nothing to share."""
        return np.arange(len(descriptors))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the bounds and the threshold."""
        return {"descriptor_bounds": self.box.bounds, "threshold": np.array(self.threshold)}


class UnstructuredArchive(Archive):
    """Elites that are farther than a threshold from each other; each is the only one of its cell."""

    geometry: Apart

    def __init__(self, geometry: Apart, n_parameters: int, *, samples: int = 1) -> None:
        super().__init__(geometry, n_parameters, samples=samples)
        self._places = np.empty((0, len(geometry.box.bounds)))  # of the elites, in shares of the box

    def insert(self, batch: Evaluated) -> int:
        """Insert solutions as if one by one in their order; return how many elites changed."""
        return sum(super(UnstructuredArchive, self).insert(part) for part in _parts(batch))

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become the archive that `state` was taken from."""
        super().restore(state)
        self._places = self.geometry.box.shares(self.elites.descriptors)

    def _contest(
        self, fitness: NDArray[np.float64], descriptors: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], Cells]:
        """Return which candidates end up in the archive, and in which rows."""
        old, candidates = self._places, self.geometry.box.shares(descriptors)
        near_old, near_candidates = self._near(old, candidates), self._near(candidates, candidates)
        holder: dict[int, int] = {}  # row -> the candidate that took it
        row_of: dict[int, int] = {}  # candidate that is an elite now -> its row
        n, elite_fitness = len(old), self.elites.fitness
        for i in range(len(candidates)):
            rows = [row for row in near_old[i] if row not in holder]
            rows += [row_of[j] for j in near_candidates[i] if j < i and j in row_of]
            if not rows:
                row, n = n, n + 1
            elif len(rows) == 1:
                row = rows[0]
                incumbent = fitness[holder[row]] if row in holder else elite_fitness[row]
                if not fitness[i] > incumbent:
                    continue
                row_of.pop(holder.get(row, -1), None)
            else:
                continue
            holder[row], row_of[i] = i, row
        cells = np.array(sorted(holder), np.int64)
        winners = np.array([holder[row] for row in cells.tolist()], np.intp)
        places = np.concatenate([old, np.empty((n - len(old), old.shape[1]))])
        places[cells] = candidates[winners]
        self._places = places
        return winners, cells

    def _near(self, points: NDArray[np.float64], queries: NDArray[np.float64]) -> list[list[int]]:
        """Return for each query the points within the threshold."""
        if not len(points) or not len(queries):
            return [[] for _ in queries]
        threshold = self.geometry.threshold
        lists = KDTree(points).query_ball_point(queries, threshold * (1 + 1e-9))
        counts = [len(found) for found in lists]
        found = np.concatenate(lists).astype(np.intp)
        # the tree's sums may round differently from case to case; the last word has one formula
        apart = np.square(points[found] - np.repeat(queries, counts, axis=0)).sum(axis=1)
        within = (np.sqrt(apart) <= threshold).tolist()
        rows = iter(zip(found.tolist(), within, strict=True))
        return [[j for j, is_near in islice(rows, count) if is_near] for count in counts]


def _parts(batch: Evaluated) -> list[Evaluated]:
    return [batch[start : start + CHUNK] for start in range(0, len(batch), CHUNK)]
