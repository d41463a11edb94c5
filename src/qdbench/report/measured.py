"""All numbers that figures need of some runs: each run's files are read once, and let go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qdbench.analysis.collect import Skipped, Variant
from qdbench.analysis.comparable import require_comparable, require_equal_reevaluations, times_comparable
from qdbench.analysis.measures import (
    CURVES,
    Curves,
    Interval,
    On,
    container,
    corrected_fitness,
    curves,
    final,
    final_correction,
    fixed_interval,
    placed_fitness,
    pooled_interval,
)
from qdbench.analysis.warnings_of_runs import Suspect, in_words, suspect
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.corrections import Correction
from qdbench.experiments.loading import StoredRun
from qdbench.metrics.robustness import SplitHalf, by_samples, split_half
from qdbench.report.bands import Values

IntervalKind = Literal["fixed", "pooled"]

MOST_COUNTS = 12
"""At how many numbers of re-evaluations corrected scores are looked at."""


@dataclass(frozen=True)
class Yardstick:
    """What QD scores are measured by: an interval of fitness, and the cells that count."""

    kind: IntervalKind
    interval: Interval
    on: On

    def __str__(self) -> str:
        low, high = (f"{bound:,.6g}".replace("-", "\N{MINUS SIGN}") for bound in self.interval)
        whose = "the task's fixed interval" if self.kind == "fixed" else "the pooled interval of these runs"
        return f"QD score on {whose} [{low}, {high}]{self.where}"

    @property
    def where(self) -> str:
        """The container in words, if it is not the algorithms' own."""
        return "" if self.on == "own" else ", on the task's grid"


@dataclass(frozen=True, eq=False)
class BySamples:
    """A corrected archive's scores as a function of the number of re-evaluations."""

    counts: Values  #: (m,)
    coverage: Values  #: (m,)
    qd_score: Values  #: (m,)
    split_half: SplitHalf


@dataclass(frozen=True, eq=False)
class Corrected:
    """What re-evaluations say about a final archive."""

    n_reevaluations: int
    fitness: Values  #: (elites left,)
    losses: dict[str, float]
    """By metric; on the task's fixed interval, whatever the yardstick; NaN is undefined."""
    by_samples: BySamples


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One replication in numbers."""

    run: StoredRun
    kind: str
    """Of the container it is measured on: `grid`, `cvt` or `unstructured`."""
    curves: Curves
    fitness: Values  #: (elites,) of the final archive
    corrected: Corrected | None
    """Of the final archive."""
    n_reevaluations: int | None
    """Of each elite, at any moment of the run."""
    suspect: Suspect

    @property
    def seed(self) -> int:
        """The replication's seed."""
        return int(self.run.record["seed"])

    @property
    def qd_score(self) -> float:
        """At the end."""
        return float(self.curves.values["qd_score"][-1])


