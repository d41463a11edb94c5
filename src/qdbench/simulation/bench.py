"""The speed of evaluations, compared with the highest speed that MuJoCo allows.

The raw limit calls `Batch.step` on the same model, from the same starts, with the actions that the policies
chose, on as many threads. It has no policies, rewards or observations. The speed of a machine changes with
time, so both are measured in turns, in alternating order. Ratios are medians over such pairs.
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
from qdbench.simulation.bodies import Bodies
from qdbench.simulation.engine import MujocoEngine
from qdbench.simulation.native import quiet_and_single_threaded
from qdbench.tasks.endings import NEVER
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
    terminating: Rates
    """Random policies; episodes end when the robot falls."""
    full_length: Rates
    """The same policies with early endings switched off."""
    raw: Rates
    """The upper limit of `full_length`: its recorded actions, replayed through `Batch.step`."""
    ratio: float
    """full_length / raw, median of the pairs."""
    ratio_quartiles: tuple[float, float]
    """Quartiles of the pairs: how precise the ratio is on this machine."""
    ratio_one_worker: float
    scaling: float
    """Speed of `workers` workers divided by the speed of one."""
    raw_scaling: float
    peak_memory_mb: float
    """Peak memory of the process while it measured this task."""


def benchmark(
    task: RobotTask,
    *,
    workers: int,
    repeats: int = 7,
    on_repeat: Callable[[int, int], None] | None = None,
) -> Benchmark:
    """Measure one task on `workers` × 128 random policies."""
    forget_peak_memory()
    whole = replace(task, ending=NEVER)
    few = simulation.DEFAULT_SLOTS
    n = few * workers
    solutions = task.random_solutions(n, stream(0, "benchmark"))
    seeds = evaluation_seeds(0, n)
    recorder = simulation.ControlRecorder()
    simulation.evaluate(whole, solutions, seeds, workers=workers, recorder=recorder)
    controls = recorder.controls
    starts = start_states(task, seeds)

    made = np.sum(simulation.evaluate(task, solutions, seeds, workers=workers).steps)
    measures: dict[str, Callable[[], float]] = {  # what is compared is measured one after the other
        "terminating": lambda: _seconds(task, solutions, seeds, workers),
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
        terminating=rates("terminating", float(made)),
        full_length=rates("all", all_steps),
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
    """Measure in turns: forwards, then backwards, and so on."""
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
    """Step MuJoCo batches through recorded actions; return the seconds and the batches."""
    n = len(starts) // workers
    model, physics_steps = task.anatomy.stepped_model, task.robot.physics_steps
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
    """Return the complete state in which each episode starts."""
    engine = MujocoEngine(task.anatomy, task.fields, len(seeds))
    Bodies(task, engine, len(seeds)).load(np.arange(len(seeds)), seeds.tolist())
    state: NDArray[np.float64] = engine.batch.state.copy()
    return state


def peak_memory_mb() -> float:
    """Return the peak memory of this process; on Linux, since `forget_peak_memory` was called."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def forget_peak_memory() -> None:
    """Reset the peak memory to what is used now; only Linux can do this."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _seconds(task: RobotTask, solutions: Parameters, seeds: Seeds, workers: int) -> float:
    start = time.perf_counter()
    simulation.evaluate(task, solutions, seeds, workers=workers)
    return time.perf_counter() - start
