"""How much of an archive is lost with longer episodes, fuller archives, more re-evaluations? On ant_omni.

    python -m studies.episode_length run --out results/standard
    python -m studies.episode_length table --runs results/standard --png episode_length.png

The task keeps the width of its cells in metres at any episode length. All lengths have the same number of
evaluations, fewer than the standard. Fill: random subsets of the final elites are put into a corrected
archive of their own. N: only the first N re-evaluations of every elite are used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench.analysis.measured import MeasuredRun
from qdbench.analysis.measures import PlacedRun
from qdbench.metrics.robustness import Reevaluations, corrected_archive, losses
from qdbench.metrics.scores import scores
from studies.campaign import (
    CONTENDERS,
    STANDARD,
    Interval,
    Planned,
    carry_out,
    command,
    interval,
    markdown,
    measured,
    run_and_table,
    sized,
)

TASK = "ant_omni"
LENGTHS = (125, 250, 500, 1000)
SCALE = replace(STANDARD, evaluations=5_120, reevaluations=32)
SUBSETS = 20
"""Random subsets per size."""
FILLS = (30, 60, 120, 240, 480, 960)
COUNTS = (1, 2, 4, 8, 16, 32)
SHOWN = ("coverage loss", "QD score loss", "return rate")
Triple = tuple[float, float, float]
"""What is shown, in this order."""


class Elites:
    """The final elites of a run with their re-evaluations, those with an invalid one left out."""

    def __init__(self, run: MeasuredRun, bounds: tuple[float, float]) -> None:
        placed = PlacedRun(qdbench.load(run.run.path))
        point = placed.run.final_point
        assert point is not None, "all runs of this study are corrected"
        again = placed.reevaluations(point)
        left = ~np.isnan(again.fitness).any(axis=1)
        self.geometry, self.bounds = placed.geometry, bounds
        self.fitness, self.cells = point.fitness[left], point.cells[left]
        self.again = again.valid()

    def __len__(self) -> int:
        return len(self.fitness)

    def lost(self, rows: NDArray[np.int64], n: int) -> Triple:
        """Return losses and return rate of some of the elites, with their first `n` re-evaluations."""
        some = Reevaluations(self.again.fitness[rows, :n], self.again.descriptors[rows, :n])
        after = corrected_archive(self.geometry, some).elites.fitness
        found = losses(scores(self.fitness[rows], self.bounds), scores(after, self.bounds))
        places = self.geometry.cells(some.descriptors.reshape(-1, some.descriptors.shape[2]))
        returned = places.reshape(some.fitness.shape) == self.cells[rows, None]
        return found.coverage, found.qd_score, float(returned.mean())

    def all_lost(self, n: int) -> Triple:
        """Return the same for all elites."""
        return self.lost(np.arange(len(self)), n)

    def thinned(self, m: int) -> Triple:
        """Return the mean over random subsets of `m` elites; NaN if there are fewer."""
        if m > len(self):
            return np.nan, np.nan, np.nan
        rng = qdbench.stream(0, "subsets", m)
        drawn = [rng.choice(len(self), m, replace=False) for _ in range(SUBSETS)]
        found = np.mean([self.lost(rows, self.again.n_samples) for rows in drawn], axis=0)
        return tuple(found.tolist())


def folder_of(out: Path, length: int) -> Path:
    """Return the results folder of one episode length."""
    return out / f"episode_length-{length}"


def elites(runs: Path) -> dict[int, list[Elites]]:
    """Return the final elites of all finished runs, by episode length."""
    tasks = {length: measured(folder_of(runs, length) / TASK) for length in LENGTHS}
    return {
        length: [Elites(run, task.by.interval) for run in task.measured_runs]
        for length, task in tasks.items()
        if task is not None
    }


def over_seeds(lost: Sequence[Triple]) -> list[Interval]:
    """Return losses and return rate over replications."""
    return [interval(column) for column in np.array(lost).T]


Table = dict[int, dict[int, list[Interval]]]
"""By episode length, then by fill or N."""


def by_fill(found: dict[int, list[Elites]]) -> Table:
    """Return losses and return rate of random subsets."""
    return {
        length: {m: over_seeds([one.thinned(m) for one in some]) for m in FILLS}
        for length, some in found.items()
    }


def by_count(found: dict[int, list[Elites]]) -> Table:
    """Return losses and return rate with fewer re-evaluations."""
    return {
        length: {
            n: over_seeds([one.all_lost(n) for one in some]) for n in COUNTS if n <= some[0].again.n_samples
        }
        for length, some in found.items()
    }


def as_tables(found: dict[int, list[Elites]]) -> str:
    """Return three Markdown tables: against episode length, fill and N."""
    ends = [
        [
            str(length),
            str(len(some)),
            interval(np.array([float(len(one)) for one in some])).words(",.4g"),
            *_words(over_seeds([one.all_lost(one.again.n_samples) for one in some])),
        ]
        for length, some in found.items()
    ]
    parts = [markdown(["episode length", "seeds", "elites", *SHOWN], ends)]
    for title, numbers in (("elites drawn", by_fill(found)), ("re-evaluations", by_count(found))):
        rows = [
            [str(length), str(x), *_words(values)]
            for length, line in numbers.items()
            for x, values in line.items()
            if not np.isnan(values[0].mean)
        ]
        parts.append(markdown(["episode length", title, *SHOWN], rows))
    missing = [str(length) for length in LENGTHS if length not in found]
    return "\n\n".join([*parts, *([f"Not finished: episode length {', '.join(missing)}"] if missing else [])])


def _words(values: Sequence[Interval]) -> list[str]:
    return [one.words(".1%") for one in values]


def draw(found: dict[int, list[Elites]], png: Path) -> None:
    """Draw losses and return rate against fill and against N, a line per episode length."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(SHOWN), figsize=(10, 5.6), layout="constrained", sharey="col")
    tables = (("elites drawn at random", by_fill(found)), ("re-evaluations per elite", by_count(found)))
    for panels, (label, numbers) in zip(axes, tables, strict=True):
        for i, (panel, title) in enumerate(zip(panels, SHOWN, strict=True)):
            for length, line in numbers.items():
                means = [values[i].mean for values in line.values()]
                panel.plot(list(line), means, "o-", label=f"{length} steps")
            panel.set(xscale="log", xlabel=label, title=title)
            panel.set_xticks(ticks := sorted(set().union(*numbers.values())), map(str, ticks))
            panel.minorticks_off()
    for panel in axes[0]:
        panel.set_ylim(bottom=0)
    axes[0, 0].legend()
    figure.savefig(png, dpi=110)
    plt.close(figure)


def run(chosen: argparse.Namespace) -> int:
    """Make the runs, seed by seed, short episodes first."""
    scale = sized(SCALE, chosen)
    planned = [
        Planned(
            folder_of(chosen.out, length),
            qdbench.make(TASK, episode_length=length),
            CONTENDERS["map_elites"],
            seed,
            scale,
        )
        for seed in chosen.seeds
        for length in LENGTHS
    ]
    return carry_out(planned, chosen.workers)


def table(chosen: argparse.Namespace) -> None:
    """Print the tables; draw the figure."""
    found = elites(chosen.runs)
    if chosen.png:
        draw(found, chosen.png)
    print(as_tables(found))


if __name__ == "__main__":
    sys.exit(command(run_and_table(__doc__, run, table)))
