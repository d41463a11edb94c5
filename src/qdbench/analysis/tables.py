"""A comparison as tables: for the terminal, Markdown, LaTeX, CSV and JSON, from the same rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import floor, isnan, log10, nan
from typing import Any

from qdbench.analysis.compare import METRICS, PRIMARY, Comparison, Entry, Pair, TaskComparison
from qdbench.analysis.statistics import CONFIDENCE, FEWEST, RESAMPLES, Estimate

UNDEFINED = "undefined"
MEASURED_BY = ("interval_low", "interval_high", "on")
"""The interval of QD scores (losses are always on the fixed one), and whose container: `own` or `grid`."""
PERCENT = f"{CONFIDENCE:.0%}".replace("%", " %")
ESTIMATES = ("n", "median", "IQM", f"{PERCENT} interval of the IQM")
METHOD = (
    "IQM: the interquartile mean, without a quarter of the replications (rounded down) at either end. Its "
    f"{PERCENT} interval: percentile bootstrap, {RESAMPLES:,} resamples of the replications of each task. "
    "From few replications it is too narrow: of normal data it holds the truth in about 75, 90, 94 and 94 % "
    "of cases with 3, 5, 10 and 30.",
    "p: two-sided Mann-Whitney U test. P(A > B): the probability that a run of A has the higher value than "
    f"one of B, ties counted half, with its {PERCENT} bootstrap interval; 0.5 is no difference, and where "
    "all runs of one are above all of the other the interval has no width. For losses and seconds lower is "
    "better.",
)


@dataclass(frozen=True)
class Table:
    """Rows of text with a title above, and what a reader must know below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def tables(comparison: Comparison, *, exploratory: bool = True) -> list[Table]:
    """Return everything as tables; without the exploratory tests if not wanted."""
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
    """Return which interval the QD score is on."""
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
            rows.append((METRICS[metric] if i == 0 else "", entry.variant, *_entry_cells(entry, marks)))
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
    return (count, *_estimate_cells(entry.estimate, entry.metric))


def _estimate_cells(found: Estimate, metric: str) -> tuple[str, ...]:
    if not found.n:
        return (UNDEFINED, UNDEFINED, "-")
    low, high = (number(value, metric) for value in (found.low, found.high))
    return (
        number(found.median, metric),
        number(found.iqm, metric),
        "-" if isnan(found.low) else f"[{low}, {high}]",
    )


def _pair_table(comparison: Comparison, pairs: Sequence[Pair], *, primary: bool) -> Table:
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = []
    for pair in pairs:
        shown = "-" if isnan(pair.low) else f"[{pair.low:.2f}, {pair.high:.2f}]"
        chance = UNDEFINED if isnan(pair.improvement) else f"{pair.improvement:.2f}"
        who = (pair.task, METRICS[pair.metric], pair.a, pair.b, f"{pair.n_a}, {pair.n_b}")
        rows.append((*who, chance, shown, *_p_cells(pair)))
    columns = ("task", "metric", "A", "B", "n", "P(A > B)", f"{PERCENT} interval", "p", "p after Holm")
    if len({pair.metric for pair in pairs}) == 1:  # the title says which
        columns, rows = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows]
    n = sum(not isnan(pair.p) for pair in pairs)
    notes = [f"p after Holm: adjusted for the {n} tests of this table"]
    uncorrected = [task.task for task in comparison.tasks if task.primary != PRIMARY]
    if not primary:
        title = f"Exploratory: {METRICS[pairs[0].metric]}"
    elif len(uncorrected) == len(comparison.tasks):
        title = "Primary endpoint: the final QD score, uncorrected, because no final archive was corrected"
    else:
        title = "Primary endpoint: the final corrected QD score"
        notes += [f"uncorrected, because no final archive was corrected: {task}" for task in uncorrected]
    return Table(title, columns, tuple(rows), (*notes, *_intervals(comparison)))


def _p_cells(pair: Pair) -> tuple[str, str]:
    if isnan(pair.p):
        return f"too few replications (< {FEWEST})", "-"
    return p_value(pair.p), p_value(pair.p_holm)


def _intervals(comparison: Comparison) -> Iterable[str]:
    return (f"{task.task}: {interval_words(comparison, task)}" for task in comparison.tasks)


def _aggregate_table(comparison: Comparison) -> Table:
    rows = tuple(
        (
            f"{METRICS[one.metric]} / cells",
            one.variant,
            str(one.estimate.n),
            *_estimate_cells(one.estimate, "mean_fitness"),
        )
        for one in comparison.aggregates
    )
    resampled = "the bootstrap resamples the replications of each task by themselves"
    return Table(
        f"All {len(comparison.tasks)} tasks: QD score divided by the number of cells",
        ("score", "algorithm", *ESTIMATES),
        rows,
        (resampled, *comparison.aggregate_notes, *_intervals(comparison)),
    )


# Numbers


