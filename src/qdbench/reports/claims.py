"""Sentences that were put to the test, as a short table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from qdbench.analysis.aggregate import AggregatePair
from qdbench.analysis.compare import Comparison, Pair
from qdbench.analysis.references import MARK
from qdbench.analysis.statistics import SIGNIFICANT
from qdbench.analysis.tables import p_value, sizes_of, what_is_needed
from qdbench.metrics.metric import METRICS
from qdbench.reports.markup import text
from qdbench.reports.style import Look

Verdict = Literal["holds", "does not hold", "undecided"]
MOST = 10
"""More pairs than this are only in the tables of tests."""


@dataclass(frozen=True)
class Finding:
    """A sentence that was put to the test; `qdbench.paper.findings` makes those of the paper."""

    claim: str
    criterion: str
    verdict: Verdict
    numbers: tuple[str, ...]
    """What the verdict rests on, in words."""


def who_is_better(comparison: Comparison, looks: dict[str, Look]) -> list[Finding]:
    """Return which algorithm is better than which, by the primary tests; none if there are too many pairs."""
    pairs = primary_pairs(comparison)
    metrics = {METRICS[task.primary].title for task in comparison.tasks}
    where = f"{' and '.join(sorted(metrics))}{' over tasks' if comparison.aggregate else ''}"
    return [_claim(pair, where, looks) for pair in pairs] if len(pairs) <= MOST else []


def primary_pairs(comparison: Comparison) -> list[Pair | AggregatePair]:
    """Return the pairs of the primary tests: over tasks, or of the only task."""
    if comparison.aggregate is not None:
        return list(comparison.aggregate.pairs)
    return [pair for pair in comparison.pairs if pair.primary]


def _claim(pair: Pair | AggregatePair, where: str, looks: dict[str, Look]) -> Finding:
    a, b, chance = pair.a, pair.b, pair.improvement
    if chance < 0.5:
        a, b, chance = b, a, 1 - chance
    first, second = (looks[label].name if label in looks else label for label in (a, b))
    decided = not isnan(pair.p_holm) and pair.p_holm <= SIGNIFICANT
    p = "no test" if isnan(pair.p_holm) else f"p after Holm {p_value(pair.p_holm)}"
    shown = "" if isnan(chance) else f"P(better) {chance:.2f}, "
    return Finding(
        f"{first} beats {second}.",
        f"p after Holm of the primary test ({where}) is at most {SIGNIFICANT}.",
        "holds" if decided else "undecided",
        (f"{shown}{p}",),
    )


def what_it_takes(comparison: Comparison, found: Sequence[Finding]) -> str:
    """Return what undecided comparisons need, in one line; empty if all are decided."""
    n = sum(one.verdict == "undecided" for one in found)
    if not n:
        return ""
    pairs = primary_pairs(comparison)
    needed, whose = what_is_needed(pairs)
    sizes = {
        label: n
        for pair in pairs
        for both in sizes_of(pair)
        for label, n in zip((pair.a, pair.b), both, strict=True)
        if whose == "of each algorithm" or not label.endswith(MARK)
    }
    fewest = min(sizes.values())
    if fewest < needed:
        return f"To decide: at least {needed} seeds {whose}; there are {fewest}."
    return "To decide: more seeds. They narrow the intervals."


def findings_table(found: Sequence[Finding], title: str, line: str) -> str:
    """Return findings as a compact table: the sentence, the verdict, and a line below."""
    if not found:
        return ""
    numbers = all(len(one.numbers) == 1 for one in found)
    rows = "\n".join(
        f'<tr><th scope="row" class="text">{text(one.claim)}</th>'
        f'<td class="text"><span class="verdict {one.verdict.replace(" ", "-")}">{text(one.verdict)}</span>'
        "</td>" + (f'<td class="text">{text(one.numbers[0])}</td>' if numbers else "") + "</tr>"
        for one in found
    )
    heads = ["finding", "verdict", *(["numbers"] if numbers else [])]
    columns = "".join(f'<th scope="col" class="text">{head}</th>' for head in heads)
    below = f'\n<p class="line">{text(line)}</p>' if line else ""
    return (
        '<div class="scroll" role="region" aria-labelledby="in-short" tabindex="0">\n'
        '<table class="findings">\n'
        f'<caption id="in-short">{text(title)}</caption>\n<thead><tr>{columns}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>{below}"
    )
