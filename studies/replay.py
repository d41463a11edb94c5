"""How long does it take to resume a long run, and how large is its log?

    python studies/replay.py --evaluations 1000000

A task without physics and 10,312 parameters, the ant's; MAP-Elites with and without its saved state, and
CMA-ME, which is always told again. A run of that many evaluations is made, then resumed for one more batch.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench import Evaluated, FunctionTask, Problem
from qdbench.algorithms.map_elites import MapElites
from qdbench.policy import Parameters

N_PARAMETERS = 10_312


def function(solutions: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = solutions[:, :100].astype(np.float64)
    return -np.square(x).sum(axis=1), x[:, :2] * 3


class ToldAgain:
    """MAP-Elites that saves nothing."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._inner = MapElites(problem, seed)

    def ask(self) -> Parameters:
        return self._inner.ask()

    def tell(self, evaluated: Evaluated) -> None:
        self._inner.tell(evaluated)

    def collection(self) -> Evaluated:
        return self._inner.collection()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("saved", "told", "cma_me"))
    chosen = parser.parse_args()
    task = FunctionTask(
        name="wide",
        function=function,
        n_parameters=N_PARAMETERS,
        descriptor_bounds=((-1, 1), (-1, 1)),
        cells=(100, 100),
        fitness_bounds=(-1000, 0),
        version=1,
        initial_bounds=(-0.1, 0.1),
    )
    print(
        "| algorithm | evaluations | run (s) | elites | told.log (MB) | checkpoint (MB) | resume (s) | CPU |"
    )
    print("|" + "---|" * 8, flush=True)
    chosen_ones: dict[str, Any] = {"saved": "map_elites", "told": ToldAgain, "cma_me": "cma_me"}
    for algorithm in [chosen_ones[chosen.only]] if chosen.only else chosen_ones.values():
        with tempfile.TemporaryDirectory() as out:
            begun = time.perf_counter()
            run = qdbench.run(task, algorithm, evaluations=chosen.evaluations, out=out)
            made = time.perf_counter() - begun
            sizes = [(run.path / name).stat().st_size / 1e6 for name in ("told.log", "checkpoint.npz")]
            done, elites = run.record.totals.evaluations, len(run.archive)
            begun, used = time.perf_counter(), time.process_time()
            qdbench.run(task, algorithm, evaluations=done + 1, out=Path(out))
            resumed, used = time.perf_counter() - begun, time.process_time() - used
            name = run.record.algorithm.name
            print(
                f"| {name} | {done:,} | {made:,.0f} | {elites:,} | {sizes[0]:.1f} | {sizes[1]:.1f} "
                f"| {resumed:,.1f} | {used:,.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
