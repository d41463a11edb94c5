"""A comparison as Markdown, CSV and JSON; LaTeX is in `paper_table`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any

from qdbench.analysis.compare import Comparison
from qdbench.analysis.paper_table import latex
from qdbench.analysis.tables import Table, method, tables
from qdbench.store.files import write_text

MEASURED_BY = ("interval_low", "interval_high", "on")
"""The interval of QD scores (losses are always on the fixed one), and what was measured: `own` or `grid`."""
NORMALISED = "normalised_score"
"""The name of the aggregate in the CSV files."""
Row = Sequence[str | int | float]


def markdown(comparison: Comparison) -> str:
    """Return a Markdown page."""
    lines = ["# Comparison", ""]
    for table in tables(comparison):
        lines += table_lines(table)
    lines += ["## Method", "", *(f"- {_md(sentence)}" for sentence in method(comparison)), ""]
    if comparison.left_out:
        lines += ["## Tasks left out", ""]
        lines += [f"- {_md(one.task)}: {_md(one.reason)}" for one in comparison.left_out] + [""]
    if comparison.skipped:
        lines += ["## Skipped runs", ""]
        lines += [f"- {_md(str(one.path))}: {_md(one.reason)}" for one in comparison.skipped] + [""]
    return "\n".join(lines)


def table_lines(table: Table) -> list[str]:
    """Return the lines of a table in Markdown, with its warnings and notes."""
    lines = [f"## {_md(table.title)}", ""]
    lines += [f"**Warning: {_md(warning)}**\n" for warning in table.warnings]
    if table.rows:
        lines += [_md_row(table.columns), "|" + " --- |" * len(table.columns)]
        lines += [*map(_md_row, table.rows), ""]
    return [*lines, *(f"- {_md(note)}" for note in table.notes), ""]


def _md(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", " ".join(text.split()))


def _md_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_md, cells))} |"


def estimates_csv(comparison: Comparison) -> str:
    """Return all estimates as CSV, one per line, with all digits; empty if there is no number.

    `ci_of` says which statistic the interval from `ci_low` to `ci_high` belongs to.
    """
    header = (
        "task", "variant", "metric", "n", "median", "iqm", "mean", "ci_of", "ci_low", "ci_high",
        "evaluations", *MEASURED_BY,
    )  # fmt: skip
    rows: list[Row] = []
    for task in comparison.tasks:
        for one in task.entries:
            found = one.estimate
            numbers = (found.n, found.median, found.iqm, found.mean, "iqm", found.low, found.high)
            by = (task.evaluations[one.variant], *task.interval, comparison.on)
            rows.append((one.task, one.variant, one.metric, *numbers, *by))
    every = (nan, nan, nan, comparison.on)  # each task has its own budget and interval
    for score in comparison.aggregate.scores if comparison.aggregate else ():
        numbers = (score.n_runs, nan, nan, score.mean, "mean", score.low, score.high)
        rows.append(("all", score.variant, NORMALISED, *numbers, *every))
    return _csv(header, rows)


def pairs_csv(comparison: Comparison) -> str:
    """Return all tests as CSV, one per line, with all digits; those over all tasks first.

    Their metric is the primary one of every task; two are joined by a slash. Only they have a `difference`,
    which is that of the normalised scores.
    """
    header = (
        "task", "endpoint", "metric", "a", "b", "n_a", "n_b", "improvement", "ci_low", "ci_high", "p",
        "p_holm", "difference", "difference_low", "difference_high", *MEASURED_BY,
    )  # fmt: skip
    intervals = {task.task: task.interval for task in comparison.tasks}
    rows: list[Row] = []
    aggregate = comparison.aggregate
    metric = "/".join(dict.fromkeys(aggregate.metrics.values())) if aggregate else ""
    for over in aggregate.pairs if aggregate else ():
        n_a, n_b = (sum(sizes) for sizes in zip(*over.sizes, strict=True))
        found = (over.improvement, over.low, over.high, over.p, over.p_holm)
        apart = (over.difference, over.difference_low, over.difference_high)
        who = ("all", "primary", metric, over.a, over.b, n_a, n_b)
        rows.append((*who, *found, *apart, nan, nan, comparison.on))
    for pair in comparison.pairs:
        endpoint = "primary" if pair.primary else "exploratory"
        who = (pair.task, endpoint, pair.metric, pair.a, pair.b, pair.n_a, pair.n_b)
        found = (pair.improvement, pair.low, pair.high, pair.p, pair.p_holm)
        rows.append((*who, *found, nan, nan, nan, *intervals[pair.task], comparison.on))
    return _csv(header, rows)


def _csv(header: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(["" if value != value else value for value in row])
    return text.getvalue()


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison in types that JSON has."""
    found = asdict(comparison)
    found["skipped"] = [{"run": str(one.path), "reason": one.reason} for one in comparison.skipped]
    found["method"] = list(method(comparison))
    return found


FILES = {
    "compare.md": markdown,
    "compare.tex": latex,
    "compare.csv": estimates_csv,
    "pairs.csv": pairs_csv,
}
"""The files that are written, and the functions that make their text."""


def write_tables(comparison: Comparison, folder: Path) -> list[Path]:
    """Write a comparison into a folder, in all formats."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        write_text(folder / name, text(comparison))
    return [folder / name for name in FILES]
