"""An archive without cells: elites keep a minimum distance from each other.

The rule of Cully and Demiris (2018, "Quality and diversity optimization: a unifying modular framework"),
without their epsilon, depends on how many elites are within `threshold` of the new solution:

- none: it is added;
- exactly one: it replaces that elite if it is strictly fitter;
- two or more: it is rejected. If it replaced one, it would be too close to the other.

So elites are always farther than the threshold from each other. Distances are Euclidean, between normalised
descriptors; nothing is clipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cells, Geometry, Unstructured

CHUNK = 256
"""Candidates that are compared at once. More would only make longer lists of neighbours."""
FARTHEST = 1e150
"""Widths of the box; whatever is farther away counts as so far."""


class UnstructuredArchive(Archive):
    """Elites that are farther than a threshold from each other; each has a cell of its own."""

    geometry: Unstructured

    def __init__(self, geometry: Unstructured, n_parameters: int, *, samples: int = 1) -> None:
        super().__init__(geometry, n_parameters, samples=samples)
        self._places = np.empty((0, len(geometry.bounds)))  # normalised descriptors of the elites

    def insert(self, batch: Evaluated) -> int:
        """Insert solutions, as if one by one in their order; return how many elites changed."""
        return sum(super(UnstructuredArchive, self).insert(part) for part in _parts(batch))

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become the archive that `state` was taken from."""
        super().restore(state)
        self._places = self._shares(self.elites.descriptors)

    def _contest(
        self, fitness: NDArray[np.float64], descriptors: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], Cells]:
        """Return which candidates end up in the archive, and in which rows."""
        old, candidates = self._places, self._shares(descriptors)
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

    def _shares(self, descriptors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return descriptors in units of the box, kept within what can be squared."""
        with np.errstate(over="ignore"):
            return np.clip(self.geometry.box.shares(descriptors), -FARTHEST, FARTHEST)

    def _near_elites(self, candidates: NDArray[np.float64]) -> list[list[int]]:
        """Return for each candidate the rows of the elites within the threshold."""
        if not len(self._places) or not len(candidates):
            return [[] for _ in candidates]
        threshold = self.geometry.threshold
        lists = KDTree(self._places).query_ball_point(candidates, threshold * (1 + 1e-9))
        counts = [len(found) for found in lists]
        found = np.concatenate(lists).astype(np.intp)
        # the tree may round its sums differently from case to case, so one formula decides
        apart = self._distances(self._places[found], np.repeat(candidates, counts, axis=0))
        rows = iter(zip(found.tolist(), (apart <= threshold).tolist(), strict=True))
        return [[row for row, is_near in islice(rows, count) if is_near] for count in counts]

    @staticmethod
    def _distances(here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
        squares = np.square(here - there)
        total = squares[..., 0].copy()
        for dimension in range(1, squares.shape[-1]):  # always in this order, for any shape
            total += squares[..., dimension]
        return np.sqrt(total)


def _parts(batch: Evaluated) -> list[Evaluated]:
    return [batch[start : start + CHUNK] for start in range(0, len(batch), CHUNK)]


def empty_archive(geometry: Geometry, n_parameters: int = 0, *, samples: int = 1) -> Archive:
    """Return an empty archive of this geometry."""
    if isinstance(geometry, Unstructured):
        return UnstructuredArchive(geometry, n_parameters, samples=samples)
    return Archive(geometry, n_parameters, samples=samples)
