"""archive.npz: the elites of a run, their cells, and the geometry of the cells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cached_property
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
from qdbench.store.files import FORMAT, damage_named, read_npz, write_npz
from qdbench.store.plain import as_json, differences
from qdbench.store.record import Determinants

GEOMETRY = ("descriptor_bounds", "shape", "centroids", "threshold")


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
    n_evaluations: int
    """Of the run when it was written."""

    def __len__(self) -> int:
        return len(self.fitness)

    @cached_property
    def elites(self) -> Evaluated:
        """The elites with their parameters, which can be a gigabyte."""
        arrays = read_npz(self.path, only=("format", "solutions", "evaluations"))
        if not np.array_equal(arrays["evaluations"], self.evaluations):
            raise InvalidInput(f"{self.path} was written anew since it was read; load the run again")
        columns = self.fitness, self.descriptors, self.evaluations, self.seeds
        return Evaluated(arrays["solutions"], *columns)

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
    path: Path, determinants: Determinants, n_evaluations: int, elites: Evaluated, geometry: Geometry
) -> None:
    """Replace archive.npz."""
    columns = {column.name: getattr(elites, column.name) for column in fields(elites)}
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "determinants": json.dumps(as_json(determinants)),
        "n_evaluations": n_evaluations,
        "kind": geometry.kind,
        **geometry.arrays(),
        "cells": geometry.cells(elites.descriptors),
        "samples": elites.samples,
        **columns,
    }
    write_npz(path, arrays)


def read_archive(path: Path, determinants: Determinants, *, any_fingerprint: bool = False) -> StoredArchive:
    """Return what archive.npz holds, if it is of the run with these determinants."""
    arrays = read_npz(path, without="solutions")
    with damage_named(path):
        require_same_run(str(arrays["determinants"]), determinants, any_fingerprint=any_fingerprint)
        parts = {name: arrays[name] for name in GEOMETRY if name in arrays}
        return StoredArchive(
            path=path,
            geometry=geometry_from(str(arrays["kind"]), parts),
            n_evaluations=int(arrays["n_evaluations"]),
            **{name: arrays[name] for name in ("fitness", "descriptors", "evaluations", "seeds", "cells")},
        )


def require_same_run(recorded: str, determinants: Determinants, *, any_fingerprint: bool = False) -> None:
    """Raise ValueError where a file says that it is of another run.

    A fingerprint holds MuJoCo's version: it may differ in files written before a run was continued elsewhere.
    """
    found = json.loads(recorded)
    if any_fingerprint:
        found["task"]["fingerprint"] = determinants.task.fingerprint
    others = differences(found, determinants)
    if others:
        raise ValueError(f"it is of another run ({'; '.join(others)})")
