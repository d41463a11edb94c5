"""The tables of studies/discrimination.py for the tasks as they were before they were changed.

    git worktree add ../before 81275d6 && make -C ../before .venv/ready
    python -m studies.before run ../before --out results/before
    python -m studies.before table --runs results/before
    python -m studies.before picture --runs results/before --after results/standard/runs --png before.png

That commit is the last with version 1 of the tasks (ant: 2). Its own code makes the runs, with its own
`.venv`. Only the newest version of a task can be run, so its files are read here in plain NumPy. All
contenders are put on the task's grid. Lives were not stored then.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench import Grid
from qdbench.metrics.returns import Elites as Stored
from qdbench.metrics.returns import returned
from qdbench.metrics.robustness import Reevaluations
from qdbench.metrics.scores import scores
from qdbench.paper.protocol import Contender
from studies.campaign import CONTENDERS, STANDARD, Values, command, options_of_run, seed_list, sized
from studies.digests import GROWN, SHOWN, Digest, Digests, Elites, ordered
from studies.discrimination import TASKS, of_task, tables

PICTURED = ("humanoid_omni", "hexapod_omni")


@dataclass(frozen=True)
class OldRun:
    """A finished run of the old code; the entries that are read here have the same names now."""

    path: Path

    @cached_property
    def record(self) -> dict[str, Any]:
        """What run.json says; nothing if there is none."""
        path = self.path / "run.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    @property
    def is_finished(self) -> bool:
        return self.record.get("status") == "finished"

    @property
    def task(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record["task"]
        return found

    @cached_property
    def grid(self) -> Grid:
        return Grid(self.task["descriptor_bounds"], self.task["cells"])

    @cached_property
    def curves(self) -> dict[str, Values]:
        """The columns of metrics.csv."""
        with (self.path / "metrics.csv").open() as file:
            rows = list(csv.DictReader(file))
        return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}

    @cached_property
    def again(self) -> tuple[Stored, Reevaluations]:
        """The final elites and their re-evaluations."""
        with np.load(self.path / "corrected.npz") as file:
            rows = file["point_0_rows"]
            elites = Stored(file["point_0_fitness"], file["point_0_descriptors"])
            return elites, Reevaluations(file["fitness"][rows], file["descriptors"][rows])

    def stored(self) -> Elites:
        """Return the final elites, the best of every cell of the grid."""
        with np.load(self.path / "archive.npz") as file:
            return best_per_cell(self.grid.cells(file["descriptors"]), file["fitness"])

    def corrected(self) -> Elites:
        """Return the corrected archive: every elite at its mean descriptor, with its mean fitness."""
        fitness, descriptors = self.again[1].valid().means()
        return best_per_cell(self.grid.cells(descriptors), fitness)

    def return_rate(self) -> float:
        """Return the share of re-evaluations in the elite's own cell."""
        return float(returned(self.grid, *self.again).mean())

    def digest(self, contender: str, seed: int) -> Digest:
        """Return what the study needs of a run; not lives."""
        corrected, curves = self.corrected(), np.stack([self.curves[f"grid_{name}"] for name in GROWN])
        values = dict(zip(GROWN, curves[:, -1].tolist(), strict=True)) | {
            "alive_share": np.nan,
            "corrected_qd_score": scores(corrected.fitness, self.task["fitness_bounds"]).qd_score,
            "max_fitness": float(self.curves["max_fitness"][-1]),
            "return_rate": self.return_rate(),
        }
        assert set(values) == set(SHOWN)
        return Digest(contender, seed, values, self.curves["evaluations"], curves, self.stored(), corrected)


def best_per_cell(cells: NDArray[np.int64], fitness: Values) -> Elites:
    """Return the filled cells and the highest fitness in each."""
    filled, place = np.unique(cells, return_inverse=True)
    best = np.full(len(filled), -np.inf)
    np.maximum.at(best, place, fitness)
    return Elites(filled, best)


