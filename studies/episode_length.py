"""How much of an archive is lost with longer episodes, fuller archives, more re-evaluations? On ant_omni.

    python -m studies.episode_length run --out results/episode_length
    python -m studies.episode_length table --runs results/episode_length --png episode_length.png

The task keeps the width of its cells in metres at any episode length. All lengths have the same number of
evaluations, fewer than the standard. Fill: a random part of the final elites is put into a corrected archive.
Its expected loss is computed exactly, if all replications have so many elites. N: only the first N
re-evaluations of every elite are used. Runs of several machines: `keep --runs DIR --kept DIR`, then
`table --kept DIR`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import qdbench
from qdbench.analysis.measured import MeasuredRun
from qdbench.analysis.measures import PlacedRun, fixed_interval
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
    run_and_table,
    sized,
)
from studies.kept import gathered, keep

TASK, ALGORITHM = "ant_omni", "map_elites"
LENGTHS = (125, 250, 500, 1000)
SCALE = replace(STANDARD, evaluations=5_120, reevaluations=32)
FILLS = (30, 60, 120, 240, 480, 960)
COUNTS = (1, 2, 4, 8, 16, 32)
SHOWN = ("coverage loss", "QD score loss", "return rate")
METRICS_SHOWN = ("coverage_loss", "qd_score_loss", "return_rate")


def lost(run: MeasuredRun) -> dict[str, Any]:
    """Return losses and return rate by re-evaluations and by elites. One with an invalid one is lost."""
    placed = PlacedRun(qdbench.load(run.run.path))
    point, bounds = placed.run.final_point, fixed_interval(placed.run)
    assert point is not None, "all runs of this study are corrected"
    again = placed.reevaluations(point)
    back = returned(placed.geometry, Stored(point.fitness, point.descriptors), again)
    counts = [n for n in COUNTS if n <= again.n_samples]
    fills = [m for m in FILLS if m <= len(point.fitness)]
    after = by_samples(placed.geometry, again, bounds, counts)
    by_count = [losses(scores(point.fitness, bounds), one) for one in after]
    by_fill = rarefied_losses(placed.geometry, point.fitness, again, bounds, fills)
    return {
        "by_count": {
            str(n): (one.coverage, one.qd_score, float(back[:, :n].mean()))
            for n, one in zip(counts, by_count, strict=True)
        },
        "by_fill": {
            str(m): (one.coverage, one.qd_score, float(back.mean()))
            for m, one in zip(fills, by_fill, strict=True)
        },
    }


def folder_of(length: int) -> str:
    """Return the folder of one episode length."""
    return f"episode_length-{length}"


Found = dict[int, list[dict[str, Any]]]
"""What is known of the runs, by episode length."""


def found_in(runs: Path, kept: Path | None = None) -> Found:
    """Return what is known of the finished runs."""
    every = gathered(runs, kept, lost)
    known = {length: every.get(folder_of(length), {}).get(ALGORITHM, {}) for length in LENGTHS}
    return {length: list(by_seed.values()) for length, by_seed in known.items() if by_seed}


def over_seeds(lost: Sequence[Sequence[float]]) -> list[Interval]:
    """Return losses and return rate over replications."""
    return [interval(column) for column in np.array(lost, np.float64).T]


Table = dict[int, dict[int, list[Interval]]]
"""By episode length, then by fill or N."""


def over(found: Found, what: str) -> Table:
    """Return losses and return rate `by_fill` or `by_count`; of fewer than all replications would mislead."""
    return {
        length: {
            int(x): over_seeds([run[what][x] for run in some])
            for x in some[0][what]
            if all(x in run[what] for run in some)
        }
        for length, some in found.items()
    }


def as_tables(found: Found) -> str:
    """Return three Markdown tables: against episode length, fill and N."""
    ends = [
        [
            str(length),
            str(len(some)),
            interval(np.array([run["coverage"] for run in some], np.float64)).words(",.4g"),
            *_words(over_seeds([tuple(run[name] for name in METRICS_SHOWN) for run in some])),
        ]
        for length, some in found.items()
    ]
    parts = [markdown(["episode length", "seeds", "elites", *SHOWN], ends)]
    for title, numbers in (
        ("elites drawn", over(found, "by_fill")),
        ("re-evaluations", over(found, "by_count")),
    ):
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


def draw(found: Found, png: Path) -> None:
    """Draw losses and return rate against fill and against N, a line per episode length."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(SHOWN), figsize=(10, 5.6), layout="constrained", sharey="col")
    tables = (
        ("elites drawn at random", over(found, "by_fill")),
        ("re-evaluations per elite", over(found, "by_count")),
    )
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
            chosen.out / folder_of(length),
            qdbench.make(TASK, episode_length=length),
            CONTENDERS[ALGORITHM],
            seed,
            scale,
        )
        for seed in chosen.seeds
        for length in LENGTHS
    ]
    return carry_out(planned, chosen.workers)


def table(chosen: argparse.Namespace) -> None:
    """Print the tables; draw the figure."""
    found = found_in(chosen.runs, chosen.kept)
    if chosen.png:
        draw(found, chosen.png)
    print(as_tables(found))


def parser() -> argparse.ArgumentParser:
    """Return the command line of this study."""
    return run_and_table(__doc__, run, table, lambda chosen: keep(chosen, lost))


if __name__ == "__main__":
    sys.exit(command(parser()))
