"""A comparison as tables of text, the same for the terminal, the report and all files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor, isnan, log10

from qdbench.analysis.aggregate import ONE, ZERO, Aggregate, AggregatePair
from qdbench.analysis.compare import OVERSHOOT, Comparison, Entry, Pair, TaskComparison
from qdbench.analysis.references import MARK
from qdbench.analysis.statistics import (
    ARRANGEMENTS,
    CONFIDENCE,
    FEWEST_TO_TEST,
    RESAMPLES,
    SIGNIFICANT,
    Estimate,
    seeds_needed,
    smallest_p,
)
from qdbench.metrics.metric import METRICS, PRIMARY, Metric
from qdbench.metrics.numbers import NOTHING, percent

UNDEFINED = "undefined"
PERCENT = f"{CONFIDENCE:.0%}".replace("%", " %")
ESTIMATES = ("n", "median", "IQM", f"{PERCENT} interval of the IQM")
TEXT_COLUMNS = ("metric", "algorithm", "task", "A", "B", "task and algorithm")
"""Columns of text; all others are numbers."""
HEADLINE = (
    "corrected_qd_score", "corrected_coverage", "corrected_max_fitness", "qd_score_loss", "return_rate",
)  # fmt: skip
"""The metrics of the first table of a page."""
DESCRIBING = ("coverage_loss", "true_coverage", "true_qd_score")
"""What is printed beside the tested metrics and those of the first table."""
HEADLINE_UNCORRECTED = ("qd_score", "coverage", "max_fitness")
_LOWER = [one.title for one in METRICS.values() if one.better == "lower" and one.role == "tested"]
METHOD = (
    "IQM: the interquartile mean. It leaves out the lowest and the highest quarter of the replications "
    f"(rounded down). Its {PERCENT} interval is a percentile bootstrap with {RESAMPLES:,} resamples. With "
    "few replications the interval is too narrow: for normal data it contains the true value in about 75, "
    "91, 94 and 95 % of cases with 3, 5, 10 and 30 replications.",
    "P(A > B): the probability that a run of A has a higher value than one of B, with its "
    f"{PERCENT} bootstrap interval. Ties count half. 0.5 means no difference. If all runs of one algorithm "
    "are above all of the other, the interval has no width. Lower is better for "
    f"{', '.join(_LOWER[:-1])} and {_LOWER[-1]}.",
    "p of one task: two-sided Mann-Whitney U test.",
)
"""How to read the tables of single tasks."""
METHOD_OVER_TASKS = (
    f"Normalised score: the primary metric, with 0 the mean of {ZERO} and 1 the mean of {ONE} on the same "
    "task. The aggregate is the mean over tasks of the mean over replications. Its "
    f"{PERCENT} interval resamples the replications of each task separately, with fixed anchors.",
    "Over tasks, P(A > B) is the mean over all tasks that both have. p is that of a permutation test of it: "
    f"the labels of the runs are permuted within each task. Up to {ARRANGEMENTS:,} arrangements are all "
    f"computed; of more, {RESAMPLES:,} random ones. The test does not use the anchors.",
)
"""How to read the aggregate."""


@dataclass(frozen=True)
class Table:
    """Rows of text with a title, notes and warnings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_exploratory: bool = False
    is_wide: bool = False
    """Whether its columns are algorithms: `by_algorithm` makes it narrow."""


def in_brief(comparison: Comparison) -> Comparison:
    """Return a comparison without the metrics that nobody asked for and that only describe."""
    if comparison.metrics:
        return comparison
    known = {e.metric for task in comparison.tasks for e in task.entries if e.estimate.n}
    wanted = {one.name for one in METRICS.values() if one.role == "tested"} | (
        {*HEADLINE, *DESCRIBING} & known
    )
    tasks = (
        replace(task, entries=tuple(entry for entry in task.entries if entry.metric in wanted))
        for task in comparison.tasks
    )
    return replace(comparison, tasks=tuple(tasks))


def tables(comparison: Comparison, *, exploratory: bool = True) -> list[Table]:
    """Return all tables, those of the tasks first; without exploratory tests if not wanted."""
    found = [_task_table(comparison, task) for task in comparison.tasks]
    found += over_tasks(comparison)
    families: dict[str, list[Pair]] = {}
    for pair in sorted(comparison.pairs, key=lambda pair: not pair.primary):
        families.setdefault(pair.metric, []).append(pair)
    found += [
        _pair_table(comparison, pairs) for pairs in families.values() if exploratory or pairs[0].primary
    ]
    return found


