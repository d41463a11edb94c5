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
        near_elites = self._near_elites(candidates)
        near = self._distances(candidates[:, None], candidates[None]) <= self.geometry.threshold
        holder: dict[int, int] = {}  # row -> the candidate that took it
        row_of = np.full(len(candidates), -1)  # candidate -> the row it holds
        n, elite_fitness = len(old), self.elites.fitness
        for i, found in enumerate(near_elites):
            rows = [row for row in found if row not in holder]
            rows += row_of[near[i] & (row_of >= 0)].tolist()
            if not rows:
                row, n = n, n + 1
            elif len(rows) == 1:
                row = rows[0]
                incumbent = fitness[holder[row]] if row in holder else elite_fitness[row]
                if not fitness[i] > incumbent:
                    continue
                if row in holder:
                    row_of[holder[row]] = -1
            else:
                continue
            holder[row], row_of[i] = i, row
        cells = np.array(sorted(holder), np.int64)
        winners = np.array([holder[row] for row in cells.tolist()], np.intp)
        self._places = np.concatenate([old, np.empty((n - len(old), old.shape[1]))])
        self._places[cells] = candidates[winners]
        return winners, cells

    def _near_elites(self, candidates: NDArray[np.float64]) -> list[list[int]]:
        """Return for each candidate the rows of the elites within the threshold."""
        if not len(self._places) or not len(candidates):
            return [[] for _ in candidates]
        threshold = self.geometry.threshold
        lists = KDTree(self._places).query_ball_point(candidates, threshold * (1 + 1e-9))
        counts = [len(found) for found in lists]
        found = np.concatenate(lists).astype(np.intp)
        # the tree's sums may round differently from case to case; the last word has one formula
        apart = self._distances(self._places[found], np.repeat(candidates, counts, axis=0))
        rows = iter(zip(found.tolist(), (apart <= threshold).tolist(), strict=True))
        return [[row for row, is_near in islice(rows, count) if is_near] for count in counts]

    @staticmethod
    def _distances(here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
        squares = np.square(here - there)
        total = squares[..., 0].copy()
        for dimension in range(1, squares.shape[-1]):  # in this order, whatever the shape
            total += squares[..., dimension]
        return np.sqrt(total)


def _parts(batch: Evaluated) -> list[Evaluated]:
    return [batch[start : start + CHUNK] for start in range(0, len(batch), CHUNK)]
