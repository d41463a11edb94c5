"""The records of what was measured: of runs, variants, tasks, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qdbench.analysis.collect import LeftOut, Skipped
from qdbench.analysis.measures import Curves, Interval, On
from qdbench.analysis.warnings_of_runs import Suspect, in_words
from qdbench.archives.archive import Archive
from qdbench.metrics.robustness import Extrapolated
from qdbench.store.loading import StoredRun

IntervalKind = Literal["fixed", "pooled", "possible"]
"""The interval of the QD score: the task's fixed one, the range of all fitness values of all runs, or the
possible fitness."""
INTERVALS: dict[IntervalKind, str] = {
    "fixed": "the task's fixed interval",
    "pooled": "the pooled interval of these runs",
    "possible": "the interval of all possible fitness",
}
Paths: TypeAlias = str | Path | Iterable[str | Path]
Progress = Callable[[int, int], None]
"""Called after each run with the number of measured runs and the number of all runs."""
FitnessValues = NDArray[np.float64]


@dataclass(frozen=True)
class Yardstick:
    """How QD scores are measured: on which fitness interval, and on which cells."""

    kind: IntervalKind
    interval: Interval
    on: On

    def __str__(self) -> str:
        low, high = (f"{bound:,.6g}".replace("-", "\N{MINUS SIGN}") for bound in self.interval)
        return f"QD score on {INTERVALS[self.kind]} [{low}, {high}]{self.where}"

    @property
    def where(self) -> str:
        """Text about the geometry, if it is not the algorithms' own."""
        return "" if self.on == "own" else ", on the task's grid"


@dataclass(frozen=True, eq=False)
class BySamples:
    """The scores of a corrected archive as a function of the number of re-evaluations."""

    counts: NDArray[np.float64]  #: (m,)
    coverage: NDArray[np.float64]  #: (m,)
    qd_score: NDArray[np.float64]  #: (m,)
    extrapolated: Extrapolated


@dataclass(frozen=True, eq=False)
class BySize:
    """The expected losses of random parts of an archive, as a function of their number of elites."""

    counts: NDArray[np.float64]  #: (m,)
    coverage: NDArray[np.float64]  #: (m,)
    qd_score: NDArray[np.float64]  #: (m,)


@dataclass(frozen=True, eq=False)
class Corrected:
    """The results of the re-evaluations of a final archive."""

    n_reevaluations: int
    fitness: FitnessValues  #: (elites left,)
    by_samples: BySamples
    by_size: BySize


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """The measurements of one replication."""

    run: StoredRun
    kind: str
    """The geometry it is measured on: `grid` or `cvt`."""
    n_cells: int
    values: dict[str, float]
    """All final metrics by name, and `evaluations`. Losses are always on the task's fixed interval."""
    curves: Curves
    fitness: FitnessValues  #: (elites,) of the final archive
    corrected: Corrected | None
    """The results of re-evaluating the final archive; None if it was not."""
    n_reevaluations: int | None
    """Re-evaluations per elite at the correction points; None if there is no point."""
    suspect: Suspect
    has_other_cells: bool = False
    """Whether it is measured on the grid only because its own archive has other cells than the task's."""

    @property
    def seed(self) -> int:
        """The replication's seed."""
        return self.run.record.seed

    @property
    def qd_score(self) -> float:
        """The final QD score."""
        return self.values["qd_score"]


def typical_of(runs: Sequence[MeasuredRun]) -> int:
    """Return the index of the median replication by final QD score."""
    places = sorted(range(len(runs)), key=lambda i: (runs[i].qd_score, runs[i].seed))
    return places[(len(runs) - 1) // 2]


Archives = tuple[Archive, Archive | None]
"""A final archive, and its corrected archive if it was corrected."""


@dataclass(frozen=True, eq=False)
class MeasuredVariant:
    """The measurements of a variant's replications, by seed."""

    label: str
    runs: tuple[MeasuredRun, ...]
    archives: Archives
    """The archives of the typical replication, for figures."""
    is_reference: bool = False
    """Whether these are reference results, not runs that were given."""

    @property
    def corrected(self) -> list[Corrected]:
        """The results of re-evaluations, for the replications that were corrected at the end."""
        return [run.corrected for run in self.runs if run.corrected is not None]

    @property
    def typical(self) -> MeasuredRun:
        """The median replication by final QD score; of two, the lower one."""
        return self.runs[typical_of(self.runs)]


@dataclass(frozen=True, eq=False)
class MeasuredTask:
    """The measurements of all variants on one task."""

    task: str
    variants: tuple[MeasuredVariant, ...]
    by: Yardstick
    no_times: str
    """Why seconds cannot be compared, or nothing."""
    changed_code: tuple[str, ...] = ()
    """Which algorithms' code was not the same in all runs."""
    about_references: tuple[str, ...] = ()
    """Which reference results are among the variants, and which could not be used."""

    @property
    def measured_runs(self) -> list[MeasuredRun]:
        """The measurements of all replications of all variants."""
        return [run for variant in self.variants for run in variant.runs]

    @property
    def runs(self) -> list[StoredRun]:
        """All replications of all variants."""
        return [one.run for one in self.measured_runs]

    @property
    def is_corrected(self) -> bool:
        """Whether any final archive was corrected."""
        return any(one.corrected for one in self.measured_runs)

    @property
    def remark_on_max_fitness(self) -> str:
        """Why max fitness says little; empty if it does not."""
        return self.runs[0].record.facts.remark_on_max_fitness

    @property
    def suspicions(self) -> list[str]:
        """What must not be overlooked about single runs."""
        found = in_words([one.suspect for one in self.measured_runs])
        return [*found, *(f"{self.task}: {words}" for words in self.changed_code)]

    @property
    def warnings(self) -> list[str]:
        """All warnings about this task."""
        return [*self.suspicions, *([f"{self.task}: {self.no_times}"] if self.no_times else [])]


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements of all runs in some folders, what was left out, and what was asked for."""

    tasks: tuple[MeasuredTask, ...]
    skipped: tuple[Skipped, ...]
    left_out: tuple[LeftOut, ...]
    results: tuple[Path, ...]
    only: tuple[str, ...]
    """The tasks that were asked for; empty means all."""
    interval: IntervalKind
    on: On

    @property
    def variants(self) -> list[tuple[MeasuredTask, MeasuredVariant]]:
        """All variants on all tasks."""
        return [(task, variant) for task in self.tasks for variant in task.variants]

    @property
    def runs(self) -> list[tuple[MeasuredVariant, MeasuredRun]]:
        """All replications with their variants."""
        return [(variant, run) for _, variant in self.variants for run in variant.runs]

    @property
    def is_all_corrected(self) -> bool:
        """Whether every final archive was corrected."""
        return all(run.corrected for _, run in self.runs)

    @property
    def warnings(self) -> list[str]:
        """All warnings."""
        left_out = [f"{one.task} is left out: {one.reason}" for one in self.left_out]
        return [*left_out, *(warning for task in self.tasks for warning in task.warnings)]
