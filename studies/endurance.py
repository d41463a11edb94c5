"""A million control steps of random policies per robot, termination off: does the physics ever diverge?

python studies/endurance.py [ROBOT...]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from qdbench import TASKS, evaluation_seeds, stream
from qdbench.terms import FEET_CONTACTS, FINAL_POSITION, NEVER

EPISODES, LENGTH = 1000, 1000


def main(*robots: str) -> None:
    print("| robot | control steps | diverged | farthest from the start (m) |")
    print("|" + "---|" * 4)
    for task in TASKS.values():
        if task.descriptor is FEET_CONTACTS and (not robots or task.robot.name in robots):
            whole = replace(
                task,
                ending=NEVER,
                episode_length=LENGTH,
                descriptor=FINAL_POSITION,
                cells=(2, 2),
                descriptor_bounds=((0.0, 1.0),) * 2,
            )
            solutions = whole.random_solutions(EPISODES, stream(0, "endurance"))
            solutions[EPISODES // 2 :] *= 3  # bold ones: saturated torques
            result = whole.evaluate(solutions, evaluation_seeds(0, EPISODES))
            farthest = np.nanmax(np.linalg.norm(result.descriptors, axis=1))
            print(
                f"| {task.robot.name} | {result.steps.sum():,} | {(~result.valid).sum()} | {farthest:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
