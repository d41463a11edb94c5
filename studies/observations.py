"""How large the numbers are that policies observe: every block of every task.

    python studies/observations.py [TASK…] [--policies 256] [--steps 250] [--generations 20]

For random policies and for the elites of a short MAP-Elites run: mean, standard deviation over everything,
root mean square, the 99th percentile of the absolute values, and the share that a block clips (at ±1 before
its scale).
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench import RobotTask
from qdbench.simulation import TransitionRecorder
from qdbench.tasks.observation import CONTACT_WRENCHES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=[name for name in qdbench.TASKS if "_uni" in name])
    parser.add_argument("--policies", type=int, default=256)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--generations", type=int, default=20)
    chosen = parser.parse_args()
    print("| task | block | policies | scale | mean | deviation | RMS | 99 % of |x| | clipped |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in chosen.tasks:
        task = qdbench.make(name, episode_length=chosen.steps)
        fresh = task.random_solutions(chosen.policies, qdbench.stream(100, "observations"))
        for label, solutions in {
            "random": fresh,
            "evolved": evolved(task, chosen.generations)[: chosen.policies],
        }.items():
            observations = observed(task, solutions)
            start = 0
            for block in task.observation:
                end = start + block.n_values(task.anatomy)
                print(row(task, block, label, observations[:, start:end]), flush=True)
                start = end


def evolved(task: RobotTask, generations: int) -> NDArray[np.float32]:
    """Return the elites of a short run, the fittest first."""
    with tempfile.TemporaryDirectory() as out:
        elites = qdbench.run(task, evaluations=256 * generations, out=out, seed=100).archive.elites
    return elites.solutions[np.argsort(-elites.fitness, kind="stable")]


def observed(task: RobotTask, solutions: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return all observations of one episode of each solution."""
    recorder = TransitionRecorder(len(solutions))
    task.evaluate(solutions, qdbench.evaluation_seeds(100, len(solutions)), recorder=recorder)
    return recorder.transitions().observations


def row(task: RobotTask, block: qdbench.terms.Block, label: str, values: NDArray[np.float32]) -> str:
    size = np.abs(values)
    clipped = f"{np.mean(size >= abs(block.scale)):.2%}" if block.name == CONTACT_WRENCHES.name else "-"
    return (
        f"| {task.name} | {block.name} | {label} | {block.scale:g} | {values.mean():.2f} "
        f"| {values.std():.2f} | {np.sqrt(np.mean(values**2)):.2f} | {np.percentile(size, 99):.2f} "
        f"| {clipped} |"
    )


if __name__ == "__main__":
    main()
