"""Small runs of noisy functions in one to six descriptor dimensions, for the tests of figures.

At the end, three algorithms that are measured on other archives than ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench import FunctionTask
from qdbench.algorithms.contract import Problem, SavedState
from qdbench.algorithms.map_elites import MapElites
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Grid
from qdbench.policy import Parameters
from qdbench.seeds import bulk_stream
from running import carry_out

SHAPES = {1: (20,), 2: (8, 7), 4: (3, 2, 4, 2), 6: (2, 2, 2, 2, 2, 2)}


ALGORITHMS = ("map_elites", "cvt_map_elites", "random_search", "map_elites_unstructured")


def noisy(dimensions: int, *, highest: float = 5.0) -> FunctionTask:
    """Noise on fitness and descriptors; one re-evaluation in many is invalid."""

    def function(solutions: NDArray[np.float32], seeds: NDArray[np.uint64]) -> tuple[Any, Any]:
        x = solutions.astype(np.float64)
        noise = np.stack([np.random.default_rng(int(seed)).normal(0, 1, 1 + dimensions) for seed in seeds])
        fitness = highest - np.square(x - 0.2).sum(axis=1) + 0.3 * np.abs(noise[:, 0]) * np.sign(highest)
        fitness[noise[:, 0] > 3.5] = np.nan
        return fitness, x[:, :dimensions] + 0.2 * noise[:, 1:]

    return FunctionTask(
        name=f"noisy{dimensions}",
        function=function,
        n_parameters=7,
        descriptor_bounds=((-1.0, 1.0),) * dimensions,
        cells=SHAPES[dimensions],
        fitness_bounds=(-20.0, 10.0),
        noisy=True,
    )


def run(
    out: Path,
    task: Any,
    algorithm: str,
    seed: int,
    *,
    corrections: int = 3,
    jobs: int = 1,
    batch_size: int = 40,
    reevaluations: int = 5,
) -> Path:
    return carry_out(
        task, algorithm, seed, out=out, options={"batch_size": str(batch_size)}, jobs=jobs,
        corrections=corrections, reevaluations=reevaluations,
    )  # fmt: skip


class SmallGrid(MapElites):
    """It has a grid of its own, which is not the task's."""

    def _empty_archive(self, problem: Problem) -> Archive:
        return Archive(Grid(problem.descriptor_bounds, (3, 3)), problem.n_parameters)


class KeepsAll:
    """It has no archive, and hands over all it ever found, several solutions of a cell."""

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 40) -> None:
        self._problem, self._seed, self._batch_size = problem, seed, batch_size
        columns = np.empty((0, problem.n_parameters), np.float32), np.empty(0)
        dimensions = len(problem.cells)
        self._found = Evaluated(
            *columns, np.empty((0, dimensions)), np.empty((0, 1), np.int64), np.empty((0, 1), np.uint64)
        )

    def ask(self) -> Parameters:
        return self._problem.random_solutions(self._batch_size, bulk_stream(self._seed, len(self._found)))

    def tell(self, evaluated: Evaluated) -> None:
        found, new = vars(self._found), vars(evaluated[evaluated.valid])
        self._found = Evaluated(**{name: np.concatenate([found[name], new[name]]) for name in found})

    def collection(self) -> Evaluated:
        return self._found

    def state(self) -> SavedState:
        return vars(self._found)

    def restore(self, state: SavedState) -> None:
        self._found = Evaluated(**state)


class WideGrid(MapElites):
    """Its grid has the task's cells, on a box that is ten times as wide."""

    def _empty_archive(self, problem: Problem) -> Archive:
        wide = [(10 * low, 10 * high) for low, high in problem.descriptor_bounds]
        return Archive(Grid(wide, problem.cells), problem.n_parameters)


TOY_SHAPES = {1: (30,), 2: (10, 8), 3: (4, 3, 2), 4: (3, 2, 4, 2), 6: (2, 3, 2, 2, 3, 2)}


def toy(dimensions: int) -> FunctionTask:
    """Descriptors a little wider than the box; one solution in twenty is invalid."""

    def function(solutions: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]:
        x = solutions.astype(np.float64)
        fitness = -np.square(x - 0.2).sum(axis=1)
        fitness[x[:, -1] > 0.9] = np.nan
        return fitness, x[:, :dimensions] * np.arange(1, dimensions + 1)

    return FunctionTask(
        name=f"toy{dimensions}",
        version=1,
        function=function,
        n_parameters=7,
        descriptor_bounds=tuple((-0.9 * i, 0.8 * i) for i in range(1, dimensions + 1)),
        cells=TOY_SHAPES[dimensions],
        fitness_bounds=(-10, 0),
    )
