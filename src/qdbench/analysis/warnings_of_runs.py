"""What must not be overlooked about some runs, in the same words wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qdbench.analysis.measures import Interval, pooled_interval
from qdbench.analysis.resolution import resolution_warning
from qdbench.experiments.loading import StoredRun


@dataclass(frozen=True)
class Suspect:
    """All of a run that can give rise to a warning: little enough to keep when its arrays are let go."""

    path: Path
    fitness: Interval
    """Lowest and highest of all its evaluations; NaN if none was valid."""
    corrected: Interval
    """Lowest and highest mean of its elites' re-evaluations; NaN if there is none."""
    coarse: str
    """What is wrong with the resolution of its descriptor, or nothing."""


def warnings_of(runs: Iterable[StoredRun], interval: Interval) -> list[str]:
    """Return a sentence for all that must not be overlooked about a task's runs."""
    return in_words([suspect(StoredRun(run.path, run.record)) for run in runs], interval)


def suspect(run: StoredRun) -> Suspect:
    """Look at one run; what is read of it stays with it."""
    snapshots = run.corrections.snapshots if run.corrections is not None else ()
    means = np.concatenate([snapshot.reevaluations.means()[0] for snapshot in snapshots] or [np.empty(0)])
    return Suspect(
        run.path,
        pooled_interval([run]),
        (float(np.fmin.reduce(means, initial=np.nan)), float(np.fmax.reduce(means, initial=np.nan))),
        resolution_warning(run),
    )


def in_words(suspects: Sequence[Suspect], interval: Interval) -> list[str]:
    """Return the warnings about runs that were looked at."""
    sentences = []
    for one in suspects:
        spans = {"a fitness": one.fitness, "a corrected fitness": one.corrected}
        sentences += [
            f"{what} of {one.path} is outside the interval: its values span [{low:.10g}, {high:.10g}]; its "
            "cells may score below 0 or above 1"
            for what, (low, high) in spans.items()
            if low < interval[0] or high > interval[1]
        ]
    coarse = [one.coarse for one in suspects if one.coarse]
    if coarse:
        several = f"; so it is in {len(coarse)} of {len(suspects)} runs" if len(suspects) > 1 else ""
        sentences.append(f"{coarse[0]}{several}")
    return sentences


def about_max_fitness(task: str) -> str:
    """Return why the max fitness of a task says little, or nothing."""
    if task != "ant_omni":  # the other two robots fall or sag without torque
        return ""
    return "standing still without torque reaches the maximum fitness of ant_omni: it says little here"
