"""Read a run back: `qdbench.load("results/ant_omni/map_elites/seed-0")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.archives.stored import Container
from qdbench.errors import DamagedFile, InvalidInput
from qdbench.experiments.corrections import StoredCorrections, read_corrections
from qdbench.experiments.files import damage_named, read_npz
from qdbench.experiments.store import RunFolder, read_metrics, require_metrics
from qdbench.seeds import Seeds

COLUMNS = ("fitness", "descriptors", "evaluations", "seeds", "cells")
RECORDED = (
    "task", "algorithm", "seed", "name", "status", "target", "totals", "metrics", "environments",
)  # fmt: skip
GEOMETRY = ("descriptor_bounds", "shape", "centroids", "threshold")


@dataclass(frozen=True, eq=False)
class StoredArchive:
    """archive.npz: the elites, their cells, and the geometry of the cells."""

    path: Path
    fitness: NDArray[np.float64]  #: (n,)
    descriptors: NDArray[np.float64]  #: (n, dimensions)
    evaluations: NDArray[np.int64]  #: (n, k)
    seeds: Seeds  #: (n, k)
    cells: NDArray[np.int64]  #: (n,) the elites' cells
    kind: str
    """`grid`, `cvt` or `unstructured`."""
    geometry: dict[str, NDArray[Any]]
    """descriptor_bounds (dimensions, 2); and shape, centroids or threshold."""
    about: dict[str, Any]
    """task, fingerprint, algorithm, seed, fitness_bounds, grid_shape, n_evaluations."""

    def __len__(self) -> int:
        return len(self.fitness)

    @property
    def container(self) -> Container:
        """What an empty archive of the same shape can be made of."""
        return Container(self.kind, self.geometry)

    @cached_property
    def elites(self) -> Evaluated:
        """The elites with their solutions, which are read when first asked for: they can be a gigabyte."""
        arrays = read_npz(self.path)
        solutions = arrays["solutions"]
        if not np.array_equal(arrays["evaluations"], self.evaluations):
            raise InvalidInput(f"{self.path} was written anew since it was read; load the run again")
        return Evaluated(solutions, self.fitness, self.descriptors, self.evaluations, self.seeds)


@dataclass(frozen=True)
class StoredRun:
    """A run's files; each is read, and checked, when it is first used."""

    path: Path
    record: dict[str, Any]
    """run.json"""

    @property
    def status(self) -> str:
        """`running` (or killed), `finished`, `stopped` or `failed`."""
        return str(self.record["status"])

    @cached_property
    def metrics(self) -> dict[str, NDArray[Any]]:
        """metrics.csv as arrays by column name, one entry per iteration."""
        path, written = RunFolder(self.path).metrics_path, self.record["metrics"]
        data = require_metrics(path, written["bytes"], written["crc32"])
        if self.status == "running":  # rows since the last checkpoint
            data = path.read_bytes()
        elif path.stat().st_size != written["bytes"]:
            raise DamagedFile(f"{path} is damaged and was not used: it is longer than what was written")
        return read_metrics(path, data)

    @cached_property
    def archive(self) -> StoredArchive:
        """archive.npz; written when the run ends or is stopped."""
        path = RunFolder(self.path).archive_path
        if not path.exists():
            raise InvalidInput(f"{self.path} has no archive yet; its status is {self.status}")
        arrays = read_npz(path, without="solutions")
        with damage_named(path):
            columns = {name: arrays.pop(name) for name in COLUMNS}
            del arrays["samples"]
            geometry = {name: arrays.pop(name) for name in GEOMETRY if name in arrays}
            about = {name: array.tolist() for name, array in arrays.items()}
            kind = about.pop("kind")
            self._require_mine(about)
            return StoredArchive(path=path, kind=kind, geometry=geometry, about=about, **columns)

    @cached_property
    def corrections(self) -> StoredCorrections | None:
        """corrected.npz, or None where no elite was re-evaluated."""
        folder = RunFolder(self.path)
        if not folder.corrected_path.exists():
            return None
        found = read_corrections(folder)
        with damage_named(folder.corrected_path):
            self._require_mine(found.about)
            self._require_my_elites(found)
        return found

    def _require_my_elites(self, found: StoredCorrections) -> None:
        """Refuse a correction of the final archive whose elites are not those of the final archive."""
        if not RunFolder(self.path).archive_path.exists():
            return
        archive = self.archive
        for snapshot in found.snapshots:
            if snapshot.evaluations == archive.about["n_evaluations"] and not (
                np.array_equal(snapshot.fitness, archive.fitness)
                and np.array_equal(snapshot.descriptors, archive.descriptors)
            ):
                raise ValueError("its elites are not those of archive.npz")

    def _require_mine(self, about: Mapping[str, Any]) -> None:
        record = self.record
        mine = {
            "task": record["task"]["name"],
            "algorithm": record["algorithm"]["name"],
            "seed": record["seed"],
        }
        for name, expected in mine.items():
            if about[name] != expected:
                raise ValueError(f"it is of another run ({name} {about[name]!r}, not {expected!r})")

    def to_pandas(self) -> Any:
        """Return the metrics as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("to_pandas needs pandas: pip install pandas") from None
        return pd.DataFrame(self.metrics)


def load(path: str | Path) -> StoredRun:
    """Return the run in a folder."""
    folder = RunFolder(Path(path))
    record = folder.read_record()
    if record is None:
        raise InvalidInput(f"{str(path)!r} is not the folder of a run: it has no run.json")
    missing = [key for key in RECORDED if key not in record]
    if missing:
        raise DamagedFile(f"{folder.record_path} has no {' or '.join(missing)}; it was not used")
    return StoredRun(Path(path), record)
