"""Compare algorithms: every run measured once, estimates over replications, tests of every pair.

Runs that cannot be compared are refused, runs that cannot be used are named, numbers that do not exist have
a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from qdbench.analysis.collect import Collected, Skipped, Variant
from qdbench.analysis.comparable import (
    differing,
    ended_by_seconds,
    flat,
    require_comparable,
    require_equal_reevaluations,
)
from qdbench.analysis.comparable import times_comparable as times_comparable
from qdbench.analysis.measures import (
    SELF_NORMALISED,
    Interval,
    On,
    container,
    final,
    final_correction,
    fixed_interval,
    pooled_interval,
)
from qdbench.analysis.statistics import (
    Estimate,
    Values,
    estimate,
    holm,
    improvement,
    improvement_interval,
    mann_whitney,
)
from qdbench.analysis.warnings_of_runs import Suspect, about_max_fitness, in_words, suspect
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.loading import StoredRun
from qdbench.seeds import stream

IntervalKind = Literal["fixed", "pooled"]
PRIMARY, FALLBACK = "corrected_qd_score", "qd_score"
METRICS = {
    "coverage": "coverage",
    "coverage_share": "coverage, share of cells",
    "qd_score": "QD score",
    "mean_fitness": "mean normalised fitness",
    "max_fitness": "max fitness",
    "corrected_coverage": "corrected coverage",
    "corrected_coverage_share": "corrected coverage, share of cells",
    "corrected_qd_score": "corrected QD score",
    "corrected_mean_fitness": "corrected mean normalised fitness",
    "corrected_max_fitness": "corrected max fitness",
    "coverage_loss": "coverage loss",
    "qd_score_loss": "QD score loss",
    "max_fitness_loss": "max fitness loss",
    "lost_elites": "elites lost to an invalid re-evaluation",
    "split_half_coverage": "split-half coverage",
    "split_half_qd_score": "split-half QD score",
    "fitness_deviation": "deviation of re-evaluated fitness",
    "descriptor_deviation": "deviation of re-evaluated descriptor",
    "self_normalised_qd_score": "self-normalised QD score",
    "seconds": "seconds",
}
"""What is compared, and how it is called."""
_UNTESTED = (
    "_share",
    "_deviation",
    "lost_elites",
    "split_half_coverage",
    "split_half_qd_score",
    SELF_NORMALISED,
)
TESTED = [name for name in METRICS if not name.endswith(_UNTESTED)]
"""A share says what its count says, deviations and lost elites are of the noise and not of an algorithm's
success, split halves check the corrected metrics, and on its own range every archive is its own yardstick."""


@dataclass(frozen=True)
class Entry:
    """One metric of one variant on one task."""

    task: str
    variant: str
    metric: str
    n_runs: int
    estimate: Estimate
    """Over the replications where the metric is defined."""
    undefined: dict[str, int]
    """Why it is not, and in how many replications."""


@dataclass(frozen=True)
class Pair:
    """Two variants by one metric on one task."""

    task: str
    metric: str
    primary: bool
    """One of the tests that count; the others are exploratory."""
    a: str
    b: str
    n_a: int
    n_b: int
    improvement: float
    """The probability that a run of `a` has the higher value, ties counted half; 95 %: `low` to `high`."""
    low: float
    high: float
    p: float
    """Of the two-sided Mann-Whitney U test; NaN with too few replications."""
    p_holm: float = np.nan
    """Adjusted: over pairs and tasks of the primary endpoint, or over pairs and tasks of the metric."""


@dataclass(frozen=True)
class TaskComparison:
    """All there is to say about one task."""

    task: str
    interval: Interval
    primary: str
    """The metric of the primary endpoint: the corrected QD score wherever any run was corrected."""
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Aggregate:
    """A score divided by the number of cells, over all replications on all tasks."""

    variant: str
    metric: str
    estimate: Estimate


@dataclass(frozen=True)
class Comparison:
    """The whole of it."""

    interval: IntervalKind
    on: On
    tasks: tuple[TaskComparison, ...]
    pairs: tuple[Pair, ...]
    aggregates: tuple[Aggregate, ...]
    aggregate_notes: tuple[str, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class _Measured:
    """One run in numbers."""

    values: dict[str, float]
    container: str
    n_reevaluations: int | None
    suspect: Suspect


def compare(collected: Collected, *, interval: IntervalKind = "fixed", on: On = "own") -> Comparison:
    """Compare what was collected; InvalidInput where that would compare what cannot be compared."""
    skipped = list(collected.skipped)
    tasks: list[TaskComparison] = []
    pairs: list[Pair] = []
    scores: dict[str, dict[str, Sequence[_Measured]]] = {}
    kept: list[Variant] = []
    for task in collected.tasks:
        variants = collected.of_task(task)
        require_comparable(variants)
        variants, measured, bounds = _measure(variants, interval, on, skipped)
        if not variants:
            continue
        compared = _compare_task(variants, measured, bounds, on)
        tasks.append(compared)
        pairs += _pairs(compared, measured)
        scores[task] = measured
        kept += variants
    if not tasks:
        reasons = "; ".join(f"{one.path}: {one.reason}" for one in skipped[:1])
        more = f"; and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        raise InvalidInput(f"no run can be compared ({reasons or 'none was found'}{more})")
    aggregates, notes = _aggregate(scores, kept)
    return Comparison(interval, on, tuple(tasks), _adjusted(pairs), aggregates, notes, tuple(skipped))


# The numbers


def _measure(
    variants: tuple[Variant, ...], kind: IntervalKind, on: On, skipped: list[Skipped]
) -> tuple[tuple[Variant, ...], dict[str, Sequence[_Measured]], Interval]:
    """Measure every run, on an interval that no run has a say in that turns out to be damaged."""
    while True:
        runs = [run for variant in variants for run in variant.runs]
        if not runs:
            return (), {}, (np.nan, np.nan)
        bounds = pooled_interval(runs) if kind == "pooled" else fixed_interval(runs[0])
        if not bounds[0] < bounds[1]:
            raise InvalidInput(
                f"the runs of {variants[0].task} have no two different fitness values, so there is no pooled "
                "interval; use --interval fixed"
            )
        measured: dict[str, Sequence[_Measured]] = {}
        whole: list[Variant] = []
        n_before = len(skipped)
        for variant in variants:
            found = [(run, _numbers(run, bounds, on, skipped)) for run in variant.runs]
            usable = [(run, numbers) for run, numbers in found if numbers is not None]
            if usable:
                whole.append(replace(variant, runs=tuple(run for run, _ in usable)))
                measured[variant.label] = [numbers for _, numbers in usable]
        variants = tuple(whole)
        if kind == "fixed" or len(skipped) == n_before:
            return variants, measured, bounds


def _numbers(run: StoredRun, bounds: Interval, on: On, skipped: list[Skipped]) -> _Measured | None:
    """Measure a run and let go of its arrays, or say why it cannot be measured."""
    run = StoredRun(run.path, run.record)
    try:
        values = final(run, bounds, on)
        correction, where = final_correction(run), container(run, on)
        n = run.corrections.n_reevaluations if run.corrections is not None and correction else None
        looked_at = suspect(run)
    except (QdbenchError, OSError) as error:
        skipped.append(Skipped(run.path, str(error)))
        return None
    for name in ("coverage", "qd_score", "corrected_coverage", "corrected_qd_score"):
        values[f"{name}_share"] = values[name] / where.n_cells if where.n_cells else np.nan
    cells = f"{where.kind}, {where.n_cells:,} cells" if where.n_cells else f"{where.kind}, no cells"
    return _Measured(values, cells, n, looked_at)


def _compare_task(
    variants: Sequence[Variant], measured: Mapping[str, Sequence[_Measured]], bounds: Interval, on: On
) -> TaskComparison:
    task, everything = variants[0].task, [numbers for group in measured.values() for numbers in group]
    runs = [run for variant in variants for run in variant.runs]
    counts = [numbers.n_reevaluations for numbers in everything]
    require_equal_reevaluations(task, zip(runs, counts, strict=True))
    times = times_comparable(variants)
    metrics = [metric for metric in METRICS if metric != "seconds" or not times]
    entries = tuple(
        _entry(task, label, metric, group) for metric in metrics for label, group in measured.items()
    )
    warnings = in_words([numbers.suspect for numbers in everything], bounds)
    notes = (*_notes(task, runs, measured, on), *([times] if times else []))
    return TaskComparison(task, bounds, PRIMARY if any(counts) else FALLBACK, entries, tuple(warnings), notes)


def _notes(
    task: str, runs: Sequence[StoredRun], measured: Mapping[str, Sequence[_Measured]], on: On
) -> Iterable[str]:
    containers = {label: group[0].container for label, group in measured.items()}
    if on == "grid":
        yield f"measured on the task's grid ({next(iter(containers.values()))})"
    elif len(set(containers.values())) == 1:
        yield f"measured on the algorithms' own containers (all: {next(iter(containers.values()))})"
    else:
        each = "; ".join(f"{label}: {words}" for label, words in containers.items())
        yield f"measured on each algorithm's own container ({each}); --on grid uses the task's grid for all"
    counts = Counter(numbers.n_reevaluations for group in measured.values() for numbers in group)
    n = next((n for n in counts if n), None)
    if n:
        yield (
            f"corrected: means of {n} re-evaluations; deviations: standard deviations of these, of the "
            "median elite; losses are on the fixed interval"
        )
    else:
        yield "no final archive was corrected, so the primary endpoint is the uncorrected QD score here"
    done = sorted({run.record["totals"]["evaluations"] for run in runs})
    if len(done) > 1:
        why = "their seconds were over" if any(map(ended_by_seconds, runs)) else "an iteration was whole"
        yield f"runs ended when {why}: they made {done[0]:,} to {done[-1]:,} evaluations"
    if about_max_fitness(task):
        yield about_max_fitness(task)


def _entry(task: str, label: str, metric: str, group: Sequence[_Measured]) -> Entry:
    undefined = Counter(_why(metric, one.values) for one in group if np.isnan(one.values[metric]))
    found = estimate([_defined(metric, group)], stream(0, "bootstrap", task, label, metric))
    return Entry(task, label, metric, len(group), found, dict(undefined))


def _defined(metric: str, group: Sequence[_Measured]) -> Values:
    values = np.array([one.values[metric] for one in group], np.float64)
    return values[~np.isnan(values)]


def _why(metric: str, values: Mapping[str, float]) -> str:
    """Return why a run has no such number."""
    corrected = metric.startswith(("corrected_", "lost_", "split_half_")) or metric.endswith(
        ("_loss", "_deviation")
    )
    if corrected and np.isnan(values["lost_elites"]):
        return "the elites of the final archive were not re-evaluated (qdbench correct does it)"
    if metric.endswith("_share"):
        return "an unstructured archive has no cells to have a share of (--on grid)"
    if metric.endswith("_loss") and not (metric == "max_fitness_loss" and values["max_fitness"] > 0):
        return "a loss is undefined where the uncorrected value is not above 0"
    if metric == "split_half_coverage" and not np.isnan(values["split_half_qd_score"]):
        return "an unstructured archive has no cells to be in again (--on grid)"
    if (
        metric.endswith(("_deviation", "split_half_coverage", "split_half_qd_score"))
        and values["corrected_coverage"]
    ):
        return "one re-evaluation has neither a deviation nor halves"
    if corrected:
        return "no elite is left in the corrected archive"
    if values["coverage"] == 0:
        return "the archive is empty"
    return "all elites have the same fitness, so they have no range of their own"


def _pairs(compared: TaskComparison, measured: Mapping[str, Sequence[_Measured]]) -> Iterable[Pair]:
    task, present = compared.task, {entry.metric for entry in compared.entries}
    for metric in TESTED:
        if metric not in present:
            continue
        for a, b in combinations(measured, 2):
            x, y = (_defined(metric, measured[label]) for label in (a, b))
            low, high = improvement_interval(x, y, stream(0, "bootstrap", task, a, b, metric))
            primary, p = metric == compared.primary, mann_whitney(x, y)
            yield Pair(task, metric, primary, a, b, len(x), len(y), improvement(x, y), low, high, p)


def _adjusted(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Adjust the tests of the primary endpoint together, and those of every other metric by themselves."""
    found = list(pairs)
    families: dict[str, list[int]] = {}
    for i, pair in enumerate(found):
        families.setdefault("" if pair.primary else pair.metric, []).append(i)
    for members in families.values():
        for i, p in zip(members, holm([found[i].p for i in members]), strict=True):
            found[i] = replace(found[i], p_holm=p)
    return tuple(found)


