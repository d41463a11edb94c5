"""A comparison as Markdown, LaTeX, CSV and JSON."""

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
from qdbench.analysis.statistics import Estimate
from qdbench.analysis.tables import METHOD, TEXT_COLUMNS, tables
from qdbench.store.files import write_text

MEASURED_BY = ("interval_low", "interval_high", "on")
"""The interval of QD scores (losses are always on the fixed one), and what was measured: `own` or `grid`."""


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
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "≤": r"$\le$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def latex(comparison: Comparison) -> str:
    """Return LaTeX to \\input: plain tabular; no packages are needed."""
    lines = ["% written by `qdbench compare`; \\input it, no packages are needed"]
    for table in tables(comparison):
        lines += ["", rf"\paragraph{{{_tex(table.title)}}}"]
        lines += [rf"\textbf{{Warning: {_tex(warning)}}}" for warning in table.warnings]
        if table.rows:
            n_text = sum(name in TEXT_COLUMNS for name in table.columns)
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
    """Return all estimates as CSV, one per line, with all digits; empty if there is no number."""
    header = ("task", "variant", "metric", "n", "median", "iqm", "ci_low", "ci_high", *MEASURED_BY)
    rows = [
        (one.task, one.variant, one.metric, *_estimate_values(one.estimate), *task.interval, comparison.on)
        for task in comparison.tasks
        for one in task.entries
    ]
    every = (nan, nan, comparison.on)  # each task has its own interval
    rows += [
        ("all", one.variant, f"{one.metric}_per_cell", *_estimate_values(one.estimate), *every)
        for one in comparison.aggregates
    ]
    return _csv(header, rows)


def _estimate_values(found: Estimate) -> tuple[int | float, ...]:
    return (found.n, found.median, found.iqm, found.low, found.high)


def pairs_csv(comparison: Comparison) -> str:
    """Return all tests as CSV, one per line, with all digits."""
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
    """Return the comparison in types that JSON has."""
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
"""The files that are written, and the functions that make their text."""


def write_tables(comparison: Comparison, folder: Path) -> list[Path]:
    """Write a comparison into a folder, in all formats."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        write_text(folder / name, text(comparison))
    return [folder / name for name in FILES]
