"""One episode, step by step, for plots and viewers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench.policy import Parameters
from qdbench.robots.anatomy import Anatomy
from qdbench.seeds import Seeds
from qdbench.simulation.loop import evaluate
from qdbench.simulation.recorders import EpisodeRecorder, Trace
from qdbench.tasks.contract import Evaluations
from qdbench.tasks.robot_task import RobotTask


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode, step by step.

    Arrays with `steps` + 1 rows begin with the start. Arrays with `steps` rows have one row per action.
    """

    fitness: float
    descriptor: NDArray[np.float64]  #: (dimensions,)
    steps: int
    valid: bool
    time: NDArray[np.float64]  #: (steps + 1,) seconds
    qpos: NDArray[np.float64]  #: (steps + 1, nq)
    qvel: NDArray[np.float64]  #: (steps + 1, nv)
    body_names: tuple[str, ...]  #: without the world
    body_positions: NDArray[np.float64]  #: (steps + 1, bodies, 3) metres
    body_orientations: NDArray[np.float64]  #: (steps + 1, bodies, 4) unit quaternions, w first
    centre_of_mass: NDArray[np.float64]  #: (steps + 1, 3)
    observations: NDArray[np.float32]  #: (steps, observations)
    actions: NDArray[np.float32]  #: (steps, actions)
    contacts: NDArray[np.bool_]  #: (steps, feet)
    terms: Mapping[str, NDArray[np.float64]]
    """The reward terms of each step, (steps,). Their sums, in order, are those of `evaluate`.

    If the simulation diverged, the last row is NaN, here and in the arrays of state and bodies."""


def rollouts(task: RobotTask, solutions: Parameters, seeds: Seeds, workers: int = 1) -> list[Episode]:
    """Record the episodes of checked solutions, (n, parameters), each under its own seed."""
    recorder = EpisodeRecorder(len(solutions))
    found = evaluate(task, solutions, seeds, workers=workers, recorder=recorder)
    return [_episode(task, trace, found, row) for row, trace in enumerate(recorder.traces)]


def _episode(task: RobotTask, trace: Trace, found: Evaluations, row: int) -> Episode:
    valid, robot = bool(found.valid[row]), task.anatomy
    qpos, qvel, rewards = np.stack(trace.qpos), np.stack(trace.qvel), np.stack(trace.rewards)
    positions, orientations, centre_of_mass = kinematics(robot, qpos)
    if not valid:  # what MuJoCo shows after its reset is not a result
        for rows in (qpos, qvel, rewards, positions, orientations, centre_of_mass):
            rows[-1] = np.nan
    return Episode(
        fitness=float(found.fitness[row]),
        descriptor=found.descriptors[row],
        steps=len(trace.actions),
        valid=valid,
        time=np.arange(len(qpos), dtype=np.float64) * robot.control_step,
        qpos=qpos,
        qvel=qvel,
        body_names=tuple(robot.model.body(i + 1).name for i in range(robot.n_bodies)),
        body_positions=positions,
        body_orientations=orientations,
        centre_of_mass=centre_of_mass,
        observations=np.stack(trace.observations[:-1]),
        actions=np.stack(trace.actions),
        contacts=np.stack(trace.contacts),
        terms={reward.name: rewards[:, i] for i, reward in enumerate(task.rewards)},
    )


def kinematics(robot: Anatomy, qpos: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return positions and orientations of bodies, and the centre of mass, for every recorded qpos."""
    data = mujoco.MjData(robot.model)
    frames = []
    for data.qpos[:] in qpos:
        mujoco.mj_kinematics(robot.model, data)
        mujoco.mj_comPos(robot.model, data)
        frames.append((data.xpos[1:].copy(), data.xquat[1:].copy(), data.subtree_com[robot.root_body].copy()))
    return tuple(np.stack(column) for column in zip(*frames, strict=True))
