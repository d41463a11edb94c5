"""How does MAP-Elites do in larger search spaces? The same tasks with smaller and larger networks.

    python -m studies.network_size run --out results/standard
    python -m studies.network_size table --runs results/standard --png network_size.png

The tasks' own networks, (64, 64), are those of studies/discrimination.py: in the same folder they are not run
again.
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
    measured,
    run_and_table,
    sized,
    standard,
)

TASKS = ("walker_uni", "ant_omni")
SIZES = ((8,), (16, 16), (64, 64), (256, 256))
SHOWN = ("coverage", "corrected_qd_score", "return_rate")


@dataclass(frozen=True)
class Point:
    """MAP-Elites on one task with networks of one size."""

    task: str
    hidden: tuple[int, ...]
    n_parameters: int
    n_seeds: int
    values: dict[str, Interval]


def folder_of(out: Path, task: str, hidden: tuple[int, ...]) -> Path:
    """Return the results folder: `out` for the task's own networks, else one below it."""
    own = hidden == qdbench.TASKS[task].hidden
    return out if own else out / f"hidden-{'x'.join(map(str, hidden))}"


def points(runs: Path) -> list[Point]:
    """Return what is finished."""
    found = []
    for name in TASKS:
        for hidden in SIZES:
            task = measured(folder_of(runs, name, hidden) / name / "map_elites")
            if task is not None:
                of_runs = task.measured_runs
                values = {
                    metric: interval(np.array([run.values.get(metric, np.nan) for run in of_runs]))
                    for metric in SHOWN
                }
                n_parameters = of_runs[0].run.record.task.n_parameters
                found.append(Point(name, hidden, n_parameters, len(of_runs), values))
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
            panel.set(xscale="log", xlabel="parameters", title=f"{task}: {_title(metric)}")
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
            folder_of(chosen.out, task, hidden),
            qdbench.make(task, episode_length=scale.episode_length, hidden=hidden),
            CONTENDERS["map_elites"],
            seed,
            standard(task, scale) if hidden == qdbench.TASKS[task].hidden else scale,
        )
        for seed in chosen.seeds
        for task in TASKS
        for hidden in SIZES
    ]
    return carry_out(planned, chosen.workers)


def table(chosen: argparse.Namespace) -> None:
    """Print the table; draw the figure."""
    found = points(chosen.runs)
    if chosen.png:
        draw(found, chosen.png)
    print(as_table(found))


if __name__ == "__main__":
    sys.exit(command(run_and_table(__doc__, run, table)))
