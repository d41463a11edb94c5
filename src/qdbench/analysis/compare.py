"""Compare algorithms: estimates over replications, tests of pairs, an aggregate over tasks.

Tasks whose runs cannot be compared and runs that cannot be used are left out and named. Undefined numbers
have a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from qdbench.analysis.aggregate import (
    Aggregate,
    Anchors,
    aggregate,
    defined,
    pairs_of,
    primary,
    variant_name,
)
from qdbench.analysis.chosen import chosen_metrics, chosen_opponent, relabelled
from qdbench.analysis.collect import LeftOut, Skipped
from qdbench.analysis.comparable import ended_by_seconds
from qdbench.analysis.measured import IntervalKind, Measured, MeasuredTask, MeasuredVariant, Paths, Progress
from qdbench.analysis.measures import Interval, On
from qdbench.analysis.measuring import as_measured
from qdbench.analysis.references import with_references
from qdbench.analysis.statistics import (
    Estimate,
    estimate,
    holm,
    improvement,
    improvement_interval,
    mann_whitney,
)
from qdbench.checks import checked_list, checked_path, shown
from qdbench.errors import InvalidInput
from qdbench.metrics.metric import METRICS, Metric
from qdbench.seeds import TUNING_SEEDS, seeds_text, stream
from qdbench.store.files import require_folder
from qdbench.store.reference_file import Reference

OVERSHOOT = 0.02
"""Runs that made more evaluations than their budget by more than this share are marked in every table."""


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
    """Whether it is a test of the primary endpoint: of the primary metric, if there is only one task. With
    several, the primary tests are those of the aggregate, and all tests of single tasks are exploratory."""
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
    """p after Holm's correction, over all pairs and tasks of this metric."""


@dataclass(frozen=True)
class TaskComparison:
    """The comparison on one task."""

    task: str
    interval: Interval
    primary: str
    """The metric of the primary endpoint: the corrected QD score, if any run was corrected."""
    budget: int | None
    """Evaluations of a run; None if the budget is only of seconds."""
    evaluations: dict[str, float]
    """Mean number of evaluations that the runs of every variant made."""
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def excess(self, variant: str) -> float:
        """Return by which share of the budget the runs of a variant made more evaluations than it."""
        made = self.evaluations.get(variant, 0.0)
        return max(0.0, (made - self.budget) / self.budget) if self.budget else 0.0


@dataclass(frozen=True)
class Comparison:
    """The complete comparison."""

    interval: IntervalKind
    on: On
    metrics: tuple[str, ...]
    """The metrics that were asked for; empty means all."""
    tasks: tuple[TaskComparison, ...]
    pairs: tuple[Pair, ...]
    aggregate: Aggregate | None
    """The comparison over all tasks; None if there is only one."""
    left_out: tuple[LeftOut, ...]
    skipped: tuple[Skipped, ...]


