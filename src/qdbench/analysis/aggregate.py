"""The aggregate over tasks: normalised scores, the probability of improvement, and the primary test.

On every task, the primary metric is normalised by two anchors: 0 is the mean of random search, 1 is the mean
of MAP-Elites. The aggregate of an algorithm is the mean over tasks of its mean on each task, so every task
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from qdbench.analysis.comparable import algorithm_facts, differing
from qdbench.analysis.measured import Measured, MeasuredTask, MeasuredVariant
from qdbench.analysis.statistics import (
    Values,
    difference_interval,
    holm,
    improvement,
    improvement_interval,
    mean_interval,
    mean_over_tasks,
    stratified_test,
)
from qdbench.metrics.metric import FALLBACK, PRIMARY, Metric
from qdbench.seeds import stream

ZERO, ONE = "random_search", "map_elites"
"""The algorithms whose means are 0 and 1."""


@dataclass(frozen=True)
class Anchor:
    """The values of a metric on a task that become 0 and 1."""

    zero: float
    one: float
    low: float
    """Lower end of the 95 % interval of `one - zero`; `high` is its upper end. NaN if there is none."""
    high: float

    @property
    def problem(self) -> str:
        """Why the metric cannot be normalised; empty if it can."""
        if not self.one > self.zero:
            return f"{ONE} ({self.one:.5g}) is not above {ZERO} ({self.zero:.5g})"
        if np.isnan(self.low):
            return f"one run of {ONE} or {ZERO} cannot show that they differ"
        if self.low <= 0:
            interval = f"[{self.low:.4g}, {self.high:.4g}]"
            return f"{ONE} may equal {ZERO}: the interval of their difference is {interval}"
        return ""

    def normalised(self, values: Values) -> Values:
        """Return values on the scale of the anchors."""
        return (values - self.zero) / (self.one - self.zero)


@dataclass(frozen=True)
class Anchors:
    """The anchors of several tasks."""

    source: str
    """Where they come from, in words."""
    tasks: Mapping[str, Mapping[str, Anchor]]
    """By task and metric."""


@dataclass(frozen=True)
class Score:
    """The normalised primary metric of one variant, averaged over tasks."""

    variant: str
    n_runs: int
    mean: float
    """Mean over tasks of the mean over replications."""
    low: float
    """Lower end of the 95 % stratified bootstrap interval of `mean`; `high` is its upper end."""
    high: float
    tasks: dict[str, float]
    """The mean on every task."""


@dataclass(frozen=True)
class AggregatePair:
    """Two variants, compared over all tasks that both have: a test of the primary endpoint."""

    a: str
    b: str
    n_tasks: int
    sizes: tuple[tuple[int, int], ...]
    """The numbers of replications of both on every task."""
    difference: float
    """Difference of the normalised scores, with its 95 % interval; NaN if there are none."""
    difference_low: float
    difference_high: float
    improvement: float
    """Probability that a run of `a` is better on a random task; ties count half. Interval: `low`, `high`."""
    low: float
    high: float
    p: float
    """p-value of the stratified permutation test of `improvement`."""
    p_holm: float = np.nan
    """p after Holm's correction over all pairs."""


@dataclass(frozen=True)
class Aggregate:
    """The comparison over several tasks."""

    metrics: dict[str, str]
    """The primary metric of every task."""
    anchors: Anchors
    not_aggregated: dict[str, str]
    """Tasks that are not in the normalised scores, and why."""
    scores: tuple[Score, ...]
    pairs: tuple[AggregatePair, ...]
    notes: tuple[str, ...]

    @property
    def tasks(self) -> list[str]:
        """The tasks of the normalised scores."""
        return [task for task in self.metrics if task not in self.not_aggregated]


@dataclass(eq=False)
class _Everything:
    """The values of the primary metric, by variant and task, and who is who."""

    values: dict[str, dict[str, Values]] = field(default_factory=dict)
    variants: dict[str, list[MeasuredVariant]] = field(default_factory=dict)


def primary(task: MeasuredTask) -> Metric:
    """Return the metric of the primary endpoint: the corrected QD score, if any run was corrected."""
    return PRIMARY if task.is_corrected else FALLBACK


def variant_name(variant: MeasuredVariant) -> str:
    """Return the variant's name in the files, whatever its label."""
    return variant.runs[0].run.record.variant


def defined(name: str, variant: MeasuredVariant) -> Values:
    """Return a metric's values of all replications for which it is defined."""
    values = np.array([one.values[name] for one in variant.runs], np.float64)
    return values[~np.isnan(values)]


def pairs_of(variants: Mapping[str, MeasuredVariant], against: str) -> Iterable[tuple[str, str]]:
    """Return all pairs, or each of the others with `against`; but no pair of two reference results."""
    pairs: Iterable[tuple[str, str]] = combinations(variants, 2)
    if against:
        pairs = ((label, against) for label in variants if label != against and against in variants)
    return ((a, b) for a, b in pairs if not (variants[a].is_reference and variants[b].is_reference))


