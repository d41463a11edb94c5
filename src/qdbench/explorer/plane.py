"""An archive as a rectangle of places: which elite is where, and which is beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Cvt, Geometry, Grid, Unstructured
from qdbench.archives.layout import (
    Rows,
    axes_of,
    drawn_on,
    nested_places,
    rows_of_discs,
    rows_on_plane,
)

Numbers = NDArray[np.float64]
Direction = Literal["left", "right", "up", "down"]
STEPS: dict[Direction, tuple[int, int]] = {"left": (-1, 0), "right": (1, 0), "up": (0, 1), "down": (0, -1)}

PIXELS = 600
"""Resolution of a picture: enough for a screen, and fast to send."""
_SMALLEST_DISC = 0.006
"""Least radius of an elite without a cell, as a share of the picture."""
_LANE = 2.0
"""How much further an elite beside the way counts than one on it, when an arrow key moves on."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Which elite is at every place of a rectangle. Points are shares of it: (0, 0) is bottom left."""

    rows: Rows  #: (height, width) the elite's row in the archive, or -1
    cells: Grid | Cvt | None
    """What the places are: cells, or None for elites that are drawn as discs."""
    bounds: Numbers  #: (dimensions, 2) descriptors at the edges
    names: tuple[str, ...]

    @property
    def is_strip(self) -> bool:
        """Whether there is only one dimension."""
        return len(self.bounds) == 1

    @cached_property
    def elites(self) -> Rows:
        """The rows of all elites that can be seen, ascending."""
        found = np.unique(self.rows)
        return found[found >= 0]

    @cached_property
    def centres(self) -> Numbers:
        """The middle of every elite's places, (elites, 2)."""
        height, width = self.rows.shape
        up, along = np.nonzero(self.rows >= 0)
        which = np.searchsorted(self.elites, self.rows[up, along])
        n = np.bincount(which, minlength=len(self.elites))
        sums = [np.bincount(which, weights=w, minlength=len(self.elites)) for w in (along + 0.5, up + 0.5)]
        return np.stack(sums, axis=1) / n[:, None] / (width, height)

    def centre(self, row: int) -> Numbers:
        """Return the middle of an elite's places, (2,)."""
        found: Numbers = self.centres[np.searchsorted(self.elites, row)]
        return found

    def row_at(self, point: Numbers) -> int:
        """Return the elite at a point, or -1."""
        height, width = self.rows.shape
        column, row = np.floor(point * (width, height)).astype(int).tolist()
        return int(self.rows[row, column]) if 0 <= row < height and 0 <= column < width else -1

    def points(self, descriptors: Numbers) -> Numbers:
        """Return where descriptors (n, dimensions) are; beyond the edges they stop at the border."""
        if len(self.bounds) > 2:
            assert isinstance(self.cells, Grid), "more than two dimensions are drawn on a grid"
            columns, rows = nested_places(self.cells.cells(descriptors), self.cells.shape)
            height, width = self.rows.shape
            return np.stack([(columns + 0.5) / width, (rows + 0.5) / height], axis=1)
        low, high = self.bounds.T
        shares = np.clip((descriptors - low) / (high - low), 0, 1)
        return np.column_stack([shares, np.full(len(shares), 0.5)])[:, :2]

    def beside(self, row: int, direction: Direction) -> int:
        """Return the nearest elite in a direction, or the same one if there is none."""
        height, width = self.rows.shape
        scale = np.array([width, height]) / max(width, height)
        apart = (self.centres - self.centre(row)) * scale
        step = np.array(STEPS[direction])
        ahead = apart @ step
        aside = np.abs(apart @ step[::-1])
        cost = np.where(ahead > 1e-9, ahead + _LANE * aside, np.inf)
        best = int(np.argmin(cost)) if len(cost) else 0
        return int(self.elites[best]) if len(cost) and np.isfinite(cost[best]) else row

    def outline(self, row: int) -> Numbers:
        """Return the border of an elite's places as pieces of lines, (n, 2, 2)."""
        height, width = self.rows.shape
        inside = np.pad(self.rows == row, 1)
        pieces = []
        for axis, along_it in ((0, (1, 0)), (1, (0, 1))):  # a piece ends where places differ
            end = np.stack(np.nonzero(np.diff(inside, axis=axis))[::-1], axis=1)
            pieces.append(np.stack([end - along_it, end], axis=1))
        return np.concatenate(pieces) / np.array([width, height], np.float64)

    def axes(self) -> tuple[str, str]:
        """Return what is along x and along y, in words; nested dimensions from the outside to the inside."""
        found = []
        for axis in axes_of(len(self.bounds)):
            spans = [
                f"{self.names[i]}, {_number(self.bounds[i][0])} to {_number(self.bounds[i][1])}" for i in axis
            ]
            found.append("; in each block ".join(spans))
        return found[0], found[1]


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def plane_of(
    geometry: Geometry,
    grid: Grid,
    descriptors: Numbers,
    fitness: Numbers,
    which: Rows,
    names: tuple[str, ...],
) -> Plane:
    """Return where elites are; `which` are their rows in the archive, `grid` is the task's grid."""
    if isinstance(geometry, Unstructured) and len(geometry.bounds) == 2:
        bounds = _around(geometry, descriptors)
        shares = (descriptors - bounds[:, 0]) / np.diff(bounds, axis=1)[:, 0]
        shrunk = float((np.diff(geometry.bounds, axis=1) / np.diff(bounds, axis=1)).min())
        rows = rows_of_discs(shares, max(_SMALLEST_DISC, shrunk * geometry.threshold / 2), PIXELS)
        return Plane(_named(rows, which), None, bounds, names)
    cells = drawn_on(geometry, grid)
    rows = rows_on_plane(cells, descriptors, fitness, pixels=PIXELS)
    return Plane(_named(rows, which), cells, cells.bounds, names)


def _named(rows: Rows, which: Rows) -> Rows:
    return np.append(which, -1)[rows]


def _around(geometry: Unstructured, descriptors: Numbers) -> Numbers:
    """Return bounds that hold all elites: those of an unstructured archive may be outside."""
    if not len(descriptors):
        return geometry.bounds
    low, high = geometry.bounds.T
    return np.stack(
        [np.minimum(low, descriptors.min(axis=0)), np.maximum(high, descriptors.max(axis=0))], axis=1
    )