def summary(runs: Path, tasks: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Return all numbers of the study, by task, in the form of studies/discrimination.py."""
    found = {}
    for task in tasks:
        planned = {
            (name, seed): OldRun(runs / task / contender.label / f"seed-{seed}")
            for name, contender in CONTENDERS.items()
            for seed in seeds
        }
        done = {key: run for key, run in planned.items() if run.is_finished}
        missing = [f"{name}, seed {seed}" for name, seed in planned if (name, seed) not in done]
        found[task] = {"missing": missing, **(old_task(done) if done else {})}
    return found


def old_task(runs: dict[tuple[str, int], OldRun]) -> dict[str, Any]:
    """Return the numbers and verdicts of one task; runs by contender and seed."""
    first = next(iter(runs.values()))
    return of_task(
        Digests(
            interval=tuple(first.task["fitness_bounds"]),
            shape=first.grid.shape,
            has_border=False,  # not asked of the old tasks
            runs=ordered(run.digest(*key) for key, run in runs.items()),
        )
    )


def commands(chosen: argparse.Namespace) -> Iterator[list[str]]:
    """Return the commands of the old code, one per task, seed and contender."""
    scale = sized(STANDARD, chosen)
    for task in chosen.tasks:
        for seed in chosen.seeds:
            for contender in CONTENDERS.values():
                words = [
                    f"{chosen.checkout / '.venv/bin/qdbench'}", "run", task, *options_of(contender),
                    "--seed", f"{seed}", "--evaluations", f"{scale.evaluations}",
                    "--episode-length", f"{scale.episode_length}", "--corrections", "1",
                    "--reevaluations", f"{scale.reevaluations}", "--out", f"{chosen.out}",
                ]  # fmt: skip
                yield words + (["--workers", f"{chosen.workers}"] if chosen.workers else [])


def options_of(contender: Contender) -> list[str]:
    """Return a contender as options of `qdbench run`."""
    options = ["--algorithm", contender.algorithm]
    options += [word for name, value in contender.settings for word in ("--set", f"{name}={value}")]
    return options + (["--name", contender.name] if contender.name else [])


def run(chosen: argparse.Namespace) -> int:
    """Make the runs with the old code; finished ones are skipped by it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # its own code
    return sum(subprocess.run(words, env=environment).returncode != 0 for words in commands(chosen))


def picture(chosen: argparse.Namespace) -> None:
    """Draw archives of MAP-Elites before and after: the box of the task, in metres."""
    import matplotlib.pyplot as plt

    shape = 2, len(PICTURED)
    figure, axes = plt.subplots(*shape, figsize=(4.2 * shape[1], 7.6), layout="constrained", squeeze=False)
    for column, task in zip(axes.T, PICTURED, strict=True):
        for panel, folder, when in zip(column, (chosen.runs, chosen.after), ("before", "after"), strict=True):
            run = OldRun(folder / task / "map_elites" / "seed-0")
            elites = run.stored()
            values = np.full(run.grid.n_cells, np.nan)
            values[elites.cells] = elites.fitness / run.task["options"]["episode_length"]
            image = panel.pcolormesh(
                *(
                    np.linspace(a, b, n + 1)
                    for (a, b), n in zip(run.grid.bounds, run.grid.shape, strict=True)
                ),
                values.reshape(run.grid.shape).T,
            )
            figure.colorbar(image, ax=panel, label="fitness per step")
            about = f"{task}, {when}\n{len(elites.cells):,} of {run.grid.n_cells:,} cells"
            panel.set(title=about, xlabel="x (m)", ylabel="y (m)", aspect="equal")
    figure.savefig(chosen.png, dpi=90)
    plt.close(figure)


def parser() -> argparse.ArgumentParser:
    """Return the command line of this study."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subs = found.add_subparsers(required=True)
    running, reading = subs.add_parser("run"), subs.add_parser("table")
    running.add_argument("checkout", type=Path, metavar="CHECKOUT", help="the old code, with its own .venv")
    options_of_run(running, "0-1")
    running.set_defaults(action=run)
    reading.add_argument("--runs", type=Path, required=True, metavar="DIR")
    reading.add_argument("--seeds", type=seed_list, default=seed_list("0-1"), metavar="0-1")
    reading.set_defaults(
        action=lambda chosen: print(tables(summary(chosen.runs, chosen.tasks, chosen.seeds)))
    )
    drawing = subs.add_parser("picture")
    for name in ("--runs", "--after"):
        drawing.add_argument(name, type=Path, required=True, metavar="DIR")
    drawing.add_argument("--png", type=Path, required=True, metavar="FILE")
    drawing.set_defaults(action=picture)
    for sub in (running, reading):
        sub.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS, metavar="TASK")
    return found


if __name__ == "__main__":
    sys.exit(command(parser()))