def _aggregate(
    scores: Mapping[str, Mapping[str, Sequence[_Measured]]], variants: Sequence[Variant]
) -> tuple[tuple[Aggregate, ...], tuple[str, ...]]:
    """Put tasks together: scores divided by the number of cells, of the algorithms that are on every task."""
    if len(scores) < 2:
        return (), ()
    labels = dict.fromkeys(variant.label for variant in variants)
    everywhere = [label for label in labels if all(label in measured for measured in scores.values())]
    notes, aggregates = [], []
    if len(everywhere) < len(labels):
        others = ", ".join(label for label in labels if label not in everywhere)
        notes.append(f"not in the aggregate, because they are not on every task: {others}")
    for label in everywhere:
        algorithms = (
            (run, flat(run.record["algorithm"])) for v in variants for run in v.runs if v.label == label
        )
        different = "; ".join(differing(algorithms))
        if different:
            notes.append(f"{label} has not the same options on every task: {different}")
        for metric in (FALLBACK, PRIMARY):
            strata = {task: _defined(f"{metric}_share", measured[label]) for task, measured in scores.items()}
            without = [task for task, values in strata.items() if not len(values)]
            if without:
                notes.append(f"{label} has no {METRICS[metric]} per cell on {', '.join(without)}")
                continue
            sizes = {len(values) for values in strata.values()}
            if len(sizes) > 1:
                words = f"{min(sizes)} to {max(sizes)} replications, and a task weighs by its number"
                notes.append(f"{METRICS[metric]} of {label}: tasks have {words}")
            found = estimate(list(strata.values()), stream(0, "bootstrap", "aggregate", label, metric))
            aggregates.append(Aggregate(label, metric, found))
    return tuple(sorted(aggregates, key=lambda one: one.metric == PRIMARY)), tuple(notes)