def compare(
    results: Paths | Measured,
    *,
    tasks: str | Sequence[str] = (),
    interval: IntervalKind = "fixed",
    on: On = "own",
    metrics: str | Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    against: str = "",
    anchors: Anchors | None = None,
    references: Sequence[Reference] = (),
    out: str | Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Comparison:
    """Compare algorithms: estimates over replications, tests of pairs, an aggregate over tasks.

    `results` are folders with runs, or the result of `measure`. `tasks`, `interval` and `on` are those of
    `measure`. `metrics` are the names of the metrics to show; by default all. `labels` gives algorithms other
    names in all tables. With `against`, an algorithm's name or label, only pairs with it are tested.
    `anchors` normalise the scores of the aggregate over tasks, such as `aggregate.anchors` of another
    comparison; by default they are taken from these runs. `references` are reference results, such as
    `qdbench.references()`: those of the same tasks and budgets are compared too, and give the anchors. With
    `out`, the tables are also written into that folder. Raises InvalidInput if no task's runs can be
    compared.
    """
    folder = None if out is None else checked_path("out", out)
    if folder is not None:
        require_folder(folder)
    wanted, names = chosen_metrics(metrics), {} if labels is None else labels
    measured = as_measured(results, tasks, interval, on, progress)
    if len(_checked_references(references)):
        joined = with_references(measured, references)
        measured, anchors = joined.measured, anchors or joined.anchors
    found = relabelled(measured, names)
    _check_anchors(anchors, found)
    opponent = chosen_opponent(found, names, against)
    comparison = Comparison(
        found.interval,
        found.on,
        wanted,
        tuple(_compare_task(task, wanted) for task in found.tasks),
        _adjusted(
            [pair for task in found.tasks for pair in _pairs(task, wanted, opponent, len(found.tasks))]
        ),
        aggregate(found, anchors, opponent),
        found.left_out,
        found.skipped,
    )
    if folder is not None:
        from qdbench.analysis.table_files import write_tables  # it imports the records of this file

        write_tables(comparison, folder)
    return comparison


def _checked_references(references: Sequence[Reference]) -> list[Reference]:
    found = checked_list("references", references, "give those of qdbench.references()")
    for one in found:
        if not isinstance(one, Reference):
            raise InvalidInput(f"a reference is {shown(one)}; give those of qdbench.references()")
    return found


def _check_anchors(anchors: Anchors | None, measured: Measured) -> None:
    if anchors is None:
        return
    if not isinstance(anchors, Anchors):
        raise InvalidInput(f"anchors are {shown(anchors)}; give those of another comparison's aggregate")
    if (measured.interval, measured.on) != ("fixed", "own"):
        raise InvalidInput(
            "anchors belong to scores with interval='fixed' and on='own'; use these, or no anchors"
        )


def _compare_task(task: MeasuredTask, wanted: Sequence[str]) -> TaskComparison:
    made = {
        variant.label: float(np.mean([one.run.record.totals.evaluations for one in variant.runs]))
        for variant in task.variants
    }
    return TaskComparison(
        task.task,
        task.by.interval,
        primary(task).name,
        task.runs[0].record.target.evaluations,
        made,
        tuple(
            _entry(task.task, variant, metric)
            for metric in _metrics(task, wanted)
            for variant in task.variants
        ),
        (*task.suspicions, *_mixed_seeds(task)),
        tuple(_notes(task)),
    )


def _mixed_seeds(task: MeasuredTask) -> Iterable[str]:
    for one in task.variants:
        seeds = [run.seed for run in one.runs]
        if min(seeds) < TUNING_SEEDS <= max(seeds):
            yield (
                f"{task.task}: the runs of {one.label} have seeds {seeds_text(seeds)}; those from "
                f"{TUNING_SEEDS} up are for tuning: compare them separately"
            )


def _seeds(task: MeasuredTask) -> str:
    by_label = {
        one.label: seeds_text(run.seed for run in one.runs) for one in task.variants if not one.is_reference
    }
    if len(set(by_label.values())) == 1:
        return f"seeds {next(iter(by_label.values()))}"
    return f"seeds: {'; '.join(f'{label} {seeds}' for label, seeds in by_label.items())}"


def _metrics(task: MeasuredTask, wanted: Sequence[str]) -> list[Metric]:
    """Return the metrics that are wanted and by which the runs of a task can be compared."""
    return [METRICS[name] for name in wanted or METRICS if name != "seconds" or not task.no_times]


def _notes(task: MeasuredTask) -> Iterable[str]:
    yield _seeds(task)
    cells = {variant.label: _cells(variant) for variant in task.variants}
    if task.by.on == "grid":
        yield f"measured on the task's grid ({next(iter(cells.values()))})"
    elif len(set(cells.values())) == 1:
        yield f"measured on the algorithms' own archives (all: {next(iter(cells.values()))})"
    else:
        each = "; ".join(f"{label}: {words}" for label, words in cells.items())
        yield f"measured on each algorithm's own archive ({each}); --on grid uses the task's grid for all"
    others = [one.label for one in task.variants if any(run.has_other_cells for run in one.runs)]
    if others:
        yield f"measured on the task's grid, because their archives have other cells: {', '.join(others)}"
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
    yield from filter(None, (task.remark_on_max_fitness, task.no_times, *task.about_references))


def _cells(variant: MeasuredVariant) -> str:
    one = variant.runs[0]
    return f"{one.kind}, {one.n_cells:,} cells"


def _entry(task: str, variant: MeasuredVariant, metric: Metric) -> Entry:
    values = [one.values for one in variant.runs]
    undefined = Counter(metric.why_undefined(v) for v in values if np.isnan(v[metric.name]))
    generator = stream(0, "bootstrap", task, variant_name(variant), metric.name)
    found = estimate(defined(metric.name, variant), generator)
    return Entry(task, variant.label, metric.name, len(values), found, dict(undefined))


def _pairs(task: MeasuredTask, wanted: Sequence[str], against: str, n_tasks: int) -> Iterable[Pair]:
    variants = {variant.label: variant for variant in task.variants}
    tested = {metric.name: metric for metric in _metrics(task, wanted) if metric.role == "tested"}
    for name in dict.fromkeys((*tested, primary(task).name)):  # the primary metric is always tested
        for one, other in pairs_of(variants, against):
            a, b = variants[one], variants[other]
            x, y = defined(name, a), defined(name, b)
            generator = stream(0, "bootstrap", task.task, variant_name(a), variant_name(b), name)
            interval = improvement_interval([x], [y], generator)
            is_primary = n_tasks == 1 and name == primary(task).name
            yield Pair(
                task.task, name, is_primary, one, other, len(x), len(y),
                improvement([x], [y]), *interval, mann_whitney(x, y),
            )  # fmt: skip


def _adjusted(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Adjust the tests of every metric, over all pairs and tasks."""
    found = list(pairs)
    families: dict[str, list[int]] = {}
    for i, pair in enumerate(found):
        families.setdefault(pair.metric, []).append(i)
    for members in families.values():
        for i, p in zip(members, holm([found[i].p for i in members]), strict=True):
            found[i] = replace(found[i], p_holm=p)
    return tuple(found)
