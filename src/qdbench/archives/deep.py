"""An archive with depth: several solutions per cell, each with all its samples.

The rule: a solution enters the cell of its mean descriptor if the cell has a free place, or if it is
strictly better than the worst there, which then leaves. Of two equal solutions the earlier one stays. A batch
gives the same as its solutions one by one. With `random`, a full cell loses a random solution instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cells, Geometry
from qdbench.archives.samples import extended, padded
from qdbench.checks import checked_count, checked_number, usable
from qdbench.errors import InvalidInput

Rows = NDArray[np.int64]
GIGABYTE = 1e9
_OF_A_SAMPLE = 16  # bytes: its number and its seed


class DeepArchive:
    """Up to `depth` solutions per cell, each the mean of up to `samples` evaluations.

    Rows are compact. The first `n_filled` rows are the best of each filled cell: `best` is a view, nothing is
    copied. A table leads from a cell to its rows, best first. Memory is bounded by cells × depth rows; more
    than `memory_gb` is refused. Pages are used when they are first written.
    """

    def __init__(
        self, geometry: Geometry, n_parameters: int, *, depth: int, samples: int = 1, memory_gb: float = 4.0
    ) -> None:
        self.depth, self.samples = checked_count("depth", depth), checked_count("samples", samples)
        n_parameters = checked_count("n_parameters", n_parameters)
        if geometry.n_cells is None:
            raise InvalidInput("an archive with depth needs cells; give a grid or a CVT")
        self.geometry, dimensions = geometry, len(geometry.bounds)
        room = geometry.n_cells * depth
        self._of_a_row = 4 * n_parameters + _OF_A_SAMPLE * samples + 8 * (dimensions + 4) + 4
        self._memory_gb = checked_number("memory_gb", memory_gb, 0.0)
        self.require_memory(geometry.n_cells)
        self._columns = Evaluated(
            solutions=np.empty((room, n_parameters), np.float32),
            fitness=np.empty(room),
            descriptors=np.empty((room, dimensions)),
            evaluations=np.empty((room, samples), np.int64),
            seeds=np.empty((room, samples), np.uint64),
        )
        self._scores, self._cells = np.empty(room), np.empty(room, np.int64)
        self._counts = np.empty(room, np.int64)
        self._table = np.full((geometry.n_cells, depth), -1, np.int32)  # cell -> rows, best first
        self._n = self.n_filled = 0
        """The number of filled cells."""

    def require_memory(self, n_cells: int) -> None:
        """Refuse so many cells if their solutions would not fit into `memory_gb`."""
        needed, limit = n_cells * self.depth * self._of_a_row / GIGABYTE, self._memory_gb
        if needed > limit:
            fits = int(limit * GIGABYTE / (n_cells * self._of_a_row))
            cure = f"give a depth of at most {fits}, or" if fits else "give"
            raise InvalidInput(
                f"depth {self.depth} of {n_cells:,} cells may need {needed:.1f} GB, more than "
                f"memory_gb={limit:g}; {cure} memory_gb={np.ceil(needed):g}"
            )

    def __len__(self) -> int:
        return self._n

    @property
    def best(self) -> Evaluated:
        """The best solution of every filled cell, read-only. Valid until the next change."""
        return self._rows(slice(self.n_filled))

    @property
    def members(self) -> Evaluated:
        """All solutions, read-only; those of `best` come first. Valid until the next change."""
        return self._rows(slice(self._n))

    @property
    def scores(self) -> NDArray[np.float64]:
        """What the solutions of a cell are ordered by, (n,): the fitness, or a score that was given."""
        return self._scores[: self._n]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many samples the solutions have, (n,)."""
        return self._counts[: self._n]

    @property
    def cells(self) -> Cells:
        """The cells of all solutions, (n,)."""
        return self._cells[: self._n]

    @property
    def table(self) -> NDArray[np.int32]:
        """The rows of every filled cell, best first, (filled cells, depth); -1 for a free place."""
        found: NDArray[np.int32] = self._table[self._cells[: self.n_filled]]
        return found

    def best_of(self, cells: Cells) -> Rows:
        """Return the rows of the best solutions of these cells; -1 for an empty cell."""
        rows: Rows = self._table[cells, 0].astype(np.int64)
        return rows

    def _rows(self, rows: slice) -> Evaluated:
        found = self._columns[rows]
        used = int(self._counts[rows].max(initial=1))  # few of the places are used at first
        found = Evaluated(
            found.solutions,
            found.fitness,
            found.descriptors,
            found.evaluations[:, :used],
            found.seeds[:, :used],
        )
        for field in fields(found):
            getattr(found, field.name).flags.writeable = False
        return found

    # Changes

    def insert(
        self,
        batch: Evaluated,
        *,
        scores: NDArray[np.float64] | None = None,
        random: np.random.Generator | None = None,
    ) -> None:
        """Insert solutions as if one by one. Invalid ones are left out.

        `scores` is what a cell is ordered by; if not given, the fitness. With `random`, a full cell loses a
        random solution for every newcomer.
        """
        self._settle(np.empty(0, np.int64), np.empty(0, np.int64), batch, scores, random)

    def resample(self, rows: Rows, told: Evaluated, batch: Evaluated | None = None) -> None:
        """Give the solutions in `rows` one more sample each, and put them into the cells of their new means.

        They and the solutions of `batch` then compete together. A solution with an invalid sample leaves.
        """
        rows = np.asarray(rows, np.int64)
        columns, before = self._columns, self._cells[rows].copy()
        nothing = np.empty((len(rows), 0), np.float32)  # solutions stay where they are
        known = Evaluated(
            nothing,
            columns.fitness[rows],
            columns.descriptors[rows],
            columns.evaluations[rows],
            columns.seeds[rows],
        )
        if (self._counts[rows] >= self.samples).any():
            raise InvalidInput(f"a solution has {self.samples} samples already; there is no place for more")
        now = extended(known, told)
        for name in ("fitness", "descriptors", "evaluations", "seeds"):
            getattr(columns, name)[rows] = getattr(now, name)
        self._scores[rows] = now.fitness
        self._counts[rows] += 1
        valid = now.valid
        self._cells[rows[valid]] = self.geometry.cells(now.descriptors[valid])
        self._settle(rows, before, columns[:0] if batch is None else batch, None, None)

    def _settle(
        self,
        moved: Rows,
        before: Cells,
        batch: Evaluated,
        scores: NDArray[np.float64] | None,
        random: np.random.Generator | None,
    ) -> None:
        """Decide who stays in every cell that is touched, and where the rows are."""
        coming = np.flatnonzero(batch.valid)
        cells = self.geometry.cells(batch.descriptors[coming])
        worth = (batch.fitness if scores is None else scores)[coming]
        touched = np.unique(np.concatenate([before, self._cells[moved], cells]))
        known = self._table[touched].ravel()
        known = np.sort(known[known >= 0]).astype(np.int64)
        stays = usable(self._columns.fitness[known], self._columns.descriptors[known])
        gone, old = known[~stays], known[stays]
        items = np.concatenate([self._cells[old], cells])
        value = np.concatenate([self._scores[old], worth])
        born = np.concatenate([self._columns.evaluations[old, 0], batch.evaluations[coming, 0]])
        if random is not None:
            keep = _random_places(items, len(old), self.depth, random)
        else:
            keep = _ranks(items, value, born) < self.depth
        rank = np.full(len(items), -1)
        rank[keep] = _ranks(items[keep], value[keep], born[keep])
        staying = keep[: len(old)]
        self._lay_out(
            touched,
            np.concatenate([gone, old[~staying]]),
            (old[staying], rank[: len(old)][staying]),
            (batch, coming[keep[len(old) :]], worth[keep[len(old) :]], cells[keep[len(old) :]]),
            rank[len(old) :][keep[len(old) :]],
        )

    def _lay_out(
        self,
        touched: Cells,
        leaving: Rows,
        staying: tuple[Rows, NDArray[Any]],
        entering: tuple[Evaluated, NDArray[Any], NDArray[np.float64], Cells],
        ranks: NDArray[Any],
    ) -> None:
        """Move as few rows as possible so that rows are compact and the best of each cell come first."""
        rows, rank = staying
        batch, winners, worth, cells = entering
        n = self._n - len(leaving) + len(winners)
        filled = self.n_filled + int((rank == 0).sum() + (ranks == 0).sum())
        filled -= int((self._table[touched, 0] >= 0).sum())
        # rows of other cells that are in the way
        edge = np.arange(min(filled, self.n_filled), max(filled, self.n_filled))
        others = np.setdiff1d(
            np.concatenate([edge, np.arange(n, self._n)]), np.concatenate([rows, leaving])
        ).astype(np.int64)
        others = others[others < self._n]
        slots = (self._table[self._cells[others]] == others[:, None]).argmax(axis=1)
        here, first = np.concatenate([rows, others]), np.concatenate([rank == 0, slots == 0])
        wrong = (here >= n) | (first != (here < filled))
        free = np.concatenate([here[wrong], leaving, np.arange(self._n, n)])
        free = np.sort(free[free < n])
        leads = np.concatenate([first[wrong], ranks == 0])
        places = np.empty(len(leads), np.int64)
        places[leads], places[~leads] = free[free < filled], free[free >= filled]
        sources, targets = here[wrong], places[: wrong.sum()]
        new = here.copy()
        new[wrong] = targets
        self._move(sources, targets)
        self._n, self.n_filled = n, filled
        self._put(places[wrong.sum() :], batch, winners, worth, cells)
        self._table[touched] = -1
        self._table[self._cells[new[: len(rows)]], rank] = new[: len(rows)]
        self._table[self._cells[new[len(rows) :]], slots] = new[len(rows) :]
        self._table[cells, ranks] = places[wrong.sum() :]

    def _move(self, sources: Rows, targets: Rows) -> None:
        for column in (
            *(getattr(self._columns, f.name) for f in fields(Evaluated)),
            self._scores,
            self._cells,
            self._counts,
        ):
            column[targets] = column[sources]

    def _put(
        self,
        rows: Rows,
        batch: Evaluated,
        winners: NDArray[Any],
        worth: NDArray[np.float64],
        cells: Cells,
    ) -> None:
        self._scores[rows], self._cells[rows] = worth, cells
        self._counts[rows] = batch.samples[winners]
        columns, k = self._columns, batch.evaluations.shape[1]
        columns.fitness[rows], columns.descriptors[rows] = batch.fitness[winners], batch.descriptors[winners]
        columns.evaluations[rows], columns.seeds[rows] = -1, 0
        columns.evaluations[rows, :k], columns.seeds[rows, :k] = (
            batch.evaluations[winners],
            batch.seeds[winners],
        )
        for row, winner in zip(rows.tolist(), winners.tolist(), strict=True):
            columns.solutions[row] = batch.solutions[winner]  # one by one: no temporary copy of many

    # Saving

    def state(self) -> dict[str, Any]:
        """Return all rows in their order. Valid until the next change."""
        members = self.members
        found = {field.name: getattr(members, field.name) for field in fields(members)}
        return {**found, "scores": self.scores, "cells": self.cells, "table": self._table}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the archive that `state` was taken from. Its arrays are copied."""
        members = Evaluated(**{field.name: state[field.name] for field in fields(Evaluated)})
        self._n = len(members)
        wide = padded(members, self.samples)
        for name, column in ((f.name, getattr(self._columns, f.name)) for f in fields(Evaluated)):
            column[: self._n] = getattr(wide, name)
        self._scores[: self._n], self._cells[: self._n] = state["scores"], state["cells"]
        self._table[:], self._counts[: self._n] = state["table"], members.samples
        self.n_filled = int((self._table[:, 0] >= 0).sum())


def _ranks(cells: Cells, scores: NDArray[np.float64], born: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each in its cell, 0 for the best; of equal ones the earlier is better."""
    order = np.lexsort((born, -scores, cells))
    ordered = cells[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    ranks = np.empty(len(cells), np.int64)
    ranks[order] = np.arange(len(cells)) - np.repeat(starts, np.diff(starts, append=len(cells)))
    return ranks


def _random_places(cells: Cells, n_old: int, depth: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Return who is left when each newcomer, in turn, takes a free place or that of a random occupant."""
    keep = np.ones(len(cells), bool)
    inside: dict[int, list[int]] = {}
    for item, cell in enumerate(cells.tolist()):
        occupants = inside.setdefault(cell, [])
        if item >= n_old and len(occupants) == depth:
            place = int(random.integers(depth))
            keep[occupants[place]] = False
            occupants[place] = item
        else:
            occupants.append(item)
    return keep
