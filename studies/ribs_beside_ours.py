"""What ask and tell cost, ours beside pyribs': large solutions, 100 × 100 cells, half of them full.

python studies/ribs_beside_ours.py

All algorithms are told the same random fitness and descriptors and are timed in turns, so that whatever
else the machine does meets them alike; a ratio compares two neighbouring measurements.
"""

from __future__ import annotations

import time

import numpy as np

from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.algorithms.registry import build
from qdbench.archives.evaluated import Evaluated
from qdbench.policy import Policy
from qdbench.seeds import stream

NAMES = ("map_elites", "cvt_map_elites", "ribs_map_elites")
BATCH, REPEATS = 512, 25
POLICY = Policy((87, 64, 64, 8))  # the ant's controller
PROBLEM = Problem(
    n_parameters=POLICY.n_parameters,
    descriptor_bounds=((-30.0, 30.0), (-30.0, 30.0)),
    cells=(100, 100),
    fitness_bounds=(0.0, 1.0),
    random_solutions=POLICY.lecun_uniform,
)


def iterate(algorithm: Algorithm, iteration: int) -> tuple[float, float]:
    """Return the seconds of ask and of tell; descriptors are uniform over the left half of the box."""
    generator = stream(0, "study", iteration)
    start = time.perf_counter()
    solutions = algorithm.ask()
    asked = time.perf_counter() - start
    numbers = np.arange(iteration * BATCH, (iteration + 1) * BATCH)[:, None]
    fitness, descriptors = generator.random(BATCH), generator.uniform((-30, -30), (0, 30), (BATCH, 2))
    evaluated = Evaluated(solutions, fitness, descriptors, numbers, numbers.astype(np.uint64))
    start = time.perf_counter()
    algorithm.tell(evaluated)
    return asked, time.perf_counter() - start


def main() -> None:
    options = {"batch_size": BATCH, "initial": BATCH}
    algorithms = {name: build(name, PROBLEM, 0, options) for name in NAMES}
    iteration = 0
    while len(algorithms["map_elites"].collection()) < 4900:
        for algorithm in algorithms.values():
            iterate(algorithm, iteration)
        iteration += 1
    seconds = np.array(
        [[iterate(algorithms[name], i) for name in NAMES] for i in range(iteration, iteration + REPEATS)]
    )  # (repeats, algorithms, ask and tell)
    total = seconds.sum(axis=2)
    print(f"{REPEATS} paired repeats of {BATCH} solutions of {PROBLEM.n_parameters:,} parameters:\n")
    print("| algorithm | elites | ask (ms) | tell (ms) | ask + tell (ms) | times map_elites |")
    print("|" + "---|" * 6)
    for i, name in enumerate(NAMES):
        times = [spread(1e3 * values, 0) for values in (*seconds[:, i].T, total[:, i])]
        ratio = spread(total[:, i] / total[:, 0], 2)
        print(f"| {name} | {len(algorithms[name].collection()):,} | {' | '.join(times)} | {ratio} |")


def spread(values: np.ndarray[tuple[int], np.dtype[np.float64]], digits: int) -> str:
    """Return the median, and the range in brackets."""
    median, low, high = (f"{value:.{digits}f}" for value in (np.median(values), values.min(), values.max()))
    return f"{median} ({low} to {high})"


if __name__ == "__main__":
    main()
