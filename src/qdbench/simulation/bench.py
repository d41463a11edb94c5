"""How fast a task is evaluated, beside the fastest its physics could possibly go.

The raw limit is `Batch.step` on the same model from the same starts with the very controls the
policies chose, on as many threads, and nothing else: no policies, no rewards, no observations.
Both are timed in turns, and the turns in alternating order, because a machine's speed drifts; ratios
are medians over such pairs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from qdbench import simulation
from qdbench.policy import Parameters
from qdbench.seeds import Seeds, evaluation_seeds, stream
from qdbench.simulation.native import quiet_and_single_threaded
from qdbench.simulation.slots import Slots
from qdbench.tasks.robot_task import RobotTask


@dataclass(frozen=True)
class Rates:
    """Medians over the repeats, per second."""

    evaluations: float
    control_steps: float
    physics_steps: float


@dataclass(frozen=True)
class Benchmark:
    """What `qdbench bench` measured for one task."""

    task: str
    workers: int
    solutions: int
    episode_length: int
    repeats: int
    as_lived: Rates
    """Random policies, episodes ending when the robot falls."""
    whole: Rates
    """The same with termination switched off: every episode has its full length."""
    raw: Rates
    """The limit for `whole`: recorded controls replayed through `Batch.step`."""
    ratio: float
    """whole / raw, median of the pairs."""
    ratio_quartiles: tuple[float, float]
    """How far the pairs scatter: what this machine could resolve."""
    ratio_one_worker: float
    scaling: float
    """Speed of `workers` workers over one worker's."""
    raw_scaling: float
    peak_memory_mb: float
    """The most memory the process used while it measured this task."""


def benchmark(
    task: RobotTask,
    *,
    workers: int,
    repeats: int = 7,
    on_repeat: Callable[[int, int], None] | None = None,
) -> Benchmark:
    """Measure one task on `workers` × 128 random policies."""
    forget_peak_memory()
    whole = replace(task, healthy=(float("-inf"), float("inf")))
    few = simulation.DEFAULT_SLOTS
    n = few * workers
    solutions = task.random_solutions(n, stream(0, "benchmark"))
    seeds = evaluation_seeds(0, n)
    controls = np.zeros((n, task.episode_length, task.robot.anatomy.n_actions), np.float32)
    simulation.evaluate(whole, solutions, seeds, workers=workers, record_controls=controls)
    starts = start_states(task, seeds)

    lived = np.sum(simulation.evaluate(task, solutions, seeds, workers=workers).steps)
    measures: dict[str, Callable[[], float]] = {  # what is compared stands side by side
        "lived": lambda: _seconds(task, solutions, seeds, workers),
        "raw all": lambda: replay(whole, starts, controls, workers)[0],
        "all": lambda: _seconds(whole, solutions, seeds, workers),
        "one": lambda: _seconds(whole, solutions[:few], seeds[:few], 1),
        "raw one": lambda: replay(whole, starts[:few], controls[:few], 1)[0],
    }
    seconds = _in_turns(measures, repeats, on_repeat)

    def pairs(top: str, bottom: str, scale: float = 1.0) -> NDArray[np.float64]:
        ratios: NDArray[np.float64] = scale * np.divide(seconds[top], seconds[bottom])
        return ratios

    def rates(key: str, steps: float) -> Rates:
        duration = median(seconds[key])
        return Rates(n / duration, steps / duration, steps * task.robot.physics_steps / duration)

    all_steps = n * task.episode_length
    of_raw = pairs("raw all", "all")
    low, high = (float(x) for x in np.quantile(of_raw, (0.25, 0.75)))
    return Benchmark(
        task=task.name,
        workers=workers,
        solutions=n,
        episode_length=task.episode_length,
        repeats=repeats,
        as_lived=rates("lived", float(lived)),
        whole=rates("all", all_steps),
        raw=rates("raw all", all_steps),
        ratio=float(np.median(of_raw)),
        ratio_quartiles=(low, high),
        ratio_one_worker=float(np.median(pairs("raw one", "one"))),
        scaling=float(np.median(pairs("one", "all", workers))),
        raw_scaling=float(np.median(pairs("raw one", "raw all", workers))),
        peak_memory_mb=peak_memory_mb(),
    )


def _in_turns(
    measures: dict[str, Callable[[], float]], repeats: int, on_repeat: Callable[[int, int], None] | None
) -> dict[str, list[float]]:
    """Measure one after the other, there and back again."""
    seconds: dict[str, list[float]] = {name: [] for name in measures}
    for repeat in range(repeats):
        for name in list(measures) if repeat % 2 == 0 else reversed(measures):
            seconds[name].append(measures[name]())
        if on_repeat is not None:
            on_repeat(repeat + 1, repeats)
    return seconds


def replay(
    task: RobotTask, starts: NDArray[np.float64], controls: NDArray[np.float32], workers: int
) -> tuple[float, list[Batch]]:
    """Step bare batches through recorded controls; return the seconds and where they ended."""
    n = len(starts) // workers
    model, physics_steps = task.robot.anatomy.model, task.robot.physics_steps
    batches = [Batch(model, n, nthread=1) for _ in range(workers)]
    for worker, batch in enumerate(batches):
        batch.state[:] = starts[worker * n : (worker + 1) * n]
    ready = threading.Barrier(workers + 1)

    def run(worker: int) -> None:
        batch = batches[worker]
        ctrl = batch.bind("ctrl")
        recorded = controls[worker * n : (worker + 1) * n].swapaxes(0, 1).astype(np.float64)
        ready.wait()
        for action in recorded:
            ctrl[:] = action
            batch.step(nstep=physics_steps)

    with quiet_and_single_threaded(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(run, worker) for worker in range(workers)]
        ready.wait()
        start = time.perf_counter()
        for future in futures:
            future.result()
        return time.perf_counter() - start, batches


def start_states(task: RobotTask, seeds: Seeds) -> NDArray[np.float64]:
    """Return the full state each episode starts from."""
    n = len(seeds)
    slots = Slots(task, n)
    nothing = np.zeros((n, task.n_parameters), np.float32)
    slots.load(range(n), range(n), nothing, [int(seed) for seed in seeds])
    state: NDArray[np.float64] = slots.batch.state.copy()
    return state


def peak_memory_mb() -> float:
    """Return the most memory this process has used, where Linux tells: since it was last forgotten."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def forget_peak_memory() -> None:
    """Let `peak_memory_mb` begin anew with what is in use now, where Linux can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _seconds(task: RobotTask, solutions: Parameters, seeds: Seeds, workers: int) -> float:
    start = time.perf_counter()
    simulation.evaluate(task, solutions, seeds, workers=workers)
    return time.perf_counter() - start
