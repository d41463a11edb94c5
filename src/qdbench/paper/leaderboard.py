"""The reference results as one table: tasks and algorithms, the best first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path

from qdbench.analysis.aggregate import ONE, ZERO, Aggregate, Score
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.measured import Measured
from qdbench.analysis.references import alone
from qdbench.analysis.tables import PERCENT, brief_estimate, not_aggregated, score_text
from qdbench.errors import InvalidInput
from qdbench.metrics.metric import METRICS, PRIMARY
from qdbench.metrics.numbers import NOTHING
from qdbench.paper.references import references_of_today
from qdbench.paper.suite_scales import SuiteScale, suite_scale
from qdbench.seeds import seeds_text
from qdbench.store.reference_file import Reference

OVER_TASKS = "**all**"
"""The row of the normalised scores."""


@dataclass(frozen=True)
class Entry:
    """One number of the leaderboard, with its interval."""

    task: str
    """`all` for the normalised score over tasks."""
    algorithm: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Leaderboard:
    """Corrected QD scores of all reference results of a scale."""

    title: str
    algorithms: tuple[str, ...]
    """The best first, by normalised score; then those that lack a task."""
    rows: tuple[tuple[str, ...], ...]
    """The normalised scores over tasks, then a row for every task: its name, and a cell for every algorithm.
    The best of a row is **bold**."""
    notes: tuple[str, ...]
    entries: tuple[Entry, ...] = ()
    """The same as numbers."""
    problems: tuple[str, ...] = ()
    """A sentence about every file that was left out."""

    def markdown(self) -> str:
        """Return the table as Markdown, as the README has it."""
        head = ["task", *(f"`{name}`" for name in self.algorithms)]
        lines = [head, ["---"] * len(head), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([self.title, table, "\n".join(f"- {note}" for note in self.notes)])


def leaderboard(scale: str = "quick", *, references: str | Path | None = None) -> Leaderboard:
    """Return the corrected QD scores of all reference results of a scale, with intervals; the best first.

    `references` is a folder with further reference results.
    """
    size = suite_scale(scale)
    everything = references_of_today(references)
    found = [one for one in everything.found if one.scale.name == size.name]
    by_task = {task: [one for one in found if one.task.name == task] for task in size.tasks}
    there = [alone(of_task) for of_task in by_task.values() if of_task]
    if not there:
        raise InvalidInput(
            f"there are no reference results of the {size.label}; `qdbench references` lists all"
        )
    comparison = compare(Measured(tuple(there), (), (), (), (), "fixed", "own"), metrics=PRIMARY.name)
    table = _table(size, comparison, [task for task, of_task in by_task.items() if not of_task])
    odd = [f"{one.variant} on {one.task.name}: seeds {seeds}" for one in found if (seeds := _odd_seeds(one))]
    notes = (*table.notes, *([f"not all seeds: {'; '.join(odd)}"] if odd else []))
    return replace(table, notes=notes, problems=everything.problems)


def _odd_seeds(one: Reference) -> str:
    """Return the seeds if they are not those of a whole result."""
    seeds = [run.seed for run in one.runs]
    return "" if seeds in (list(range(5)), list(range(10))) else seeds_text(seeds)


def _table(scale: SuiteScale, comparison: Comparison, missing: list[str]) -> Leaderboard:
    names = list(dict.fromkeys(variant for task in comparison.tasks for variant in task.evaluations))
    scores = {one.variant: one for one in comparison.aggregate.scores} if comparison.aggregate else {}
    order = sorted(names, key=lambda name: -scores[name].mean if name in scores else float("inf"))
    rows = [_score_row(scores, order)] if scores else []
    for task in comparison.tasks:
        known = {entry.variant: entry.estimate for entry in task.entries}
        values = {name: known[name].iqm for name in order if name in known and not isnan(known[name].iqm)}
        best = max(values, key=lambda name: values[name], default="")
        cells = [
            _cell(brief_estimate(METRICS[PRIMARY.name], known.get(name)), bold=name == best) for name in order
        ]
        rows.append((f"`{task.task}`", *cells))
    return Leaderboard(
        f"Corrected QD score, {scale.label}: interquartile mean over seeds and its {PERCENT} interval.",
        tuple(order),
        tuple(rows),
        tuple(_notes(comparison.aggregate, missing)),
        (
            *(Entry("all", one.variant, one.mean, one.low, one.high) for one in scores.values()),
            *(
                Entry(task.task, one.variant, one.estimate.iqm, one.estimate.low, one.estimate.high)
                for task in comparison.tasks
                for one in task.entries
            ),
        ),
    )


def _score_row(scores: dict[str, Score], order: list[str]) -> tuple[str, ...]:
    best = max(scores.values(), key=lambda one: one.mean).variant
    cells = []
    for name in order:
        one = scores.get(name)
        parts = (
            (NOTHING,)
            if one is None
            else (score_text(one.mean), f"[{score_text(one.low)}, {score_text(one.high)}]")
        )
        cells.append(_cell(parts, bold=name == best))
    return (OVER_TASKS, *cells)


def _cell(parts: tuple[str, ...], *, bold: bool) -> str:
    first, *rest = parts
    return " ".join([f"**{first}**" if bold else first, *rest])


def _notes(found: Aggregate | None, missing: list[str]) -> list[str]:
    notes = ["bold: the highest score of a task; where intervals overlap, it is not shown to be better"]
    if found is not None and found.scores:
        n = len(found.tasks)
        notes.append(
            f"all: normalised score, mean over {n} tasks of the mean over seeds; 0 is the mean of `{ZERO}`, "
            f"1 that of `{ONE}`; its intervals take these two as exact"
        )
    if found is not None:
        notes += not_aggregated(found)
    if missing:
        notes.append(f"no reference results yet: {', '.join(missing)}")
    return notes
