"""What does the suite cost? CPU seconds by seeds, evaluations and tasks: they should grow linearly.

    python studies/suite_cost.py

CPU seconds of this process and its threads, so other work on the machine hardly matters. The last column is
1 if the cost is exactly linear: for seeds and evaluations the cost per unit, relative to the first row; for
tasks the cost of several together, relative to the sum of each alone. A fixed part (figures, the page) makes
it fall.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace

import qdbench
from qdbench.paper.suite_scales import SUITE_SCALES

TASKS = ("hopper_uni", "walker_uni", "halfcheetah_uni", "ant_uni")


def cpu_seconds(tasks: Sequence[str], n_seeds: int, times_evaluations: int) -> tuple[float, int]:
    """Return the CPU seconds of one suite, and the control steps it simulated."""
    quick = SUITE_SCALES["quick"]
    sizes = {
        name: replace(size, evaluations=size.evaluations * times_evaluations)
        for name, size in quick.tasks.items()
    }
    SUITE_SCALES["quick"] = replace(quick, tasks=sizes)
    try:
        with tempfile.TemporaryDirectory() as out:
            start = time.process_time()
            found = qdbench.suite("map_elites", tasks=tasks, seeds=range(100, 100 + n_seeds), out=out)
            seconds = time.process_time() - start
            steps = [one.run.record.totals.steps for _, one in found.measured.runs]
    finally:
        SUITE_SCALES["quick"] = quick
    return seconds, sum(steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--task", default="halfcheetah_uni", choices=qdbench.TASKS)
    task = parser.parse_args().task
    cpu_seconds([task], 1, 1)  # imports, caches, fonts
    print("| varied | value | CPU seconds | steps of the runs | relative to linear |")
    print("|---|---|---|---|---|")
    for varied in ("seeds", "times 2,048 evaluations"):
        first = 0.0
        for n in (1, 2, 4):
            sizes = (n, 1) if varied == "seeds" else (1, n)
            seconds, steps = cpu_seconds([task], *sizes)
            first = first or seconds
            print(f"| {varied} | {n} | {seconds:.1f} | {steps:,} | {seconds / n / first:.2f} |", flush=True)
    alone = [cpu_seconds([name], 1, 1)[0] for name in TASKS]
    for n in range(1, len(TASKS) + 1):
        seconds, steps = cpu_seconds(TASKS[:n], 1, 1)
        print(f"| tasks | {n} | {seconds:.1f} | {steps:,} | {seconds / sum(alone[:n]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