def aggregate(measured: Measured, anchors: Anchors | None, against: str = "") -> Aggregate | None:
    """Compare variants over all tasks; None if there is only one task.

    Without given `anchors`, they are taken from the measured runs.
    """
    if len(measured.tasks) < 2:
        return None
    used = anchors or anchors_of(measured)
    found = _Everything()
    for task, variant in measured.variants:
        values = defined(primary(task).name, variant)
        if len(values):
            found.values.setdefault(variant.label, {})[task.task] = values
            found.variants.setdefault(variant.label, []).append(variant)
    left = {task.task: _why_not(task, used, given=anchors is not None) for task in measured.tasks}
    in_order = sorted(measured.tasks, key=lambda task: task.task)  # resampling does not depend on the order
    chosen = {
        task.task: used.tasks[task.task][primary(task).name] for task in in_order if not left[task.task]
    }
    scores = [
        _score(label, found, chosen)
        for label, on in found.values.items()
        if chosen and chosen.keys() <= on.keys()
    ]
    return Aggregate(
        {task.task: primary(task).name for task in measured.tasks},
        used,
        {task: why for task, why in left.items() if why},
        tuple(scores),
        _pairs(found, chosen, against),
        tuple(_notes(found, list(chosen), {variant.label for _, variant in measured.variants})),
    )


def anchors_of(measured: Measured) -> Anchors:
    """Return the anchors that the measured runs give, on the tasks on which both algorithms ran.

    Both are own runs, or both are reference results.
    """
    tasks: dict[str, dict[str, Anchor]] = {}
    for task in measured.tasks:
        sides = (
            {variant_name(one): one for one in task.variants if one.is_reference == reference}
            for reference in (False, True)
        )
        by_name = next((side for side in sides if {ZERO, ONE} <= side.keys()), None)
        if by_name is None:
            continue
        name = primary(task).name
        found = anchor(task.task, name, by_name[ZERO], by_name[ONE])
        tasks |= {} if found is None else {task.task: {name: found}}
    return Anchors("these runs", tasks)


def anchor(task: str, name: str, zero: MeasuredVariant, one: MeasuredVariant) -> Anchor | None:
    """Return the anchor of a metric on a task; None if no replication of a variant has a value."""
    a, b = defined(name, zero), defined(name, one)
    if not len(a) or not len(b):
        return None
    interval = difference_interval([b], [a], stream(0, "bootstrap", "anchors", task, name))
    return Anchor(float(a.mean()), float(b.mean()), *interval)


def _why_not(task: MeasuredTask, anchors: Anchors, *, given: bool) -> str:
    name = primary(task).name
    if name in anchors.tasks.get(task.task, {}):
        return anchors.tasks[task.task][name].problem
    return (
        f"there are no anchors of it in {anchors.source}"
        if given
        else f"it needs runs of both {ZERO} and {ONE}"
    )


def _score(label: str, found: _Everything, chosen: Mapping[str, Anchor]) -> Score:
    strata = {task: anchor.normalised(found.values[label][task]) for task, anchor in chosen.items()}
    generator = stream(0, "bootstrap", "aggregate", variant_name(found.variants[label][0]))
    low, high = mean_interval(list(strata.values()), generator)
    means = {task: float(values.mean()) for task, values in strata.items()}
    n_runs = sum(map(len, strata.values()))
    return Score(label, n_runs, mean_over_tasks(list(strata.values())), low, high, means)


def _pairs(found: _Everything, chosen: Mapping[str, Anchor], against: str) -> tuple[AggregatePair, ...]:
    pairs = []
    firsts = {label: on_tasks[0] for label, on_tasks in found.variants.items()}
    for one, other in pairs_of(firsts, against):
        tasks = sorted(found.values[one].keys() & found.values[other].keys())
        if not tasks:
            continue
        a, b = ([found.values[label][task] for task in tasks] for label in (one, other))
        names = (variant_name(found.variants[label][0]) for label in (one, other))
        generator = stream(0, "bootstrap", "aggregate", *names)
        difference = np.nan, np.nan, np.nan
        if chosen and chosen.keys() <= set(tasks):
            x, y = (
                [anchor.normalised(found.values[label][task]) for task, anchor in chosen.items()]
                for label in (one, other)
            )
            apart = mean_over_tasks(x) - mean_over_tasks(y)
            difference = apart, *difference_interval(x, y, generator)
        sizes = tuple((len(x), len(y)) for x, y in zip(a, b, strict=True))
        interval = improvement_interval(a, b, generator)
        p = stratified_test(a, b, generator)
        pairs.append(
            AggregatePair(one, other, len(tasks), sizes, *difference, improvement(a, b), *interval, p)
        )
    adjusted = holm([pair.p for pair in pairs])
    return tuple(replace(pair, p_holm=p) for pair, p in zip(pairs, adjusted, strict=True))


def _notes(found: _Everything, chosen: Sequence[str], labels: Iterable[str]) -> Iterable[str]:
    for label in sorted(labels):
        missing = [task for task in chosen if task not in found.values.get(label, {})]
        if missing:
            yield f"{label} has no normalised score: its primary metric is missing on {', '.join(missing)}"
        runs = (one.run for variant in found.variants.get(label, ()) for one in variant.runs)
        different = "; ".join(differing((run, algorithm_facts(run)) for run in runs))
        if different:
            yield f"{label} does not have the same options on every task: {different}"