def over_tasks(comparison: Comparison) -> list[Table]:
    """Return the tables of the aggregate over tasks; none if there is only one task."""
    found = comparison.aggregate
    if found is None:
        return []
    pairs = [_aggregate_pair_table(comparison, found)] if found.pairs else []
    return [overview(comparison), _aggregate_table(comparison, found), *pairs]


def method(comparison: Comparison) -> tuple[str, ...]:
    """Return how to read the tables."""
    return METHOD if comparison.aggregate is None else (*METHOD, *METHOD_OVER_TASKS)


def variants(comparison: Comparison) -> list[str]:
    """Return the labels of all variants, each once."""
    return list(dict.fromkeys(variant for task in comparison.tasks for variant in task.evaluations))


def marked(variant: str, tasks: Iterable[TaskComparison]) -> str:
    """Return the label of a variant; with its excess evaluations, if its runs exceed the budget clearly."""
    found = [task.excess(variant) for task in tasks if variant in task.evaluations]
    most = max(found, default=0.0)
    same = {f"{100 * excess:.0f}" for excess in found} == {f"{100 * most:.0f}"}
    words = f"+{100 * most:.0f} % evaluations" if same else f"up to +{100 * most:.0f} % evaluations"
    return f"{variant} ({words})" if most > OVERSHOOT else variant


