"""archive.npz: the elites of a run, their cells, and the geometry of the cells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cells, Geometry, geometry_from
from qdbench.archives.unstructured import empty_archive
from qdbench.errors import InvalidInput
from qdbench.seeds import Seeds
from qdbench.store.files import FORMAT, damage_named, parsed_json, write_npz
from qdbench.store.npz import (
    Arrays,
    array_of,
    compact,
    finite,
    read_npz,
    require_names,
    text,
    unsigned,
    whole_number,
    within,
)
from qdbench.store.plain import as_json, differences, from_json
from qdbench.store.record import Determinants
from qdbench.store.sound import MOST_CELLS

GEOMETRY = {"grid": "shape", "cvt": "centroids", "unstructured": "threshold"}
"""What a file holds of every kind of geometry, beside the bounds."""
COLUMNS = ("fitness", "descriptors", "evaluations", "seeds", "cells", "samples", "steps", "solutions")


@dataclass(frozen=True, eq=False)
class StoredArchive:
    """The solutions a run would hand to a user; the parameters are read when they are first asked for."""

    path: Path
    geometry: Geometry = field(repr=False)
    fitness: NDArray[np.float64] = field(repr=False)  #: (n,)
    descriptors: NDArray[np.float64] = field(repr=False)  #: (n, dimensions)
    evaluations: NDArray[np.int64] = field(repr=False)  #: (n, k)
    seeds: Seeds = field(repr=False)  #: (n, k)
    cells: Cells = field(repr=False)  #: (n,) the elites' cells
    steps: NDArray[Any] = field(repr=False)  #: (n, k) control steps; 0 where there is no evaluation
    n_evaluations: int
    """Of the run when it was written."""
    n_parameters: int

    def __len__(self) -> int:
        return len(self.fitness)

    @cached_property
    def elites(self) -> Evaluated:
        """The elites with their parameters, which can be a gigabyte."""
        arrays = read_npz(self.path, only=("solutions", "evaluations"))
        if not np.array_equal(arrays["evaluations"], self.evaluations):
            raise InvalidInput(f"{self.path} was written anew since it was read; load the run again")
        with damage_named(self.path):
            solutions = array_of(arrays, "solutions", np.float32, (len(self), self.n_parameters))
        return Evaluated(solutions, self.fitness, self.descriptors, self.evaluations, self.seeds)

    def to_pandas(self, *, solutions: bool = False) -> Any:
        """Return the elites as a pandas DataFrame, one row each; `qdbench.from_pandas` is the way back.

        Columns: cell (and cell_0, cell_1, … along each dimension of a grid), fitness, descriptor_0, …,
        evaluation, seed and steps of the first evaluation, and samples, their number. With `solutions` there
        are also columns of arrays: solution (the parameters), evaluations and seeds.
        """
        from qdbench.exports.tables import frame_of

        return frame_of(self, solutions)

    def to_ribs(self) -> Any:
        """Return the elites in an archive of pyribs; `qdbench.from_ribs` is the way back.

        A grid becomes a GridArchive and a CVT a CVTArchive, with exactly the same cells. An unstructured
        archive becomes a ProximityArchive. Its fields evaluation and seed are those of the first evaluation.
        """
        from qdbench.exports.ribs_archives import to_ribs

        return to_ribs(self)

    def placed(self, geometry: Geometry | None = None) -> Archive:
        """Return an archive of the elites without their parameters, in their own geometry or another.

        Of several elites in one cell the fittest stays: an algorithm without an archive of its own may hand
        over several, and another geometry may put them together.
        """
        archive = empty_archive(geometry or self.geometry, samples=self.evaluations.shape[1])
        nothing = np.zeros((len(self), 0), np.float32)
        archive.insert(Evaluated(nothing, self.fitness, self.descriptors, self.evaluations, self.seeds))
        return archive


def write_archive(
    path: Path,
    determinants: Determinants,
    n_evaluations: int,
    elites: Evaluated,
    geometry: Geometry,
    steps: NDArray[Any],
) -> None:
    """Replace archive.npz; `steps` are those of the elites' evaluations, (n, k)."""
    columns = {column.name: getattr(elites, column.name) for column in fields(elites)}
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "determinants": json.dumps(as_json(determinants)),
        "n_evaluations": n_evaluations,
        "kind": geometry.kind,
        **geometry.arrays(),
        "cells": geometry.cells(elites.descriptors),
        "samples": elites.samples,
        "steps": compact(steps),
        **columns,
    }
    write_npz(path, arrays)


