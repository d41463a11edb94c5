"""Warnings about runs, in the same words wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdbench.analysis.measures import Interval, pooled_interval
from qdbench.metrics.robustness import Reevaluations
from qdbench.store.loading import StoredRun


@dataclass(frozen=True)
class Above:
    """How many elites are above an interval, and the highest fitness."""

    count: int
    most: float


@dataclass(frozen=True)
class Suspect:
    """The facts of a run that warnings need: small enough to keep when its arrays are released."""

    path: Path
    task: str
    outside: str
    """A warning about a fitness that the task calls impossible; empty if there is none."""
    above: Above
    """The final elites that are above the interval of the QD score."""
    corrected_above: Above
    """The re-evaluated elites whose mean fitness is above it."""
    coarse: str
    """A warning about the resolution of the descriptor; empty if there is none."""


def warnings_of(runs: Iterable[StoredRun], interval: Interval) -> list[str]:
    """Return all warnings about the runs of a task."""
    return in_words([suspect(StoredRun(run.path, run.record), interval) for run in runs])


def suspect(run: StoredRun, interval: Interval) -> Suspect:
    """Return the facts of one run that warnings need, if QD scores are on this interval."""
    found = run.corrections
    means = np.empty(0)
    if found is not None and found.points:
        rows = np.unique(np.concatenate([point.rows for point in found.points]))
        means = Reevaluations(found.fitness[rows], found.descriptors[rows]).means()[0]
    return Suspect(
        run.path,
        run.record.task.name,
        impossible_warning(run.path, run.record.task.fitness_bounds, pooled_interval([run])),
        _above(run.archive.fitness, interval),
        _above(means, interval),
        resolution_warning(run),
    )


def _above(fitness: NDArray[np.float64], interval: Interval) -> Above:
    above = fitness[fitness > interval[1]]
    return Above(len(above), float(above.max(initial=-np.inf)))


def in_words(suspects: Sequence[Suspect]) -> list[str]:
    """Return the warnings about the runs of one task as sentences."""
    sentences = [one.outside for one in suspects if one.outside]
    sentences += _told("fitness", [(one, one.above) for one in suspects])
    sentences += _told("corrected fitness", [(one, one.corrected_above) for one in suspects])
    coarse = [one.coarse for one in suspects if one.coarse]
    if coarse:
        several = f" This is so in {len(coarse)} runs." if len(coarse) > 1 else ""
        sentences.append(f"{coarse[0]}{several}")
    return sentences


def _told(what: str, of_runs: Sequence[tuple[Suspect, Above]]) -> list[str]:
    """Return one sentence about the elites above the interval in all runs of a task, or none."""
    found = [(run, above) for run, above in of_runs if above.count]
    if not found:
        return []
    first = found[0][0]
    where = first.path if len(found) == 1 else f"{first.task} ({len(found)} runs)"
    return [
        f"{where}: {sum(one.count for _, one in found):,} elites have a {what} above the interval of the QD "
        f"score (up to {max(one.most for _, one in found):.10g}). Each counts as 1."
    ]


def impossible_warning(path: Path, bounds: Interval, found: Interval) -> str:
    """Return a warning if the fitness found by a run is outside the task's bounds, else an empty text."""
    (low, high), (least, most) = bounds, found
    if not (least < low or most > high):
        return ""
    return (
        f"a fitness of {path} is outside the task's fitness bounds [{low:.10g}, {high:.10g}]: its values "
        f"span [{least:.10g}, {most:.10g}]. Algorithms rely on these bounds."
    )


def resolution_warning(run: StoredRun) -> str:
    """Return a warning if the episodes of a run have too few steps for its cells, else an empty text.

    A descriptor that is a share of an episode's steps (such as foot contacts) has one of steps + 1 values.
    """
    task, totals = run.record.task, run.record.totals
    length = task.options.get("episode_length")
    if not run.record.facts.counts_steps or length is None or not totals.evaluations:
        return ""
    cells, mean_steps = max(task.cells), totals.steps // totals.evaluations
    if mean_steps >= cells:
        return ""
    steps = length if length < cells else mean_steps
    usual = "" if length < cells else f" (the mean in {run.path})"
    return (
        f"{task.name}: the descriptor is a share of an episode's steps, and {steps:,} steps{usual} give "
        f"at most {steps + 1:,} values for {cells:,} cells. So cells stay empty, or differ only in the "
        "length of the episode."
    )