def shown_metrics(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the metrics of the overview, one name per task: those asked for, or the primary ones."""
    if not comparison.metrics:
        return [tuple(task.primary for task in comparison.tasks)]
    return [(name,) * len(comparison.tasks) for name in comparison.metrics]


def overview(comparison: Comparison) -> Table:
    """Return a table of all tasks: a row for each task and chosen metric, a column for each algorithm."""
    who = variants(comparison)
    by_name = {(e.task, e.variant, e.metric): e.estimate for task in comparison.tasks for e in task.entries}
    rows = []
    for names in shown_metrics(comparison):
        for task, name in zip(comparison.tasks, names, strict=True):
            found = (by_name.get((task.task, variant, name)) for variant in who)
            cells = (brief_estimate(METRICS[name], one) for one in found)
            rows.append((task.task, METRICS[name].title, *(" ".join(cell) for cell in cells)))
    columns = ("task", "metric", *(marked(variant, comparison.tasks) for variant in who))
    titles = {row[1] for row in rows}
    if len(titles) == 1:  # the title says which
        columns, rows = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows]
    what = f"{titles.pop()}, " if len(titles) == 1 else ""
    return Table(
        f"All {len(comparison.tasks)} tasks: {what}IQM and its {PERCENT} interval",
        columns,
        tuple(rows),
        (_all_intervals(comparison), *_uncorrected(comparison)),
        is_wide=True,
    )


def by_algorithm(table: Table) -> Table:
    """Return an overview in a narrow form: a row for each task and algorithm, a column for each metric."""
    first = 1 + ("metric" in table.columns[:2])
    metrics = list(dict.fromkeys(row[1] for row in table.rows)) if first == 2 else ["IQM and interval"]
    cells = {(row[0], row[1] if first == 2 else metrics[0]): row[first:] for row in table.rows}
    rows: list[tuple[str, ...]] = []
    for task in dict.fromkeys(row[0] for row in table.rows):
        rows.append((task, *[""] * len(metrics)))
        for i, algorithm in enumerate(table.columns[first:]):
            found = (cells[task, metric][i] if (task, metric) in cells else NOTHING for metric in metrics)
            rows.append((f"  {algorithm}", *found))
    return replace(table, columns=("task and algorithm", *metrics), rows=tuple(rows), is_wide=False)


def headline(comparison: Comparison) -> Table:
    """Return the table of headline metrics: all metrics of a task together."""
    corrected = any(task.primary == PRIMARY.name for task in comparison.tasks)
    found = overview(replace(comparison, metrics=HEADLINE if corrected else HEADLINE_UNCORRECTED))
    order = {task.task: i for i, task in enumerate(comparison.tasks)}
    rows = tuple(sorted(found.rows, key=lambda row: order[row[0]]))
    return replace(found, title=f"Headline metrics: IQM and its {PERCENT} interval", rows=rows)


def _all_intervals(comparison: Comparison) -> str:
    each = (f"{task.task} {_interval_text(task)}" for task in comparison.tasks)
    return f"QD score on the {comparison.interval} interval: {', '.join(each)}"


def _interval_text(task: TaskComparison) -> str:
    low, high = task.interval
    return f"[{low:,.10g}, {high:,.10g}]"


def brief_estimate(metric: Metric, found: Estimate | None) -> tuple[str, ...]:
    """Return the IQM and its interval, if there are any, with three digits."""
    if found is None:
        return (NOTHING,)
    if not found.n:
        return (UNDEFINED,)
    interval = () if isnan(found.low) else (f"[{_brief(metric, found.low)}, {_brief(metric, found.high)}]",)
    return (_brief(metric, found.iqm), *interval)


def _brief(metric: Metric, value: float) -> str:
    return percent(value, 1) if metric.format is percent else three_digits(value)


def score_text(value: float) -> str:
    """Return a normalised score with three decimals. Zero, also after rounding, has no sign."""
    return f"{round(value, 3) + 0.0:.3f}"


def three_digits(value: float) -> str:
    """Return a number with three significant digits, and with all digits before the point."""
    if value == 0 or not 1e-3 <= abs(value) < 1e15:
        return f"{value or 0.0:.3g}"
    return f"{value:,.{max(0, 2 - floor(log10(abs(value))))}f}"


def interval_words(comparison: Comparison, task: TaskComparison) -> str:
    """Return a text that names the interval of the QD score."""
    return f"QD score on the {comparison.interval} interval {_interval_text(task)}"


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
            rows.append((title, marked(entry.variant, [task]), *_entry_cells(entry, marks)))
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
    return text(found.median), text(found.iqm), _interval_cell(found.low, found.high, text)


def _pair_table(comparison: Comparison, pairs: Sequence[Pair]) -> Table:
    primary, tasks = pairs[0].primary, {task.task: task for task in comparison.tasks}
    rows = []
    for pair in pairs:
        names = (marked(variant, [tasks[pair.task]]) for variant in (pair.a, pair.b))
        sizes = f"{pair.n_a}, {pair.n_b}"
        rows.append((pair.task, *names, sizes, *_chance_cells(pair), *_p_cells(pair.p, pair.p_holm)))
    columns = ("task", "A", "B", "n", "P(A > B)", f"{PERCENT} interval", "p", "p after Holm")
    notes = _about_tests(pairs)
    title = f"Exploratory: {METRICS[pairs[0].metric].title}"
    if primary:
        title = _primary_title(comparison)
    return Table(
        title, columns, tuple(rows), (*notes, _all_intervals(comparison)), is_exploratory=not primary
    )  # fmt: skip


def _primary_title(comparison: Comparison) -> str:
    endpoint = f"Primary endpoint{' over tasks' if comparison.aggregate else ''}"
    corrected = [task.primary == PRIMARY.name for task in comparison.tasks]
    if all(corrected):
        return f"{endpoint}: the final corrected QD score"
    if any(corrected):
        return f"{endpoint}: the final corrected QD score, uncorrected where no final archive was corrected"
    return f"{endpoint}: the final QD score, uncorrected, because no final archive was corrected"


def _chance_cells(pair: Pair | AggregatePair) -> tuple[str, str]:
    chance = UNDEFINED if isnan(pair.improvement) else f"{pair.improvement:.2f}"
    return chance, _interval_cell(pair.low, pair.high, "{:.2f}".format)


def _interval_cell(low: float, high: float, text: Callable[[float], str]) -> str:
    return NOTHING if isnan(low) else f"[{text(low)}, {text(high)}]"


def _about_tests(pairs: Sequence[Pair | AggregatePair]) -> Iterable[str]:
    """Say how many tests there are, and whether any of them could be significant."""
    some = [pair for pair in pairs if not isnan(pair.p)]
    tested, n = [sizes_of(pair) for pair in some], len(some)
    yield f"p after Holm: adjusted for the {n} test{'s' * (n != 1)} of this table"
    needed, whose = what_is_needed(some or pairs)
    cure = f"at least {needed} replications {whose} are needed"
    if not n:
        yield f"nothing is tested: no pair has {FEWEST_TO_TEST} replications of both; {cure}"
        return
    least = min(1.0, n * min(map(smallest_p, tested)))
    if least > SIGNIFICANT:
        yield (
            f"no test of this table can be significant at {SIGNIFICANT}: with so few replications, the "
            f"smallest possible p after Holm is {p_value(least)}; {cure}"
        )


def sizes_of(pair: Pair | AggregatePair) -> list[tuple[int, int]]:
    """Return the numbers of replications of a pair, on each of its tasks."""
    return [(pair.n_a, pair.n_b)] if isinstance(pair, Pair) else list(pair.sizes)


def what_is_needed(pairs: Sequence[Pair | AggregatePair]) -> tuple[int, str]:
    """Return how many replications could make a test significant, and of which algorithms."""
    tests = []
    for pair in pairs:
        a_fixed, b_fixed = (label.endswith(MARK) for label in (pair.a, pair.b))
        one_fixed = a_fixed != b_fixed  # of two, none is: a label of the user's may end like that, too
        tests.append([(a * (a_fixed and one_fixed), b * (b_fixed and one_fixed)) for a, b in sizes_of(pair)])
    fixed = any(size for test in tests for both in test for size in both)
    return seeds_needed(tests), "of your own" if fixed else "of each algorithm"


def _p_cells(p: float, p_holm: float) -> tuple[str, str]:
    if isnan(p):
        return f"too few replications (< {FEWEST_TO_TEST})", NOTHING
    return p_value(p), p_value(p_holm)


def _aggregate_table(comparison: Comparison, found: Aggregate) -> Table:
    rows = tuple(
        (
            marked(one.variant, comparison.tasks), str(len(one.tasks)), str(one.n_runs), score_text(one.mean),
            _interval_cell(one.low, one.high, score_text),
        )
        for one in found.scores
    )  # fmt: skip
    n, of = len(found.tasks), len(comparison.tasks)
    which = f"mean of {f'all {of}' if n == of else f'{n} of {of}'} tasks"
    notes = [f"0 and 1: the means of {ZERO} and {ONE}, taken from {found.anchors.source}"] if rows else []
    notes += not_aggregated(found)
    return Table(
        f"Normalised score, {which if n else 'none: no task can be aggregated'}",
        ("algorithm", "tasks", "runs", "mean", f"{PERCENT} interval of the mean"),
        rows,
        (*notes, *found.notes),
    )


def _aggregate_pair_table(comparison: Comparison, found: Aggregate) -> Table:
    apart = [_difference_cells(pair) for pair in found.pairs] if found.tasks else [()] * len(found.pairs)
    rows = tuple(
        (
            *(marked(variant, comparison.tasks) for variant in (pair.a, pair.b)), str(pair.n_tasks), *cells,
            *_chance_cells(pair), *_p_cells(pair.p, pair.p_holm),
        )
        for pair, cells in zip(found.pairs, apart, strict=True)
    )  # fmt: skip
    difference = ("A \N{MINUS SIGN} B", f"its {PERCENT} interval") if found.tasks else ()
    columns = (
        "A", "B", "tasks", *difference, "P(A > B)", f"its {PERCENT} interval", "p", "p after Holm",
    )  # fmt: skip
    notes = _about_tests(found.pairs)
    return Table(_primary_title(comparison), columns, rows, tuple(notes))


def not_aggregated(found: Aggregate) -> list[str]:
    """Name the tasks without a normalised score, together if the reason is the same."""
    reasons: dict[str, list[str]] = {}
    for task, why in found.not_aggregated.items():
        reasons.setdefault(why, []).append(task)
    return [f"not aggregated: {', '.join(tasks)}, because {why}" for why, tasks in reasons.items()]


def _difference_cells(pair: AggregatePair) -> tuple[str, ...]:
    difference = NOTHING if isnan(pair.difference) else score_text(pair.difference)
    return difference, _interval_cell(pair.difference_low, pair.difference_high, score_text)


def _uncorrected(comparison: Comparison) -> list[str]:
    """Name the tasks with an uncorrected primary metric, if others have a corrected one."""
    tasks = [task.task for task in comparison.tasks if task.primary != PRIMARY.name]
    some = 0 < len(tasks) < len(comparison.tasks)
    return [f"uncorrected, because no final archive was corrected: {', '.join(tasks)}"] if some else []


def p_value(p: float) -> str:
    """Return a p-value with four digits."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"
