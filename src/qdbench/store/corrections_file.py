"""corrected.npz: all re-evaluations of a run's elites, and which elites it had at every correction point."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Cells, Geometry, geometry_from
from qdbench.metrics.robustness import Reevaluations
from qdbench.store.archive_file import require_same_run
from qdbench.store.files import FORMAT, damage_named, read_npz, write_npz
from qdbench.store.plain import as_json
from qdbench.store.record import Determinants, Versions

GEOMETRY_PREFIX = "geometry_"


@dataclass(frozen=True, eq=False)
class CorrectionPoint:
    """The elites of a run at one point, as they were stored."""

    evaluations: int
    """Of the run then."""
    rows: NDArray[np.int64] = field(repr=False)  #: (n,) where each elite's re-evaluations are
    cells: Cells = field(repr=False)  #: (n,)
    fitness: NDArray[np.float64] = field(repr=False)  #: (n,)
    descriptors: NDArray[np.float64] = field(repr=False)  #: (n, dimensions)


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
    points: tuple[CorrectionPoint, ...] = ()

    @classmethod
    def none_yet(cls, geometry: Geometry, n: int) -> Corrections:
        """Return corrections without any elites."""
        empty, dimensions = np.empty(0), len(geometry.bounds)
        return cls(n, geometry, np.empty(0, np.int64), empty, np.empty((0, n)), np.empty((0, n, dimensions)))

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
    ) -> Corrections:
        """Return these corrections with the re-evaluations of more elites."""
        return replace(
            self,
            keys=np.append(self.keys, np.array(keys, np.int64)),
            originals=np.append(self.originals, originals),
            fitness=np.concatenate([self.fitness, fitness]),
            descriptors=np.concatenate([self.descriptors, descriptors]),
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
        **{name: getattr(corrections, name) for name in ("keys", "originals", "fitness", "descriptors")},
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
        require_same_run(str(arrays["determinants"]), determinants)
        geometry = {
            name.removeprefix(GEOMETRY_PREFIX): array
            for name, array in arrays.items()
            if name.startswith(GEOMETRY_PREFIX)
        }
        columns = {name: arrays[name] for name in ("keys", "originals", "fitness", "descriptors")}
        if len({len(column) for column in columns.values()}) != 1:
            raise ValueError("its arrays differ in length")
        return Corrections(
            n_reevaluations=int(arrays["n_reevaluations"]),
            geometry=geometry_from(str(arrays["kind"]), geometry),
            points=tuple(_point(arrays, i) for i in range(int(arrays["n_points"]))),
            **columns,
        )


def _point(arrays: dict[str, NDArray[Any]], i: int) -> CorrectionPoint:
    names = ("rows", "cells", "fitness", "descriptors")
    columns = {name: arrays[f"point_{i}_{name}"] for name in names}
    return CorrectionPoint(int(arrays[f"point_{i}_evaluations"]), **columns)


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
    names = ("format", "determinants", "n_reevaluations", "n_points")
    arrays = read_npz(path, only=names)
    with damage_named(path):
        named = [f"point_{i}_evaluations" for i in range(int(arrays["n_points"]))]
        points = read_npz(path, only=("format", *named))
        return CorrectionsHeader(
            determinants=json.loads(str(arrays["determinants"])),
            n_reevaluations=int(arrays["n_reevaluations"]),
            points=tuple(int(points[name]) for name in named),
        )