@dataclass(frozen=True, eq=False)
class MeasuredVariant:
    """An algorithm's replications in numbers, by seed."""

    label: str
    runs: tuple[MeasuredRun, ...]

    @property
    def corrected(self) -> list[Corrected]:
        """Of the replications whose final elites were re-evaluated."""
        return [run.corrected for run in self.runs if run.corrected is not None]

    @property
    def has_corrected_curves(self) -> bool:
        """Whether elites of any moment were re-evaluated."""
        return any(run.n_reevaluations for run in self.runs)

    @property
    def typical(self) -> MeasuredRun:
        """The median replication by final QD score; the lower one of two."""
        return sorted(self.runs, key=lambda run: (run.qd_score, run.seed))[(len(self.runs) - 1) // 2]


@dataclass(frozen=True, eq=False)
class MeasuredTask:
    """All that a task's figures show."""

    task: str
    variants: tuple[MeasuredVariant, ...]
    by: Yardstick
    no_times: str
    """Why seconds cannot be compared, or nothing."""

    @property
    def runs(self) -> list[StoredRun]:
        """All replications of all algorithms."""
        return [run.run for variant in self.variants for run in variant.runs]

    @property
    def warnings(self) -> list[str]:
        """What must not be overlooked."""
        looked_at = [run.suspect for variant in self.variants for run in variant.runs]
        found = in_words(looked_at, self.by.interval)
        return [*found, f"{self.task}: {self.no_times}"] if self.no_times else found


def measure(
    variants: Sequence[Variant],
    kind: IntervalKind = "fixed",
    on: On = "own",
    progress: Callable[[], None] = lambda: None,
) -> tuple[MeasuredTask | None, list[Skipped]]:
    """Measure a task's runs, and tell which could not be; `progress` is called after each.

    InvalidInput where runs have no business in one figure.
    """
    require_comparable(variants)
    by = Yardstick(kind, _interval(variants, kind), on)
    found: list[MeasuredVariant] = []
    skipped: list[Skipped] = []
    for variant in variants:
        runs: list[MeasuredRun] = []
        for run in variant.runs:
            try:
                runs.append(measured_run(run, by))
            except (QdbenchError, OSError) as error:
                skipped.append(Skipped(run.path, str(error)))
            progress()
        if runs:
            found.append(MeasuredVariant(variant.label, tuple(runs)))
    if not found:
        return None, skipped
    task = variants[0].task
    require_equal_reevaluations(task, ((run.run, run.n_reevaluations) for v in found for run in v.runs))
    left = [Variant(task, variant.label, tuple(run.run for run in variant.runs)) for variant in found]
    if skipped and kind == "pooled":  # what cannot be used has no say in the interval
        again, others = measure(left, kind, on)
        return again, skipped + others
    return MeasuredTask(task, tuple(found), by, times_comparable(left)), skipped


def _interval(variants: Sequence[Variant], kind: IntervalKind) -> Interval:
    runs = [run for variant in variants for run in variant.runs]
    interval = fixed_interval(runs[0]) if kind == "fixed" else pooled_interval(runs)
    if not interval[0] < interval[1]:
        raise InvalidInput(
            f"the runs of {variants[0].task} have no two different fitness values, so there is no pooled "
            "interval; use --interval fixed"
        )
    return interval


def measured_run(run: StoredRun, by: Yardstick) -> MeasuredRun:
    """Measure one run."""
    read = StoredRun(run.path, run.record)  # it remembers all it has read; `run` shall not
    correction, taken = final_correction(read), curves(read, by.interval, by.on)
    n = read.corrections.n_reevaluations if read.corrections is not None else None
    return MeasuredRun(
        run,
        container(read, by.on).kind,
        taken,
        placed_fitness(read, by.on),
        None if correction is None else _corrected(read, correction, by),
        n if len(taken.corrected_evaluations) else None,
        suspect(read),
    )


def _corrected(run: StoredRun, correction: Correction, by: Yardstick) -> Corrected:
    lost = final(run, by.interval, by.on)
    return Corrected(
        correction.reevaluations.fitness.shape[1],
        corrected_fitness(run, correction, by.on),
        {name: lost[f"{name}_loss"] for name in CURVES},
        _by_samples(run, correction, by),
    )


def _by_samples(run: StoredRun, correction: Correction, by: Yardstick) -> BySamples:
    """Return corrected scores by samples, at a few places: a large archive takes its time."""
    where, samples = container(run, by.on), correction.reevaluations
    counts = sample_counts(samples.fitness.shape[1])
    found = by_samples(where, samples, by.interval, counts)
    return BySamples(
        np.array(counts, np.float64),
        np.array([score.coverage for score in found], np.float64),
        np.array([score.qd_score for score in found]),
        split_half(where, samples, by.interval),
    )


def sample_counts(n: int) -> list[int]:
    """Return numbers from 1 to `n`, evenly spaced on a logarithmic axis; all, if they are few."""
    return sorted({round(count) for count in np.geomspace(1, n, MOST_COUNTS).tolist()} | {1, n})
