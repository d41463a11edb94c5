"""Small runs of a noisy function, for the tests of comparisons; and runs that are changed afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench import Evaluations, FunctionTask
from qdbench.analysis.compare import Comparison, Entry
from qdbench.store.files import read_json, write_json
from running import carry_out

ALGORITHMS = ("cvt_map_elites", "map_elites", "map_elites_unstructured")
TASKS = ("toy_a", "toy_b")
SEEDS = range(4)
BOUNDS = (-2.0, 12.0)


def function(solutions: NDArray[np.float32], seeds: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Noise from the seeds; one evaluation in a hundred is invalid."""
    x = solutions.astype(np.float64)
    noise = np.stack([(seeds >> np.uint64(i)) % np.uint64(1000) for i in (3, 20, 40)], axis=1) / 1e3 - 0.5
    fitness = 10 - np.square(x - 0.2).sum(axis=1) + noise[:, 0]
    fitness[seeds % np.uint64(100) == 0] = np.nan
    return fitness, x[:, :2] + 0.2 * noise[:, 1:]


def toy(name: str, **changed: Any) -> FunctionTask:
    task = FunctionTask(
        name=name,
        function=function,
        n_parameters=5,
        descriptor_bounds=((-0.9, 0.8), (-1.0, 1.1)),
        cells=(9, 7) if name == "toy_a" else (6, 6),
        fitness_bounds=BOUNDS,
        noisy=True,
    )
    return replace(task, **changed)


LENGTH = 300


class Mortal(FunctionTask):
    """Episodes of 300 steps; by its seed, one evaluation in four ends early."""

    def options(self) -> dict[str, Any]:
        return {**super().options(), "episode_length": LENGTH}

    def evaluate(self, solutions: Any, seeds: Any, **how: Any) -> Evaluations:
        found, numbers = super().evaluate(solutions, seeds, **how), np.asarray(seeds, np.uint64)
        steps = np.where(numbers % np.uint64(4) == 0, numbers % np.uint64(LENGTH), LENGTH)
        return replace(found, steps=steps.astype(np.int64))


def mortal(**changed: Any) -> Mortal:
    return Mortal(**{**vars(toy("mortal")), "score_interval": (8.0, 9.5), **changed})


def make(
    path: Path,
    task: FunctionTask,
    algorithm: str = "map_elites",
    seed: int = 0,
    *,
    name: str = "",
    corrections: int = 2,
    reevaluations: int = 6,
    evaluations: int = 200,
    **options: str,
) -> Path:
    return carry_out(
        task, algorithm, seed, path=path, name=name, source="toy", options={"batch_size": "50"} | options,
        corrections=corrections, reevaluations=reevaluations, evaluations=evaluations,
    )  # fmt: skip


def make_all(out: Path) -> Path:
    """Four replications of three algorithms on two tasks."""
    for task in TASKS:
        for algorithm in ALGORITHMS:
            for seed in SEEDS:
                make(out / task / algorithm / f"seed-{seed}", toy(task), algorithm, seed)
    return out


def entries(found: Comparison, **wanted: Any) -> list[Entry]:
    all_of_them = (entry for task in found.tasks for entry in task.entries)
    return [e for e in all_of_them if all(getattr(e, key) == value for key, value in wanted.items())]


def edited(path: Path, **changes: Any) -> None:
    """Change a run.json as if the run had been another; `a__b=x` changes an entry of an entry."""
    record = read_json(path / "run.json")
    for key, value in changes.items():
        *parents, last = key.split("__")
        place: Any = record
        for parent in parents:
            place = place[int(parent) if parent.isdecimal() else parent]
        place[last] = value
    write_json(path / "run.json", record)