def number(value: float, metric: str) -> str:
    """Return a number with five significant digits, and all digits before the point."""
    if isnan(value):
        return "-"
    if metric.endswith(("_loss", "_share")):
        return f"{value:.2%}"
    if metric.endswith("coverage"):
        return f"{value:,.2f}".removesuffix(".00")
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 4 - floor(log10(abs(value))))}f}"


def p_value(p: float) -> str:
    """Return a p-value with four digits."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


# Files


def markdown(comparison: Comparison) -> str:
    """Return a Markdown page."""
    lines = ["# Comparison", ""]
    for table in tables(comparison):
        lines += [f"## {_md(table.title)}", ""]
        lines += [f"**Warning: {_md(warning)}**\n" for warning in table.warnings]
        if table.rows:
            lines += [_md_row(table.columns), "|" + " --- |" * len(table.columns)]
            lines += [*map(_md_row, table.rows), ""]
        lines += [*(f"- {_md(note)}" for note in table.notes), ""]
    lines += ["## Method", "", *(f"- {_md(sentence)}" for sentence in METHOD), ""]
    if comparison.skipped:
        lines += ["## Skipped runs", ""]
        lines += [f"- {_md(str(one.path))}: {_md(one.reason)}" for one in comparison.skipped] + [""]
    return "\n".join(lines)


def _md(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", " ".join(text.split()))


def _md_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_md, cells))} |"


LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def latex(comparison: Comparison) -> str:
    """Return LaTeX to \\input: plain tabular, no packages needed."""
    lines = ["% written by `qdbench compare`; \\input it, no packages are needed"]
    for table in tables(comparison):
        lines += ["", rf"\paragraph{{{_tex(table.title)}}}"]
        lines += [rf"\textbf{{Warning: {_tex(warning)}}}" for warning in table.warnings]
        if table.rows:
            n_text = sum(name in ("metric", "algorithm", "score", "task", "A", "B") for name in table.columns)
            layout = "l" * n_text + "r" * (len(table.columns) - n_text)
            lines += ["", rf"\noindent{{\footnotesize\begin{{tabular}}{{{layout}}}", r"\hline"]
            lines += [_tex_row(table.columns), r"\hline", *map(_tex_row, table.rows), r"\hline"]
            lines += [r"\end{tabular}}", ""]
        lines += [rf"\noindent{{\footnotesize {_tex(note)}\par}}" for note in table.notes]
    lines += ["", r"\paragraph{Method}", *map(_tex, METHOD)]
    if comparison.skipped:
        lines += ["", r"\paragraph{Skipped runs}"]
        lines += [rf"{_tex(str(one.path))}: {_tex(one.reason)}\par" for one in comparison.skipped]
    return "\n".join(lines) + "\n"


def _tex(text: str) -> str:
    escaped = "".join(LATEX.get(character, character) for character in " ".join(text.split()))
    return escaped.replace("--", "-{}-")  # not a dash


def _tex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


def estimates_csv(comparison: Comparison) -> str:
    """Return all estimates, one per line, with all their digits; nothing where there is no number."""
    header = ("task", "variant", "metric", "n", "median", "iqm", "ci_low", "ci_high", *MEASURED_BY)
    rows = [
        (one.task, one.variant, one.metric, *_estimate_values(one.estimate), *task.interval, comparison.on)
        for task in comparison.tasks
        for one in task.entries
    ]
    every = (nan, nan, comparison.on)  # each task has an interval of its own
    rows += [
        ("all", one.variant, f"{one.metric}_per_cell", *_estimate_values(one.estimate), *every)
        for one in comparison.aggregates
    ]
    return _csv(header, rows)


def _estimate_values(found: Estimate) -> tuple[int | float, ...]:
    return (found.n, found.median, found.iqm, found.low, found.high)


def pairs_csv(comparison: Comparison) -> str:
    """Return all tests, one per line, with all their digits."""
    header = (
        "task", "endpoint", "metric", "a", "b", "n_a", "n_b",
        "improvement", "ci_low", "ci_high", "p", "p_holm", *MEASURED_BY,
    )  # fmt: skip
    intervals = {task.task: task.interval for task in comparison.tasks}
    rows = []
    for pair in comparison.pairs:
        endpoint = "primary" if pair.primary else "exploratory"
        who = (pair.task, endpoint, pair.metric, pair.a, pair.b, pair.n_a, pair.n_b)
        found = (pair.improvement, pair.low, pair.high, pair.p, pair.p_holm)
        rows.append((*who, *found, *intervals[pair.task], comparison.on))
    return _csv(header, rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[str | int | float]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(["" if value != value else value for value in row])
    return text.getvalue()


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything as JSON holds it."""
    found = asdict(comparison)
    found["skipped"] = [{"run": str(one.path), "reason": one.reason} for one in comparison.skipped]
    found["method"] = list(METHOD)
    return found


FILES = {
    "compare.md": markdown,
    "compare.tex": latex,
    "compare.csv": estimates_csv,
    "pairs.csv": pairs_csv,
}
"""What is written, and how."""
