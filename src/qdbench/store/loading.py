"""Read a run back: `qdbench.load("results/ant_omni/map_elites/seed-0")`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdbench.archives.geometry import Geometry, Grid
from qdbench.errors import InvalidInput
from qdbench.store.archive_file import StoredArchive, read_archive
from qdbench.store.corrections_file import CorrectionPoint, Corrections, read_corrections
from qdbench.store.files import damage_named
from qdbench.store.folder import RunFolder
from qdbench.store.metrics_file import Columns, read_metrics
from qdbench.store.record import RunRecord

if TYPE_CHECKING:
    from qdbench.tasks.contract import Task


@dataclass(frozen=True)
class StoredRun:
    """A run's files; each is read, and checked, when it is first used."""

    path: Path
    record: RunRecord = field(repr=False)

    @property
    def status(self) -> str:
        """`running` (or killed), `finished`, `stopped` or `failed`."""
        return self.record.status

    @cached_property
    def metrics(self) -> Columns:
        """metrics.csv as arrays by column name, one entry per iteration."""
        path = RunFolder(self.path).metrics_path
        return read_metrics(path, self.record.metrics, growing=self.status == "running")

    @property
    def has_archive(self) -> bool:
        """Whether there is an archive.npz: it is written when the run ends or is stopped."""
        return RunFolder(self.path).archive_path.exists()

    @cached_property
    def archive(self) -> StoredArchive:
        """archive.npz: the elites."""
        if not self.has_archive:
            raise InvalidInput(f"{self.path} has no archive yet; its status is {self.status}")
        path = RunFolder(self.path).archive_path
        ended, end = self.status in ("finished", "stopped"), self.record.totals.evaluations
        archive = read_archive(path, self.record.determinants, any_fingerprint=not ended)
        with damage_named(path):
            if ended and archive.n_evaluations != end:
                raise ValueError(f"it is of {archive.n_evaluations:,} evaluations, the run of {end:,}")
        return archive

    @cached_property
    def corrections(self) -> Corrections | None:
        """corrected.npz, or None where no elite was re-evaluated."""
        path = RunFolder(self.path).corrected_path
        if not path.exists():
            return None
        found = read_corrections(path, self.record.determinants)
        point = found.at(self.archive.n_evaluations) if self.has_archive else None
        with damage_named(path):
            if point is not None and not (
                np.array_equal(point.fitness, self.archive.fitness)
                and np.array_equal(point.descriptors, self.archive.descriptors)
            ):
                raise ValueError("its elites are not those of archive.npz")
        return found

    @property
    def final_point(self) -> CorrectionPoint | None:
        """The correction point of the final archive, if it was corrected."""
        found = self.corrections
        return None if found is None else found.at(self.record.totals.evaluations)

    @property
    def grid(self) -> Grid:
        """The task's grid."""
        return Grid(self.record.task.descriptor_bounds, self.record.task.cells)

    @property
    def geometry(self) -> Geometry:
        """What the algorithm's elites are kept in: its archive's geometry, or the task's grid."""
        return self.archive.geometry

    @property
    def task(self) -> Task:
        """The task, made again as it was."""
        from qdbench.tasks.options import remade

        return remade(self.record.task.source, self.record.task.options)

    def to_pandas(self) -> Any:
        """Return the metrics as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("to_pandas needs pandas: pip install pandas") from None
        return pd.DataFrame(self.metrics)


def load(path: str | Path) -> StoredRun:
    """Return the run in a folder."""
    return StoredRun(Path(path), RunFolder(Path(path)).require_record())
