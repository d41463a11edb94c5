"""Warnings about runs, in the same words wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qdbench.analysis.measures import Interval, pooled_interval
from qdbench.metrics.robustness import Reevaluations
from qdbench.store.loading import StoredRun


@dataclass(frozen=True)
class Suspect:
    """The facts of a run that warnings need: small enough to keep when its arrays are released."""

    path: Path
    fitness: Interval
    """Lowest and highest fitness of all evaluations; NaN if none was valid."""
    corrected: Interval
    """Lowest and highest mean fitness of the re-evaluated elites; NaN if there is none."""
    coarse: str
    """A warning about the resolution of the descriptor; empty if there is none."""


def warnings_of(runs: Iterable[StoredRun], interval: Interval) -> list[str]:
    """Return all warnings about the runs of a task."""
    return in_words([suspect(StoredRun(run.path, run.record)) for run in runs], interval)


def suspect(run: StoredRun) -> Suspect:
    """Return the facts of one run that warnings need."""
    found = run.corrections
    means = np.empty(0)
    if found is not None and found.points:
        rows = np.unique(np.concatenate([point.rows for point in found.points]))
        means = Reevaluations(found.fitness[rows], found.descriptors[rows]).means()[0]
    span = (float(np.fmin.reduce(means, initial=np.nan)), float(np.fmax.reduce(means, initial=np.nan)))
    return Suspect(run.path, pooled_interval([run]), span, resolution_warning(run))


def in_words(suspects: Sequence[Suspect], interval: Interval) -> list[str]:
    """Return the warnings as sentences."""
    sentences = []
    for one in suspects:
        spans = {"a fitness": one.fitness, "a corrected fitness": one.corrected}
        sentences += [
            f"{what} of {one.path} is outside the interval: its values span [{low:.10g}, {high:.10g}]. Cells "
            "may count less than 0 or more than 1 in its QD score."
            for what, (low, high) in spans.items()
            if low < interval[0] or high > interval[1]
        ]
    coarse = [one.coarse for one in suspects if one.coarse]
    if coarse:
        several = f" This is so in {len(coarse)} of {len(suspects)} runs." if len(suspects) > 1 else ""
        sentences.append(f"{coarse[0]}{several}")
    return sentences


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
