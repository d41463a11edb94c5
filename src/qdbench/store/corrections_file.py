"""corrected.npz: all re-evaluations of a run's elites, and which elites it had at every correction point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Cells, Geometry
from qdbench.metrics.robustness import Reevaluations
from qdbench.store.archive_file import read_geometry, require_same_run
from qdbench.store.files import FORMAT, damage_named, write_npz
from qdbench.store.npz import (
    MOST_MEMBERS,
    Arrays,
    compact,
    finite,
    finite_or_nan,
    json_value,
    read_npz,
    require_names,
    text,
    unsigned,
    whole_number,
    within,
)
from qdbench.store.plain import as_json, from_json
from qdbench.store.record import Determinants, Versions

GEOMETRY_PREFIX = "geometry_"
ABOUT = ("determinants", "versions", "n_reevaluations", "n_points", "kind")
COLUMNS = ("keys", "originals", "fitness", "descriptors", "steps")


@dataclass(frozen=True, eq=False)
class CorrectionPoint:
    """The elites of a run at one point, as they were stored."""

    evaluations: int
    """Of the run then."""
    rows: NDArray[np.int64] = field(repr=False)  #: (n,) where each elite's re-evaluations are
    cells: Cells = field(repr=False)  #: (n,)
    fitness: NDArray[np.float64] = field(repr=False)  #: (n,)
    descriptors: NDArray[np.float64] = field(repr=False)  #: (n, dimensions)


POINT = tuple(column.name for column in fields(CorrectionPoint))


@dataclass(frozen=True, eq=False)
class Corrections:
    """Re-evaluations, one row per elite, and the points they were made for.

    An elite that survives from one point to the next has one row: it is re-evaluated once.
    """

    n_reevaluations: int
    geometry: Geometry = field(repr=False)
    keys: NDArray[np.int64] = field(repr=False)  #: (m,) the evaluation that gave each elite
    originals: NDArray[np.float64] = field(repr=False)  #: (m,) its fitness then
    fitness: NDArray[np.float64] = field(repr=False)  #: (m, N)
    descriptors: NDArray[np.float64] = field(repr=False)  #: (m, N, dimensions)
    steps: NDArray[Any] = field(repr=False)  #: (m, N) control steps made
    points: tuple[CorrectionPoint, ...] = ()

    @classmethod
    def none_yet(cls, geometry: Geometry, n: int) -> Corrections:
        """Return corrections without any elites."""
        return cls(
            n_reevaluations=n,
            geometry=geometry,
            keys=np.empty(0, np.int64),
            originals=np.empty(0),
            fitness=np.empty((0, n)),
            descriptors=np.empty((0, n, len(geometry.bounds))),
            steps=np.empty((0, n), np.uint8),
        )

    def at(self, evaluations: int) -> CorrectionPoint | None:
        """Return the point after that many evaluations, if there is one."""
        return next((point for point in self.points if point.evaluations == evaluations), None)

    def reevaluations(self, point: CorrectionPoint) -> Reevaluations:
        """Return the re-evaluations of the elites of one point."""
        return Reevaluations(self.fitness[point.rows], self.descriptors[point.rows])

    def extended(
        self,
        keys: list[int],
        originals: NDArray[np.float64],
        fitness: NDArray[np.float64],
        descriptors: NDArray[np.float64],
        steps: NDArray[Any],
    ) -> Corrections:
        """Return these corrections with the re-evaluations of more elites."""
        return replace(
            self,
            keys=np.append(self.keys, np.array(keys, np.int64)),
            originals=np.append(self.originals, originals),
            fitness=np.concatenate([self.fitness, fitness]),
            descriptors=np.concatenate([self.descriptors, descriptors]),
            steps=np.concatenate([self.steps, compact(steps)]),
        )


def write_corrections(
    path: Path, determinants: Determinants, versions: Versions, corrections: Corrections
) -> None:
    """Replace corrected.npz."""
    points = {
        f"point_{i}_{name}": value
        for i, point in enumerate(corrections.points)
        for name, value in vars(point).items()
    }
    geometry = {GEOMETRY_PREFIX + name: array for name, array in corrections.geometry.arrays().items()}
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "determinants": json.dumps(as_json(determinants)),
        "versions": json.dumps(as_json(versions)),
        "n_reevaluations": corrections.n_reevaluations,
        **{name: getattr(corrections, name) for name in COLUMNS},
        "n_points": len(corrections.points),
        **points,
        "kind": corrections.geometry.kind,
        **geometry,
    }
    write_npz(path, arrays)


def read_corrections(path: Path, determinants: Determinants) -> Corrections:
    """Return what corrected.npz holds, if it is of the run with these determinants."""
    arrays = read_npz(path)
    with damage_named(path):
        require_same_run(text(arrays, "determinants"), determinants)
        from_json(Versions, json_value(arrays, "versions"), "its versions")
        geometry, parts = read_geometry(arrays, len(determinants.task.cells), GEOMETRY_PREFIX)
        n, dimensions = whole_number(arrays, "n_reevaluations", 1), len(geometry.bounds)
        n_points = whole_number(arrays, "n_points", 0, len(arrays))
        named = [f"point_{i}_{name}" for i in range(n_points) for name in POINT]
        require_names(arrays, {*ABOUT, *COLUMNS, *parts, *named})
        originals = finite(arrays, "originals", (None,))
        m = len(originals)
        found = Corrections(
            n_reevaluations=n,
            geometry=geometry,
            keys=within(arrays, "keys", (m,), 0, 2**63 - 1),
            originals=originals,
            fitness=finite_or_nan(arrays, "fitness", (m, n)),
            descriptors=finite_or_nan(arrays, "descriptors", (m, n, dimensions)),
            steps=unsigned(arrays, "steps", (m, n)),
            points=tuple(_point(arrays, i, originals, geometry) for i in range(n_points)),
        )
        _require_ascending([point.evaluations for point in found.points])
        return found


def _point(arrays: Arrays, i: int, originals: NDArray[np.float64], geometry: Geometry) -> CorrectionPoint:
    """Return a correction point whose elites are those of its rows."""
    rows = within(arrays, f"point_{i}_rows", (None,), 0, len(originals))
    n, cells = len(rows), geometry.n_cells
    fitness = finite(arrays, f"point_{i}_fitness", (n,))
    if not np.array_equal(originals[rows], fitness):
        raise ValueError("its elites are not those that were re-evaluated")
    return CorrectionPoint(
        evaluations=whole_number(arrays, f"point_{i}_evaluations", 1),
        rows=rows,
        cells=within(arrays, f"point_{i}_cells", (n,), 0, n if cells is None else cells),
        fitness=fitness,
        descriptors=finite(arrays, f"point_{i}_descriptors", (n, len(geometry.bounds))),
    )


def _require_ascending(evaluations: Sequence[int]) -> None:
    if any(later <= earlier for earlier, later in pairwise(evaluations)):
        raise ValueError("its correction points are not in order")


@dataclass(frozen=True)
class CorrectionsHeader:
    """What corrected.npz says of itself, read without its arrays of numbers."""

    determinants: dict[str, Any]
    n_reevaluations: int
    points: tuple[int, ...]
    """After how many evaluations of the run."""


def read_header(path: Path) -> CorrectionsHeader | None:
    """Return what corrected.npz says of itself, or None where there is none."""
    if not path.exists():
        return None
    arrays = read_npz(path, only=("determinants", "n_reevaluations", "n_points"))
    with damage_named(path):
        n_points = whole_number(arrays, "n_points", 0, MOST_MEMBERS)
        named = [f"point_{i}_evaluations" for i in range(n_points)]
        points = read_npz(path, only=named) if named else {}
        found = json_value(arrays, "determinants")
        from_json(Determinants, found, "what determined it")
        numbers = tuple(whole_number(points, name, 1) for name in named)
        _require_ascending(numbers)
        return CorrectionsHeader(found, whole_number(arrays, "n_reevaluations", 1), numbers)
