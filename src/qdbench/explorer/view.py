"""A run as it is shown: its elites, their values before and after correction, and how to replay them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Geometry
from qdbench.archives.layout import Rows
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.explorer.plane import Plane, plane_of
from qdbench.metrics.deviations import deviations_of_each
from qdbench.metrics.returns import Elites, returned
from qdbench.metrics.robustness import Reevaluations, corrected_archive
from qdbench.store.folder import RunFolder
from qdbench.store.loading import StoredRun, load
from qdbench.store.told_log import told_so_far
from qdbench.tasks.contract import Task

Numbers = NDArray[np.float64]
Which = Literal["as found", "corrected"]
Colouring = Literal["fitness", "corrected fitness", "descriptor spread", "return rate", "fitness spread"]
COLOURINGS: dict[Colouring, str] = {
    "fitness": "the fitness that the run stored",
    "corrected fitness": "the mean fitness of the re-evaluations",
    "descriptor spread": "the standard deviation of the descriptor over re-evaluations: large is unreliable",
    "return rate": "the share of re-evaluations that land in the elite's own cell",
    "fitness spread": "the standard deviation of the fitness over re-evaluations",
}
_METRES = ("x (m)", "y (m)")


@dataclass(frozen=True, eq=False)
class Found:
    """The elites of a run that has an archive, or the evaluations so far of one that has none yet."""

    geometry: Geometry
    fitness: Numbers  #: (n,)
    descriptors: Numbers  #: (n, dimensions)
    is_live: bool
    """Whether these are evaluations so far: fitness and descriptors are known, policies are not."""
    n_evaluations: int


@dataclass(frozen=True, eq=False)
class Cast:
    """The task of a run, if its elites can be replayed; and what must be said about it."""

    task: Any
    """A RobotTask, or None."""
    remark: str
    """Why there are no replays, or why they may differ; empty if all is well."""


class View:
    """One run, read once. Planes and values are computed when they are first asked for."""

    def __init__(self, run: StoredRun, task: Task | None = None, *, trust: bool = False) -> None:
        self.run, self._task, self._trust = run, task, trust
        self.signature = signature(run.path)
        self._planes: dict[Which, Plane] = {}

    @cached_property
    def found(self) -> Found:
        """The elites; InvalidInput if there is nothing to show yet."""
        run = self.run
        if run.has_archive:
            archive = run.archive
            return Found(archive.geometry, archive.fitness, archive.descriptors, False, archive.n_evaluations)
        told = RunFolder(run.path).told_path
        if run.status != "running" or not told.exists():
            raise InvalidInput(f"{run.path} has no archive; its status is {run.status}")
        fitness, descriptors = told_so_far(told, run.record.determinants)
        valid = np.isfinite(fitness) & np.isfinite(descriptors).all(axis=1)
        return Found(run.grid, fitness[valid], descriptors[valid], True, len(fitness))

    @cached_property
    def reevaluations(self) -> Reevaluations | None:
        """The re-evaluations of the elites, or None if they were not re-evaluated."""
        if self.found.is_live or self.run.corrections is None:
            return None
        point = self.run.corrections.at(self.found.n_evaluations)
        return None if point is None else self.run.corrections.reevaluations(point)

    @property
    def is_in_metres(self) -> bool:
        """Whether the descriptor is a place on the floor."""
        return self.run.record.facts.descriptor_names == _METRES

    @property
    def whichs(self) -> tuple[Which, ...]:
        """The archives there are: as found, and corrected if it was."""
        return ("as found",) if self.reevaluations is None else ("as found", "corrected")

    @property
    def colourings(self) -> tuple[Colouring, ...]:
        """What elites can be coloured by."""
        if self.reevaluations is None:
            return ("fitness",)
        few = self.reevaluations.n_samples < 2
        return tuple(name for name in COLOURINGS if not (few and name.endswith(" spread")))

    def fitness(self, which: Which) -> Numbers:
        """Return the fitness of every row of the archive: as stored, or the mean of re-evaluations."""
        if which == "as found" or self.reevaluations is None:
            return self.found.fitness
        return self.reevaluations.means()[0]

    def descriptors(self, which: Which) -> Numbers:
        """Return the descriptor of every row: as stored, or the mean of re-evaluations."""
        if which == "as found" or self.reevaluations is None:
            return self.found.descriptors
        return self.reevaluations.means()[1]

    def values(self, colouring: Colouring) -> Numbers:
        """Return what elites are coloured by, (n,); NaN where it is not known."""
        return self._values[colouring]

    @cached_property
    def _values(self) -> dict[Colouring, Numbers]:
        found, again = self.found, self.reevaluations
        values: dict[Colouring, Numbers] = {"fitness": found.fitness}
        if again is None:
            return values
        values["corrected fitness"] = again.means()[0]
        if again.n_samples > 1:
            values["fitness spread"], values["descriptor spread"] = deviations_of_each(again)
        elites = Elites(found.fitness, found.descriptors)
        values["return rate"] = returned(found.geometry, elites, again).mean(axis=1)
        return values

    def plane(self, which: Which) -> Plane:
        """Return where elites are."""
        if which not in self._planes:
            rows = self._rows(which)
            record = self.run.record
            self._planes[which] = plane_of(
                self.found.geometry,
                self.run.grid,
                self.descriptors(which)[rows],
                self.fitness(which)[rows],
                rows,
                record.facts.descriptor_names,
            )
        return self._planes[which]

    def _rows(self, which: Which) -> Rows:
        if which == "as found" or self.reevaluations is None:
            return np.arange(len(self.found.fitness))
        left = corrected_archive(self.found.geometry, self.reevaluations)
        return left.elites.evaluations[:, 0].copy()

    @cached_property
    def cast(self) -> Cast:
        """The task, if episodes can be simulated; problems are remarks, not errors."""
        if self.found.is_live:
            return Cast(None, "The run is still going. Policies can be replayed when it ends or is stopped.")
        try:
            task: Any = self._task or self.run.make_task(trust=self._trust)
        except (QdbenchError, ImportError) as error:
            return Cast(None, f"No replays: {error}")
        recorded = self.run.record.task
        if not hasattr(task, "rollouts"):
            return Cast(None, "")
        if task.n_parameters != recorded.n_parameters:
            return Cast(
                None,
                f"No replays: the task here has {task.n_parameters:,} parameters, the run "
                f"{recorded.n_parameters:,}.",
            )
        if task.fingerprint != recorded.fingerprint:
            return Cast(
                task,
                f"The run was made with fingerprint {recorded.fingerprint}, the task here has "
                f"{task.fingerprint}: replays may differ from the stored episodes.",
            )
        return Cast(task, "")

    def solution(self, row: int) -> NDArray[np.float32]:
        """Return the parameters of an elite."""
        found: NDArray[np.float32] = self.run.archive.elites.solutions[row]
        return found

    def seed(self, row: int) -> int:
        """Return the seed of the episode in which an elite was found: of several, the first."""
        return int(self.run.archive.seeds[row][0])

    def n_samples(self, row: int) -> int:
        """Return how many evaluations an elite's stored fitness is the mean of."""
        return int((self.run.archive.evaluations[row] >= 0).sum())


def signature(path: Path) -> tuple[Any, ...]:
    """Return what changes when a run's files change."""
    folder = RunFolder(path)
    files = (folder.record_path, folder.archive_path, folder.corrected_path, folder.told_path)
    return tuple((file.stat().st_mtime_ns, file.stat().st_size) if file.exists() else None for file in files)


def view_of(path: Path, task: Task | None = None, *, trust: bool = False) -> View:
    """Read a run to show it."""
    return View(load(path), task, trust=trust)
