"""How does MAP-Elites do in larger search spaces? The same tasks with smaller and larger networks.

    python -m studies.network_size run --out results/network_size
    python -m studies.network_size table --runs results/network_size --png network_size.png

The tasks' own networks, (64, 64), are those of the shipped reference results: they are not run again. Runs
of several machines: `keep --runs DIR --kept DIR`, then `table --kept DIR`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import qdbench
from qdbench.metrics.metric import METRICS
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
from studies.kept import gathered, keep, shipped

TASKS = ("walker_uni", "ant_omni")
SIZES = ((8,), (16, 16), (64, 64), (256, 256))
ALGORITHM = "map_elites"
SHOWN = ("coverage", "corrected_qd_score", "return_rate")


@dataclass(frozen=True)
class Point:
    """MAP-Elites on one task with networks of one size."""

    task: str
    hidden: tuple[int, ...]
    n_parameters: int
    n_seeds: int
    values: dict[str, Interval]


def is_own(task: str, hidden: tuple[int, ...]) -> bool:
    """Whether these are the task's own networks."""
    return hidden == qdbench.TASKS[task].hidden


def folder_of(task: str, hidden: tuple[int, ...]) -> str:
    """Return the folder of one task with networks of one size."""
    return f"{task}-{'x'.join(map(str, hidden))}"


def points(runs: Path, kept: Path | None = None) -> list[Point]:
    """Return what is finished."""
    made = gathered(runs, kept)
    found = []
    for task in TASKS:
        for hidden in SIZES:
            every = shipped(task)["runs"] if is_own(task, hidden) else made.get(folder_of(task, hidden), {})
            of_runs = list(every.get(ALGORITHM, {}).values())
            if of_runs:
                columns = {name: np.array([run[name] for run in of_runs], np.float64) for name in SHOWN}
                values = {name: interval(column) for name, column in columns.items()}
                n_parameters = qdbench.make(task, hidden=hidden).n_parameters
                found.append(Point(task, hidden, n_parameters, len(of_runs), values))
    return found


def as_table(found: list[Point]) -> str:
    """Return a Markdown table: means over seeds with their intervals."""
    header = ["task", "hidden layers", "parameters", "seeds", *map(_title, SHOWN)]
    rows = [
        [
            one.task,
            ", ".join(map(str, one.hidden)),
            f"{one.n_parameters:,}",
            str(one.n_seeds),
            *(one.values[metric].words(".1%" if metric == "return_rate" else ",.4g") for metric in SHOWN),
        ]
        for one in found
    ]
    return markdown(header, rows)


def draw(found: list[Point], png: Path) -> None:
    """Draw all three against the number of parameters."""
    import matplotlib.pyplot as plt

    shape = len(TASKS), len(SHOWN)
    figure, axes = plt.subplots(*shape, figsize=(10, 5.6), layout="constrained", sharex=True)
    for panels, task in zip(axes, TASKS, strict=True):
        some = [one for one in found if one.task == task]
        x = [one.n_parameters for one in some]
        for panel, metric in zip(panels, SHOWN, strict=True):
            values = [one.values[metric] for one in some]
            panel.plot(x, [one.mean for one in values], "o-")
            panel.vlines(x, [one.low for one in values], [one.high for one in values])
            words = metric.replace("_", " ").replace("qd", "QD")
            panel.set(xscale="log", xlabel="parameters", ylabel=words, title=task)
            panel.set_ylim(bottom=0)
    figure.savefig(png, dpi=110)
    plt.close(figure)


def _title(metric: str) -> str:
    return METRICS[metric].title if metric in METRICS else metric


def run(chosen: argparse.Namespace) -> int:
    """Make the runs, seed by seed."""
    scale = sized(STANDARD, chosen)
    planned = [
        Planned(
            chosen.out / folder_of(task, hidden),
            qdbench.make(task, episode_length=scale.episode_length, hidden=hidden),
            CONTENDERS[ALGORITHM],
            seed,
            scale,
        )
        for seed in chosen.seeds
        for task in TASKS
        for hidden in SIZES
        if not is_own(task, hidden)
    ]
    return carry_out(planned, chosen.workers)


def table(chosen: argparse.Namespace) -> None:
    """Print the table; draw the figure."""
    found = points(chosen.runs, chosen.kept)
    if chosen.png:
        draw(found, chosen.png)
    print(as_table(found))


if __name__ == "__main__":
    sys.exit(command(run_and_table(__doc__, run, table, keep)))