def read_archive(path: Path, determinants: Determinants, *, any_fingerprint: bool = False) -> StoredArchive:
    """Return what archive.npz holds, if it is of the run with these determinants."""
    arrays = read_npz(path, without="solutions")
    with damage_named(path):
        require_same_run(text(arrays, "determinants"), determinants, any_fingerprint=any_fingerprint)
        geometry, parts = read_geometry(arrays, len(determinants.task.cells))
        require_names(arrays, ("determinants", "n_evaluations", "kind", *parts, *COLUMNS))
        made = whole_number(arrays, "n_evaluations")
        fitness = finite(arrays, "fitness", (None,))
        n, dimensions = len(fitness), len(geometry.bounds)
        evaluations = within(arrays, "evaluations", (n, None), -1, made)
        samples = within(arrays, "samples", (n,), 1, evaluations.shape[1] + 1)
        if not np.array_equal(samples, (evaluations >= 0).sum(axis=1)):
            raise ValueError("its samples are not its evaluations")
        return StoredArchive(
            path=path,
            geometry=geometry,
            fitness=fitness,
            descriptors=finite(arrays, "descriptors", (n, dimensions)),
            evaluations=evaluations,
            seeds=array_of(arrays, "seeds", np.uint64, evaluations.shape),
            cells=within(arrays, "cells", (n,), 0, n if geometry.n_cells is None else geometry.n_cells),
            steps=unsigned(arrays, "steps", evaluations.shape),
            n_evaluations=made,
            n_parameters=determinants.task.n_parameters,
        )


def read_geometry(arrays: Arrays, dimensions: int, prefix: str = "") -> tuple[Geometry, tuple[str, ...]]:
    """Return the geometry that a file describes, and the names of its arrays."""
    kind = text(arrays, "kind")
    if kind not in GEOMETRY:
        raise ValueError(f"its geometry is {kind!r:.60}, not {' or '.join(GEOMETRY)}")
    names = (f"{prefix}descriptor_bounds", prefix + GEOMETRY[kind])
    bounds = finite(arrays, names[0], (dimensions, 2))
    if not (bounds[:, 0] < bounds[:, 1]).all():
        raise ValueError("its bounds are no bounds")
    if kind == "grid":
        part: Any = within(arrays, names[1], (dimensions,), 1, MOST_CELLS + 1)
        if prod(part.tolist()) > MOST_CELLS:
            raise ValueError(f"it has more than {MOST_CELLS:,} cells")
    elif kind == "cvt":
        part = finite(arrays, names[1], (None, dimensions))
        if not part.size or np.abs(part).max() > 2:  # shares of the box
            raise ValueError("its centroids are outside the box")
    else:
        part = finite(arrays, names[1], ())
        if not part > 0:
            raise ValueError(f"its threshold is {part}")
    return geometry_from(kind, {"descriptor_bounds": bounds, GEOMETRY[kind]: part}), names


def require_same_run(recorded: str, determinants: Determinants, *, any_fingerprint: bool = False) -> None:
    """Raise ValueError where a file says that it is of another run.

    A fingerprint holds MuJoCo's version: it may differ in files written before a run was continued elsewhere.
    """
    found = parsed_json(recorded)
    from_json(Determinants, found, "what determined it")
    if any_fingerprint:
        found["task"]["fingerprint"] = determinants.task.fingerprint
    others = differences(found, determinants)
    if others:
        raise ValueError(f"it is of another run ({'; '.join(others)})")
