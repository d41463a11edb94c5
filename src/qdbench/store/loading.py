"""Read a run back: `qdbench.load("results/ant_omni/map_elites/seed-0")`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Geometry, Grid
from qdbench.checks import checked_path
from qdbench.errors import DamagedFile, InvalidInput
from qdbench.store.archive_file import StoredArchive, read_archive
from qdbench.store.corrections_file import CorrectionPoint, Corrections, read_corrections
from qdbench.store.files import damage_named
from qdbench.store.folder import RunFolder
from qdbench.store.metrics_file import Columns, read_metrics
from qdbench.store.record import RunRecord

if TYPE_CHECKING:
    from qdbench.tasks.contract import Task

FAMILIES = ("arm", "sphere")
"""How the names of the tasks with known truth begin."""


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
        found = read_metrics(path, self.record.metrics, growing=self.status == "running")
        totals = self.record.totals
        with damage_named(path):
            if self.status in ("finished", "stopped") and (
                len(found["evaluations"]) != totals.iteration
                or found["evaluations"][-1:].tolist() != [totals.evaluations] * bool(totals.iteration)
            ):
                raise ValueError(f"it does not end with the {totals.evaluations:,} evaluations of the run")
        return found

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
        n = archive.n_evaluations
        with damage_named(path):
            if ended and n != end:
                raise ValueError(f"it is of {n:,} evaluations, the run of {end:,}")
            if not ended and n and n not in self.metrics["evaluations"]:
                raise ValueError(f"it is of {n:,} evaluations, where the run never was")
        return archive

    @cached_property
    def corrections(self) -> Corrections | None:
        """corrected.npz, or None where no elite was re-evaluated."""
        path, end = RunFolder(self.path).corrected_path, self.record.totals.evaluations
        was_corrected = self.status == "finished" and self.record.target.corrections.points > 0
        if not path.exists():
            if was_corrected:
                raise DamagedFile(f"{path} is missing, but the run was corrected; run it again to restore it")
            return None
        found = read_corrections(path, self.record.determinants)
        reached = self.metrics["evaluations"]
        known = tuple(point for point in found.points if point.evaluations <= reached.max(initial=0))
        with damage_named(path):  # points beyond are of before an interruption: they come again
            if any(point.evaluations not in reached for point in known):
                raise ValueError("it has a correction point where the run never was")
            if was_corrected and found.at(end) is None:
                raise ValueError(f"it has no correction point at the run's end, {end:,} evaluations")
        found = replace(found, points=known)
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

    def expected(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The exact mean fitness and descriptors of the final elites; None if the truth is not known."""
        recorded = self.record.task
        if recorded.source.partition("_")[0] not in FAMILIES:
            return None  # most results are read without importing any task
        from qdbench.tasks.known_truth import KNOWN_TRUTH

        task = KNOWN_TRUTH.get(recorded.source)
        if task is None or recorded.options.keys() != task.options().keys():
            return None
        task = replace(task, **recorded.options)
        same = task.fingerprint == recorded.fingerprint  # else it is another task of that name
        return task.expected(self.archive.elites.solutions) if same else None

    @property
    def task(self) -> Task:
        """The task, made again as it was; one of your own only by `make_task(trust=True)`."""
        return self.make_task()

    def make_task(self, *, trust: bool = False) -> Task:
        """Return the task, made again as it was; `trust` allows to import a module that run.json names."""
        from qdbench.tasks.options import remade

        return remade(self.record.task.source, self.record.task.options, trust=trust)

    def to_pandas(self) -> Any:
        """Return the metrics as a pandas DataFrame, one row per iteration."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("to_pandas needs pandas: pip install 'qdbench[tables]'") from None
        return pd.DataFrame(self.metrics)


def load(path: str | Path) -> StoredRun:
    """Return the run in a folder."""
    path = checked_path("the folder of a run", path)
    return StoredRun(path, RunFolder(path).require_record())
