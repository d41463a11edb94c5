"""A comparison as tables of text, the same for the terminal, the report and all files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from qdbench.analysis.compare import Comparison, Entry, Pair, TaskComparison
from qdbench.analysis.statistics import CONFIDENCE, FEWEST_TO_TEST, RESAMPLES, Estimate
from qdbench.metrics.metric import METRICS, PRIMARY
from qdbench.metrics.numbers import NOTHING, significant

UNDEFINED = "undefined"
PERCENT = f"{CONFIDENCE:.0%}".replace("%", " %")
ESTIMATES = ("n", "median", "IQM", f"{PERCENT} interval of the IQM")
TEXT_COLUMNS = ("metric", "algorithm", "score", "task", "A", "B")
"""Columns of text; all others are numbers."""
_LOWER = [one.title for one in METRICS.values() if one.better == "lower" and one.role == "tested"]
METHOD = (
    "IQM: the interquartile mean. It leaves out the lowest and the highest quarter of the replications "
    f"(rounded down). Its {PERCENT} interval is a percentile bootstrap: {RESAMPLES:,} resamples of the "
    "replications of each task. With few replications the interval is too narrow: for normal data it "
    "contains the true value in about 75, 90, 94 and 94 % of cases with 3, 5, 10 and 30 replications.",
    "p: two-sided Mann-Whitney U test. P(A > B): the probability that a run of A has a higher value than "
    f"one of B, with its {PERCENT} bootstrap interval. Ties count half. 0.5 means no difference. If all runs "
    "of one algorithm are above all of the other, the interval has no width. Lower is better for "
    f"{', '.join(_LOWER[:-1])} and {_LOWER[-1]}.",
)


@dataclass(frozen=True)
class Table:
    """Rows of text with a title, notes and warnings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_exploratory: bool = False


def tables(comparison: Comparison, *, exploratory: bool = True) -> list[Table]:
    """Return all tables, those of the tasks first; without exploratory tests if not wanted."""
    found = [_task_table(comparison, task) for task in comparison.tasks]
    families: dict[str, list[Pair]] = {"": []}  # the primary endpoint first
    for pair in comparison.pairs:
        families.setdefault("" if pair.primary else pair.metric, []).append(pair)
    for metric, pairs in families.items():
        if pairs and (exploratory or not metric):
            found.append(_pair_table(comparison, pairs, primary=not metric))
    if comparison.aggregates or comparison.aggregate_notes:
        found.append(_aggregate_table(comparison))
    return found


def interval_words(comparison: Comparison, task: TaskComparison) -> str:
    """Return a text that names the interval of the QD score."""
    low, high = task.interval
    return f"QD score on the {comparison.interval} interval [{low:,.10g}, {high:,.10g}]"


def _task_table(comparison: Comparison, task: TaskComparison) -> Table:
    by_metric: dict[str, list[Entry]] = {}
    for entry in task.entries:
        by_metric.setdefault(entry.metric, []).append(entry)
    rows: list[tuple[str, ...]] = []
    marks: dict[str, str] = {}
    for metric, entries in by_metric.items():
        reasons = {reason for entry in entries for reason in entry.undefined}
        if len(entries) > 1 and len(reasons) == 1 and not any(entry.estimate.n for entry in entries):
            n_runs = sum(entry.n_runs for entry in entries)
            entries = [Entry(task.task, "all", metric, n_runs, entries[0].estimate, entries[0].undefined)]
        for i, entry in enumerate(entries):
            for reason in entry.undefined:
                marks.setdefault(reason, chr(ord("a") + len(marks)))
            title = METRICS[metric].title if i == 0 else ""
            rows.append((title, entry.variant, *_entry_cells(entry, marks)))
    footnotes = tuple(f"[{mark}] {reason}" for reason, mark in marks.items())
    return Table(
        f"{task.task}: {interval_words(comparison, task)}",
        ("metric", "algorithm", *ESTIMATES),
        tuple(rows),
        (*footnotes, *task.notes),
        task.warnings,
    )


def _entry_cells(entry: Entry, marks: dict[str, str]) -> tuple[str, ...]:
    n = entry.estimate.n
    why = "".join(f" [{marks[reason]}]" for reason in entry.undefined)
    count = str(n) if n == entry.n_runs else f"{n} of {entry.n_runs}{why}"
    return (count, *_estimate_cells(entry.estimate, METRICS[entry.metric].format))


def _estimate_cells(found: Estimate, text: Callable[[float], str]) -> tuple[str, ...]:
    if not found.n:
        return (UNDEFINED, UNDEFINED, NOTHING)
    interval = NOTHING if isnan(found.low) else f"[{text(found.low)}, {text(found.high)}]"
    return text(found.median), text(found.iqm), interval


def _pair_table(comparison: Comparison, pairs: Sequence[Pair], *, primary: bool) -> Table:
    rows: list[tuple[str, ...]] = []
    for pair in pairs:
        shown = NOTHING if isnan(pair.low) else f"[{pair.low:.2f}, {pair.high:.2f}]"
        chance = UNDEFINED if isnan(pair.improvement) else f"{pair.improvement:.2f}"
        who = (pair.task, METRICS[pair.metric].title, pair.a, pair.b, f"{pair.n_a}, {pair.n_b}")
        rows.append((*who, chance, shown, *_p_cells(pair)))
    columns: tuple[str, ...]
    columns = ("task", "metric", "A", "B", "n", "P(A > B)", f"{PERCENT} interval", "p", "p after Holm")
    if len({pair.metric for pair in pairs}) == 1:  # the title says which
        columns, rows = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows]
    n = sum(not isnan(pair.p) for pair in pairs)
    notes = [f"p after Holm: adjusted for the {n} tests of this table"]
    uncorrected = [task.task for task in comparison.tasks if task.primary != PRIMARY.name]
    if not primary:
        title = f"Exploratory: {METRICS[pairs[0].metric].title}"
    elif len(uncorrected) == len(comparison.tasks):
        title = "Primary endpoint: the final QD score, uncorrected, because no final archive was corrected"
    else:
        title = "Primary endpoint: the final corrected QD score"
        notes += [f"uncorrected, because no final archive was corrected: {task}" for task in uncorrected]
    return Table(
        title, columns, tuple(rows), (*notes, *_intervals(comparison)), is_exploratory=not primary
    )  # fmt: skip


def _p_cells(pair: Pair) -> tuple[str, str]:
    if isnan(pair.p):
        return f"too few replications (< {FEWEST_TO_TEST})", NOTHING
    return p_value(pair.p), p_value(pair.p_holm)


def _intervals(comparison: Comparison) -> Iterable[str]:
    return (f"{task.task}: {interval_words(comparison, task)}" for task in comparison.tasks)


def _aggregate_table(comparison: Comparison) -> Table:
    rows = tuple(
        (
            f"{METRICS[one.metric].title} / cells",
            one.variant,
            str(one.estimate.n),
            *_estimate_cells(one.estimate, significant),
        )
        for one in comparison.aggregates
    )
    resampled = "the bootstrap resamples the replications of each task separately"
    return Table(
        f"All {len(comparison.tasks)} tasks: QD score divided by the number of cells",
        ("score", "algorithm", *ESTIMATES),
        rows,
        (resampled, *comparison.aggregate_notes, *_intervals(comparison)),
    )


def p_value(p: float) -> str:
    """Return a p-value with four digits."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"
