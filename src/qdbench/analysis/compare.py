"""Compare algorithms: estimates over replications, tests of every pair, an aggregate over tasks.

Runs that cannot be compared are refused. Runs that cannot be used are named. Undefined numbers have a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from qdbench.analysis.collect import Skipped
from qdbench.analysis.comparable import algorithm_facts, differing, ended_by_seconds
from qdbench.analysis.measured import (
    IntervalKind,
    Measured,
    MeasuredTask,
    MeasuredVariant,
    Paths,
    Progress,
    as_measured,
)
from qdbench.analysis.measures import Interval, On
from qdbench.analysis.statistics import (
    Estimate,
    Values,
    estimate,
    holm,
    improvement,
    improvement_interval,
    mann_whitney,
)
from qdbench.checks import checked_path
from qdbench.metrics.metric import FALLBACK, METRICS, PRIMARY, Metric, per_cell
from qdbench.seeds import stream
from qdbench.store.files import require_folder


@dataclass(frozen=True)
class Entry:
    """One metric of one variant on one task."""

    task: str
    variant: str
    metric: str
    n_runs: int
    estimate: Estimate
    """Over the replications for which the metric is defined."""
    undefined: dict[str, int]
    """Why the metric is undefined, and for how many replications."""


@dataclass(frozen=True)
class Pair:
    """Two variants, compared by one metric on one task."""

    task: str
    metric: str
    primary: bool
    """Whether it is a test of the primary endpoint; all others are exploratory."""
    a: str
    b: str
    n_a: int
    n_b: int
    improvement: float
    """Probability that a run of `a` has the higher value; ties count half. 95 % interval: `low`, `high`."""
    low: float
    high: float
    p: float
    """p-value of the two-sided Mann-Whitney U test; NaN with too few replications."""
    p_holm: float = np.nan
    """p after Holm's correction, over all pairs and tasks of the primary endpoint or of the metric."""


