"""An archive of elites, at most one per cell: the insertion rule and the memory.

The rule: a solution enters the cell of its descriptor if the cell is empty, or if the solution is strictly
fitter than the elite in it. Of two equal solutions the earlier one stays. Invalid ones never enter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cells, Geometry
from qdbench.checks import checked_count, shown
from qdbench.errors import InvalidInput

RESERVED_BYTES = 2**31
"""Memory that is reserved at once, enough for each of the nine tasks. The operating system provides the pages
of a large array when they are first written. So memory use grows with the elites, without copying them."""

USUAL_CELLS = 10_000


class Archive:
    """Elites, at most one per cell, in the order in which their cells were first filled.

    `geometry` says which descriptor belongs to which cell. `samples` is the largest number of evaluations
    that an elite may be the mean of. Memory use grows with the number of elites.
    """

    def __init__(self, geometry: Geometry, n_parameters: int, *, samples: int = 1) -> None:
        if not isinstance(geometry, Geometry):
            raise InvalidInput(f"geometry is {shown(geometry)}; give a qdbench.Grid")
        n_parameters = checked_count("n_parameters", n_parameters, 0)
        samples = checked_count("samples", samples)
        self.geometry = geometry
        self._n = 0
        dimensions = len(geometry.bounds)
        room = min(geometry.n_cells or USUAL_CELLS, RESERVED_BYTES // (4 * n_parameters + 64) + 1)
        self._columns = Evaluated(
            solutions=np.empty((room, n_parameters), np.float32),
            fitness=np.empty(room),
            descriptors=np.empty((room, dimensions)),
            evaluations=np.empty((room, samples), np.int64),
            seeds=np.empty((room, samples), np.uint64),
        )
        self._cells = np.empty(room, np.int64)
        self._slots: dict[int, int] = {}  # cell -> row

    def __len__(self) -> int:
        return self._n

    @property
    def elites(self) -> Evaluated:
        """The elites, read-only. Valid until the next insertion."""
        elites = self._columns[: self._n]
        for field in fields(elites):
            getattr(elites, field.name).flags.writeable = False
        return elites

    @property
    def cells(self) -> Cells:
        """The cells of the elites, read-only. Valid until the next insertion."""
        cells = self._cells[: self._n]
        cells.flags.writeable = False
        return cells

    def insert(self, batch: Evaluated) -> int:
        """Insert solutions, as if one by one in their order; return how many cells changed."""
        self._require_fitting(batch)
        rows = np.flatnonzero(batch.valid)
        winners, cells = self._contest(batch.fitness[rows], batch.descriptors[rows])
        self._put(batch, rows[winners], cells)
        return len(cells)

    def _require_fitting(self, batch: Evaluated) -> None:
        """Refuse rows of another shape before anything is changed."""
        if not isinstance(batch, Evaluated):
            raise InvalidInput(f"{shown(batch)} is nothing to insert; give a qdbench.Evaluated")
        columns = self._columns
        fits = (
            batch.solutions.shape[1:] == columns.solutions.shape[1:]
            and batch.descriptors.shape[1:] == columns.descriptors.shape[1:]
            and batch.evaluations.shape == batch.seeds.shape
            and batch.evaluations.shape[1] <= columns.evaluations.shape[1]
        )
        if not fits:
            raise InvalidInput(
                f"solutions {batch.solutions.shape}, descriptors {batch.descriptors.shape} and evaluations "
                f"{batch.evaluations.shape} do not fit into an archive of {columns.solutions.shape[1]} "
                f"parameters, {columns.descriptors.shape[1]} dimensions and up to "
                f"{columns.evaluations.shape[1]} samples"
            )

    def _contest(
        self, fitness: NDArray[np.float64], descriptors: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], Cells]:
        """Return which candidates end up in the archive, and in which cells."""
        cells = self.geometry.cells(descriptors)
        order = np.lexsort((-fitness, cells))  # stable: of equal ones the first
        changes = np.diff(cells[order], prepend=-1) != 0
        best = order[changes]
        _, arrivals = np.unique(cells, return_index=True)  # when each cell was first reached
        best = best[np.argsort(arrivals)]
        rows = self._rows(cells[best])
        incumbent = np.full(len(best), -np.inf)
        incumbent[rows >= 0] = self._columns.fitness[rows[rows >= 0]]
        best = best[fitness[best] > incumbent]
        return best, cells[best]

    def _rows(self, cells: Cells) -> NDArray[np.int64]:
        """Return the rows that hold these cells, -1 for an empty cell."""
        return np.array([self._slots.get(cell, -1) for cell in cells.tolist()], np.int64)

    def _put(self, batch: Evaluated, winners: NDArray[np.intp], cells: Cells) -> None:
        rows = self._rows(cells)
        new = np.flatnonzero(rows < 0)
        rows[new] = np.arange(self._n, self._n + len(new))
        self._slots.update(zip(cells[new].tolist(), rows[new].tolist(), strict=True))
        self._n += len(new)
        if self._n > len(self._cells):
            self._grow(max(self._n, len(self._cells) * 3 // 2))
        self._cells[rows] = cells
        for name in ("fitness", "descriptors"):
            getattr(self._columns, name)[rows] = getattr(batch, name)[winners]
        known = batch.evaluations.shape[1]
        for name, filler in (("evaluations", -1), ("seeds", 0)):
            column = getattr(self._columns, name)
            column[rows, :known] = getattr(batch, name)[winners]
            column[rows, known:] = filler
        for row, winner in zip(rows.tolist(), winners.tolist(), strict=True):
            self._columns.solutions[row] = batch.solutions[winner]  # one by one: no temporary copy of many

    def _grow(self, capacity: int) -> None:

        def larger(array: NDArray[Any]) -> NDArray[Any]:
            copy = np.empty((capacity, *array.shape[1:]), array.dtype)
            copy[: len(array)] = array
            return copy

        columns = {f.name: larger(getattr(self._columns, f.name)) for f in fields(self._columns)}
        self._columns, self._cells = Evaluated(**columns), larger(self._cells)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the elites and their cells, row by row. Valid until the next insertion."""
        elites = self.elites
        return {"cells": self.cells, **{field.name: getattr(elites, field.name) for field in fields(elites)}}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Become the archive that `state` was taken from. Its arrays are copied."""
        names = ["cells", *(field.name for field in fields(Evaluated))]
        if not isinstance(state, Mapping) or not all(isinstance(state.get(n), np.ndarray) for n in names):
            raise InvalidInput(f"the state is {shown(state)}; give what `state` returned")
        elites, cells = Evaluated(**{name: state[name] for name in names[1:]}), state["cells"]
        self._require_fitting(elites)
        if cells.shape != elites.fitness.shape or cells.dtype.kind not in "iu":
            raise InvalidInput(f"the state has {cells.shape} cells for {len(elites)} elites")
        self._n = len(cells)
        if self._n > len(self._cells):
            self._grow(self._n)
        self._cells[: self._n] = cells
        for field in fields(Evaluated):
            getattr(self._columns, field.name)[: self._n] = getattr(elites, field.name)
        self._slots = {cell: row for row, cell in enumerate(cells.tolist())}
