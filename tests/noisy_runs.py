"""Small runs of noisy functions in one to six descriptor dimensions, for the tests of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench import FunctionTask
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