@dataclass(frozen=True)
class TaskComparison:
    """The comparison on one task."""

    task: str
    interval: Interval
    primary: str
    """The metric of the primary endpoint: the corrected QD score, if any run was corrected."""
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
    """The complete comparison."""

    interval: IntervalKind
    on: On
    tasks: tuple[TaskComparison, ...]
    pairs: tuple[Pair, ...]
    aggregates: tuple[Aggregate, ...]
    aggregate_notes: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def compare(
    results: Paths | Measured,
    *,
    tasks: str | Sequence[str] = (),
    interval: IntervalKind = "fixed",
    on: On = "own",
    out: str | Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Comparison:
    """Compare algorithms: estimates over replications, tests of every pair, an aggregate over tasks.

    `results` are folders with runs, or the result of `measure`. `tasks`, `interval` and `on` are those of
    `measure`. With `out`, the tables are also written into that folder. Raises InvalidInput if the runs
    cannot be compared.
    """
    folder = None if out is None else checked_path("out", out)
    if folder is not None:
        require_folder(folder)
    measured = as_measured(results, tasks, interval, on, progress)
    aggregates, notes = _aggregate(measured)
    comparison = Comparison(
        measured.interval,
        measured.on,
        tuple(map(_compare_task, measured.tasks)),
        _adjusted([pair for task in measured.tasks for pair in _pairs(task)]),
        aggregates,
        notes,
        measured.skipped,
    )
    if folder is not None:
        from qdbench.analysis.table_files import write_tables  # it imports the records of this file

        write_tables(comparison, folder)
    return comparison


def _compare_task(task: MeasuredTask) -> TaskComparison:
    return TaskComparison(
        task.task,
        task.by.interval,
        _primary(task).name,
        tuple(_entry(task.task, variant, metric) for metric in _metrics(task) for variant in task.variants),
        tuple(task.suspicions),
        tuple(_notes(task)),
    )


def _metrics(task: MeasuredTask) -> list[Metric]:
    """Return the metrics by which the runs of a task can be compared."""
    return [metric for metric in METRICS.values() if metric.name != "seconds" or not task.no_times]


def _primary(task: MeasuredTask) -> Metric:
    return PRIMARY if task.is_corrected else FALLBACK


def _notes(task: MeasuredTask) -> Iterable[str]:
    cells = {variant.label: _cells(variant) for variant in task.variants}
    if task.by.on == "grid":
        yield f"measured on the task's grid ({next(iter(cells.values()))})"
    elif len(set(cells.values())) == 1:
        yield f"measured on the algorithms' own archives (all: {next(iter(cells.values()))})"
    else:
        each = "; ".join(f"{label}: {words}" for label, words in cells.items())
        yield f"measured on each algorithm's own archive ({each}); --on grid uses the task's grid for all"
    n = next((one.corrected.n_reevaluations for one in task.measured_runs if one.corrected), 0)
    if n:
        yield (
            f"corrected: means of {n} re-evaluations; deviations: standard deviations of the re-evaluations, "
            "median over elites; losses are on the fixed interval"
        )
    else:
        yield "no final archive was corrected, so the primary endpoint is the uncorrected QD score"
    done = sorted({run.record.totals.evaluations for run in task.runs})
    if len(done) > 1:
        early = any(map(ended_by_seconds, task.runs))
        why = "when their time was over" if early else "with a complete iteration"
        yield f"runs end {why}: these made {done[0]:,} to {done[-1]:,} evaluations"
    yield from filter(None, (task.remark_on_max_fitness, task.no_times))


def _cells(variant: MeasuredVariant) -> str:
    one = variant.runs[0]
    return f"{one.kind}, {one.n_cells:,} cells" if one.n_cells else f"{one.kind}, no cells"


def _entry(task: str, variant: MeasuredVariant, metric: Metric) -> Entry:
    values = [one.values for one in variant.runs]
    undefined = Counter(metric.why_undefined(v) for v in values if np.isnan(v[metric.name]))
    generator = stream(0, "bootstrap", task, variant.label, metric.name)
    found = estimate([_defined(metric.name, variant)], generator)
    return Entry(task, variant.label, metric.name, len(values), found, dict(undefined))


def _defined(name: str, variant: MeasuredVariant) -> Values:
    values = np.array([one.values[name] for one in variant.runs], np.float64)
    return values[~np.isnan(values)]


def _pairs(task: MeasuredTask) -> Iterable[Pair]:
    for metric in _metrics(task):
        if metric.role != "tested":
            continue
        for a, b in combinations(task.variants, 2):
            x, y = (_defined(metric.name, variant) for variant in (a, b))
            generator = stream(0, "bootstrap", task.task, a.label, b.label, metric.name)
            low, high = improvement_interval(x, y, generator)
            yield Pair(
                task.task, metric.name, metric is _primary(task), a.label, b.label, len(x), len(y),
                improvement(x, y), low, high, mann_whitney(x, y),
            )  # fmt: skip


def _adjusted(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Adjust the tests of the primary endpoint together, and those of every other metric separately."""
    found = list(pairs)
    families: dict[str, list[int]] = {}
    for i, pair in enumerate(found):
        families.setdefault("" if pair.primary else pair.metric, []).append(i)
    for members in families.values():
        for i, p in zip(members, holm([found[i].p for i in members]), strict=True):
            found[i] = replace(found[i], p_holm=p)
    return tuple(found)


def _aggregate(measured: Measured) -> tuple[tuple[Aggregate, ...], tuple[str, ...]]:
    """Aggregate over tasks: scores divided by the number of cells, for algorithms that ran on every task."""
    if len(measured.tasks) < 2:
        return (), ()
    by_label: dict[str, dict[str, MeasuredVariant]] = {}
    for task, variant in measured.variants:
        by_label.setdefault(variant.label, {})[task.task] = variant
    everywhere = {label: on for label, on in by_label.items() if len(on) == len(measured.tasks)}
    notes, aggregates = [], []
    if len(everywhere) < len(by_label):
        others = ", ".join(label for label in by_label if label not in everywhere)
        notes.append(f"not in the aggregate, because they did not run on every task: {others}")
    for label, variants in everywhere.items():
        runs = (one.run for variant in variants.values() for one in variant.runs)
        different = "; ".join(differing((run, algorithm_facts(run)) for run in runs))
        if different:
            notes.append(f"{label} does not have the same options on every task: {different}")
        for metric in (FALLBACK, PRIMARY):
            strata = {task: _defined(per_cell(metric.name), v) for task, v in variants.items()}
            without = [task for task, values in strata.items() if not len(values)]
            if without:
                notes.append(f"{label} has no {metric.title} per cell on {', '.join(without)}")
                continue
            sizes = {len(values) for values in strata.values()}
            if len(sizes) > 1:
                words = f"{min(sizes)} to {max(sizes)} replications, and each replication has equal weight"
                notes.append(f"{metric.title} of {label}: tasks have {words}")
            generator = stream(0, "bootstrap", "aggregate", label, metric.name)
            found = estimate(list(strata.values()), generator)
            aggregates.append(Aggregate(label, metric.name, found))
    return tuple(sorted(aggregates, key=lambda one: one.metric == PRIMARY.name)), tuple(notes)
