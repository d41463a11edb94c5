"""How much of an archive is lost with longer episodes, fuller archives, more re-evaluations? On ant_omni.

    python -m studies.episode_length run --out results/standard
    python -m studies.episode_length table --runs results/standard --png episode_length.png

The task keeps the width of its cells in metres at any episode length. All lengths have the same number of
evaluations, fewer than the standard. Fill: a random part of the final elites is put into a corrected archive.
Its expected loss is computed exactly, if all replications have so many elites. N: only the first N
re-evaluations of every elite are used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import qdbench
from qdbench.analysis.measured import MeasuredRun
from qdbench.analysis.measures import PlacedRun
from qdbench.metrics.rarefied import rarefied_losses
from qdbench.metrics.returns import Elites as Stored
from qdbench.metrics.returns import returned
from qdbench.metrics.robustness import by_samples, losses
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
FILLS = (30, 60, 120, 240, 480, 960)
COUNTS = (1, 2, 4, 8, 16, 32)
SHOWN = ("coverage loss", "QD score loss", "return rate")
Triple = tuple[float, float, float]
"""What is shown, in this order."""


class Elites:
    """The final elites of a run with their re-evaluations. One with an invalid re-evaluation is lost."""

    def __init__(self, run: MeasuredRun, bounds: tuple[float, float]) -> None:
        placed = PlacedRun(qdbench.load(run.run.path))
        point = placed.run.final_point
        assert point is not None, "all runs of this study are corrected"
        self.geometry, self.bounds = placed.geometry, bounds
        self.fitness, self.again = point.fitness, placed.reevaluations(point)
        self.back = returned(self.geometry, Stored(point.fitness, point.descriptors), self.again)

    def __len__(self) -> int:
        return len(self.fitness)

    def lost(self, n: int) -> Triple:
        """Return losses and return rate with the first `n` re-evaluations."""
        (after,) = by_samples(self.geometry, self.again, self.bounds, [n])
        found = losses(scores(self.fitness, self.bounds), after)
        return found.coverage, found.qd_score, float(self.back[:, :n].mean())

    def thinned(self, m: int) -> Triple:
        """Return the expected losses of `m` elites drawn at random, and their return rate."""
        (found,) = rarefied_losses(self.geometry, self.fitness, self.again, self.bounds, [m])
        return found.coverage, found.qd_score, float(self.back.mean())


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
    """Return losses and return rate of a part of the elites; of fewer than all replications would mislead."""
    return {
        length: {m: over_seeds([one.thinned(m) for one in some]) for m in FILLS if m <= min(map(len, some))}
        for length, some in found.items()
    }


def by_count(found: dict[int, list[Elites]]) -> Table:
    """Return losses and return rate with fewer re-evaluations."""
    return {
        length: {n: over_seeds([one.lost(n) for one in some]) for n in COUNTS if n <= some[0].again.n_samples}
        for length, some in found.items()
    }


def as_tables(found: dict[int, list[Elites]]) -> str:
    """Return three Markdown tables: against episode length, fill and N."""
    ends = [
        [
            str(length),
            str(len(some)),
            interval(np.array([float(len(one)) for one in some])).words(",.4g"),
            *_words(over_seeds([one.lost(one.again.n_samples) for one in some])),
        ]
        for length, some in found.items()
    ]
    parts = [markdown(["episode length", "seeds", "elites", *SHOWN], ends)]
    for title, numbers in (("elites drawn", by_fill(found)), ("re-evaluations", by_count(found))):
        rows = [
            [str(length), str(x), *_words(values)]
            for length, line in numbers.items()
            for x, values in line.items()
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
