"""A comparison as a table of a paper, in LaTeX: algorithms as columns, tasks as rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qdbench.analysis.compare import Comparison
from qdbench.analysis.statistics import Estimate
from qdbench.analysis.tables import (
    PERCENT,
    brief_estimate,
    interval_words,
    marked,
    not_aggregated,
    score_text,
    shown_metrics,
    variants,
)
from qdbench.metrics.metric import METRICS
from qdbench.metrics.numbers import NOTHING

ESCAPED = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "≤": r"$\le$",
    "±": r"$\pm$", "\N{MINUS SIGN}": "$-$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def latex(comparison: Comparison) -> str:
    """Return a LaTeX table to \\input; it needs the package booktabs."""
    who = variants(comparison)
    head = [escaped(marked(variant, comparison.tasks)) for variant in who]
    lines = [
        *(f"% {' '.join(line.split())}" for line in _comments(comparison)),
        rf"\begin{{tabular}}{{l{'r' * len(who)}}}",
        r"\toprule",
        _row("Task", head),
    ]
    for names in shown_metrics(comparison):
        title = " or ".join(dict.fromkeys(METRICS[name].title for name in names))
        lines += [r"\midrule", rf"\multicolumn{{{len(who) + 1}}}{{l}}{{\emph{{{escaped(title)}}}}} \\"]
        lines += _metric_rows(comparison, names, who)
    if comparison.aggregate is not None and comparison.aggregate.scores:
        lines += [r"\midrule", _aggregate_row(comparison, who)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _comments(comparison: Comparison) -> Iterable[str]:
    yield "Written by `qdbench compare`. Needs \\usepackage{booktabs}."
    yield (
        f"Interquartile means over replications; in brackets their {PERCENT} bootstrap intervals. Bold: the "
        "best of a row by the interquartile mean, which is not a test. A dash: no runs."
    )
    for task in comparison.tasks:
        counts = sorted({entry.n_runs for entry in task.entries})
        many = " to ".join(map(str, dict.fromkeys((*counts[:1], *counts[-1:]))))
        yield f"{task.task}: {many} replications; {interval_words(comparison, task)}"
    if comparison.aggregate is not None:
        found = comparison.aggregate
        yield (
            "Normalised score: mean over tasks, 0 = random_search and 1 = map_elites on every task, from "
            f"{found.anchors.source}"
        )
        yield from not_aggregated(found)
    yield from (f"{one.task} is left out: {one.reason}" for one in comparison.left_out)
    n = sum(len(task.warnings) for task in comparison.tasks)
    yield from [f"{n} warning{'s' * (n != 1)}: see compare.md"] * bool(n)
    n = len(comparison.skipped)
    yield from [f"{n} skipped run{'s' * (n != 1)}: see compare.md"] * bool(n)


def _metric_rows(comparison: Comparison, names: Sequence[str], who: Sequence[str]) -> Iterable[str]:
    for task, name in zip(comparison.tasks, names, strict=True):
        found = {entry.variant: entry.estimate for entry in task.entries if entry.metric == name}
        best = _best(found, METRICS[name].better)
        cells = []
        for variant in who:
            number, *interval = brief_estimate(METRICS[name], found.get(variant))
            cells.append(_cell(number, interval, bold=variant in best))
        yield _row(escaped(task.task), cells)


def _best(found: dict[str, Estimate], better: str) -> set[str]:
    """Return the variants with the best interquartile mean; several if they are equal."""
    known = {variant: one.iqm for variant, one in found.items() if one.n}
    if len(known) < 2 or better == "neither":
        return set()
    best = max(known.values()) if better == "higher" else min(known.values())
    return {variant for variant, value in known.items() if value == best}


def _aggregate_row(comparison: Comparison, who: Sequence[str]) -> str:
    assert comparison.aggregate is not None, "there is a row of it"
    scores = {score.variant: score for score in comparison.aggregate.scores}
    best = max(score.mean for score in scores.values())
    cells = []
    for variant in who:
        score = scores.get(variant)
        if score is None:
            cells.append(_cell(NOTHING, ()))
            continue
        ends = [score_text(value) for value in (score.low, score.high) if value == value]
        interval = [f"[{', '.join(ends)}]"] if ends else []
        cells.append(_cell(score_text(score.mean), interval, bold=score.mean == best))
    return _row("Normalised score", cells)


def _cell(number: str, interval: Sequence[str], *, bold: bool = False) -> str:
    if number == NOTHING:
        return "--"
    number, *interval = (escaped(one).replace("-", "$-$") for one in (number, *interval))
    main = rf"\textbf{{{number}}}" if bold else number
    return " ".join([main, *(rf"{{\scriptsize {one}}}" for one in interval)])


def _row(first: str, cells: Sequence[str]) -> str:
    return f"{' & '.join([first, *cells])} \\\\"


def escaped(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    plain = "".join(ESCAPED.get(character, character) for character in " ".join(text.split()))
    return plain.replace("--", "-{}-")  # not a dash
