"""The cost of ask and tell of the algorithms for noisy tasks, in times of map_elites'.

    python -m studies.ask_tell

Batches of 256 solutions with 10,312 parameters (ant_omni), 10,000 cells, outcomes that are random numbers:
a filled cell for almost every solution. Evaluations are not timed. archive_sampling asks for its whole
container, so its cost is also given per evaluation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from qdbench import Evaluated, Problem, stream
from qdbench.algorithms.registry import build
from studies.campaign import markdown

PARAMETERS, BATCH = 10_312, 256
NAMES = (
    "map_elites", "me_random", "me_sampling", "me_weighted", "me_delta", "deep_grid", "adaptive_sampling",
    "archive_sampling", "parallel_adaptive_sampling", "extract_me",
)  # fmt: skip
OPTIONS = {key: {"depth": 8} for key in ("deep_grid", "extract_me", "adaptive_sampling")}
"""As on ant_omni, where 4 GB allow a depth of 9."""
OPTIONS |= {key: {"initial": 64} for key in ("me_sampling", "me_weighted", "me_delta")}
"""Eight iterations of the usual 8 solutions: offspring are timed, not random solutions."""


def problem(n_parameters: int) -> Problem:
    return Problem(
        n_parameters=n_parameters,
        descriptor_bounds=((0.0, 1.0), (0.0, 1.0)),
        cells=(100, 100),
        fitness_bounds=(0.0, 1.0),
        random_solutions=lambda n, rng: rng.standard_normal((n, n_parameters), np.float32),
    )


def measured(name: str, n_parameters: int, iterations: int) -> tuple[float, float]:
    """Return the median CPU seconds of ask + tell over the second half, and per evaluation."""
    algorithm = build(name, problem(n_parameters), 1, {"batch_size": BATCH, **OPTIONS.get(name, {})})
    seconds, per_evaluation, first = [], [], 0
    for i in range(iterations):
        start = time.process_time()
        solutions = algorithm.ask()
        asked = time.process_time() - start
        n, rng = len(solutions), stream(0, "outcomes", i)
        numbers = np.arange(first, first + n)[:, None]
        # a solution has a place of its own, and noise about it
        place = np.modf(np.abs(solutions[:, :2].astype(np.float64)) * 1e3)[0]
        told = Evaluated(
            solutions,
            place[:, 0] + rng.normal(0, 0.1, n),
            place + rng.normal(0, 0.02, (n, 2)),
            numbers,
            numbers.astype(np.uint64),
        )
        first += n
        start = time.process_time()
        algorithm.tell(told)
        seconds.append(asked + time.process_time() - start)
        per_evaluation.append(seconds[-1] / n)
    half = iterations // 2
    return float(np.median(seconds[half:])), float(np.median(per_evaluation[half:]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--parameters", type=int, default=PARAMETERS)
    parser.add_argument("--algorithms", nargs="+", default=NAMES, choices=NAMES)
    chosen = parser.parse_args(arguments)
    base = measured("map_elites", chosen.parameters, chosen.iterations)
    rows = []
    for name in chosen.algorithms:
        found = measured(name, chosen.parameters, chosen.iterations)
        ratios = [f"{mine / theirs:.2f}" for mine, theirs in zip(found, base, strict=True)]
        rows.append([name, f"{found[0] * 1e3:.1f}", *ratios])
    print(markdown(["algorithm", "ask + tell (ms)", "ratio to map_elites", "ratio per evaluation"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
