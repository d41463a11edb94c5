"""How fast are the elites of a large archive re-evaluated, beside `qdbench bench`? In how much memory?

    python studies/correction_speed.py

2,000 random policies of ant_omni, 50 re-evaluations each, whole episodes of 50 steps, as `qdbench correct`
does it; the benchmark's whole episodes before and after, because a machine's speed drifts.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from qdbench import TASKS, Evaluated, stream, terms
from qdbench.archives.geometry import Grid
from qdbench.experiments.correcting import Corrector
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.plan import Plan
from qdbench.simulation.bench import benchmark, forget_peak_memory, peak_memory_mb
from qdbench.store.folder import RunFolder

ELITES, REEVALUATIONS, LENGTH = 2000, 50, 50


def main() -> None:
    whole = replace(TASKS["ant_omni"], ending=terms.NEVER, episode_length=LENGTH)
    workers = os.cpu_count() or 1
    numbers = np.arange(ELITES)[:, None]
    places = stream(0, "places").uniform(-30, 30, (ELITES, 2))
    solutions = whole.random_solutions(ELITES, stream(0, "elites"))
    elites = Evaluated(solutions, np.zeros(ELITES), places, numbers, numbers.astype(np.uint64))
    grid = Grid(whole.descriptor_bounds, whole.cells)
    plan = Plan(task=whole, task_source="ant_omni", algorithm="map_elites", options={}, seed=0)

    def benched() -> float:
        return benchmark(whole, workers=workers).full_length.control_steps

    before = benched()
    forget_peak_memory()
    memory = peak_memory_mb()
    with tempfile.TemporaryDirectory() as folder:
        corrector = Corrector(plan, RunFolder(Path(folder)), grid, REEVALUATIONS, Threads(workers)(whole))
        start = time.perf_counter()
        corrector.correct(ELITES, elites, np.arange(ELITES), Interrupt())
        rate = ELITES * REEVALUATIONS * LENGTH / (time.perf_counter() - start)
    beyond = peak_memory_mb() - memory
    after = benched()
    print(f"re-evaluation: {rate:,.0f} control steps/s; bench: {before:,.0f} before, {after:,.0f} after")
    print(
        f"ratio to their mean: {2 * rate / (before + after):.2f}; memory beyond the archive: {beyond:.0f} MB"
    )


if __name__ == "__main__":
    main()
