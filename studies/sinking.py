"""How deep do the feet sink into the floor?

    python studies/sinking.py halfcheetah ant

Policies: random ones, and the elites of a short run of MAP-Elites on the robot's uni task. A sample is a foot
below the floor at the end of a control step; its depth is that of the lowest of its spheres.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench import TASKS, RobotTask, evaluation_seeds, run, stream
from qdbench.robots import ROBOTS
from qdbench.simulation.bodies import Step
from qdbench.tasks.state import State


class Poses:
    """Records qpos after every control step."""

    def begin(self, task: RobotTask, n_solutions: int) -> None:
        self.qpos = np.full((n_solutions, task.episode_length, task.anatomy.model.nq), np.nan)

    def start(self, solutions: NDArray[np.intp], state: State, observations: NDArray[np.float32]) -> None:
        pass

    def step(self, solutions: NDArray[np.intp], step: Step) -> None:
        self.qpos[solutions, step.numbers - 1] = step.state.qpos


def depths(task: RobotTask, solutions: NDArray[np.float32]) -> NDArray[np.float64]:
    """In metres, of every foot below the floor in every step."""
    poses = Poses()
    task.evaluate(solutions, evaluation_seeds(7, len(solutions)), recorder=poses)
    model, lowest = task.anatomy.model, []
    data = mujoco.MjData(model)
    for qpos in poses.qpos.reshape(-1, model.nq):
        if not np.isnan(qpos[0]):  # NaN: after the end of an episode
            data.qpos[:] = qpos
            mujoco.mj_kinematics(model, data)
            bottoms = data.geom_xpos[:, 2] - model.geom_size[:, 0]
            lowest += [min(bottoms[geom] for geom in geoms) for geoms in task.anatomy.foot_geoms]
    below = -np.array(lowest)
    return below[below > 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("robots", nargs="*", default=list(ROBOTS))
    parser.add_argument("--episode-length", type=int, default=100)
    parser.add_argument("--policies", type=int, default=200)
    parser.add_argument("--generations", type=int, default=8, help="of 256 evaluations")
    chosen = parser.parse_args()
    print(
        "| robot | radius (mm) | behaviour | median (mm) | 95th percentile | deepest |\n" + "|---" * 6 + "|"
    )
    for name in chosen.robots:
        task = replace(TASKS[f"{name}_uni"], episode_length=chosen.episode_length)
        robot = task.anatomy
        radius = 1000 * robot.model.geom_size[robot.foot_geoms[0][0], 0]
        with tempfile.TemporaryDirectory() as out:
            elites = run(task, evaluations=256 * chosen.generations, out=out).archive.elites.solutions
        some = elites[np.linspace(0, len(elites) - 1, min(chosen.policies, len(elites))).astype(int)]
        kinds = {"random": task.random_solutions(chosen.policies, stream(1, "study")), "evolved": some}
        for kind, solutions in kinds.items():
            depth = " | ".join(
                f"{mm:.1f}" for mm in 1000 * np.percentile(depths(task, solutions), (50, 95, 100))
            )
            print(f"| {name} | {radius:.0f} | {kind} | {depth} |", flush=True)


if __name__ == "__main__":
    main()
