"""The six robots as physics: they rest, hold together, stay above the floor, and can move."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import qdbench
from plain import Plain, live_episode
from qdbench import RobotTask, stream
from qdbench.robots import ROBOTS
from walking import lunge, nothing, scripted_gait

UNI = {task.robot.name: task for task in qdbench.TASKS.values() if task.descriptor == "feet"}
BODIES = {"hopper": 4, "walker": 7, "halfcheetah": 7, "ant": 9, "humanoid": 11, "hexapod": 19}
# kilograms: the classic ones as in the models their dimensions come from, the hexapod's from the real robot
MASSES = {
    "hopper": 15.82,
    "walker": 23.677,
    "halfcheetah": 14.0,
    "ant": 0.911,
    "humanoid": 42.116,
    "hexapod": 2.494,
}


def unending(robot: str) -> RobotTask:
    return replace(UNI[robot], healthy=(-np.inf, np.inf))


@pytest.mark.parametrize("name", ROBOTS)
def test_the_anatomy_is_what_the_observations_assume(name: str) -> None:
    robot = ROBOTS[name].anatomy
    assert robot.n_bodies == BODIES[name]
    assert robot.weight / 9.81 == pytest.approx(MASSES[name], abs=1e-3)
    assert robot.n_joints == robot.n_actions
    joints = [robot.model.joint(i).name for i in range(robot.model.njnt)][-robot.n_joints :]
    assert [robot.model.actuator(i).name for i in range(robot.n_actions)] == joints
    assert np.array_equal(robot.model.actuator_ctrlrange, [[-1, 1]] * robot.n_actions)
    assert robot.force_limits.tolist() == [1] * robot.n_actions
    assert not robot.model.geom_margin.any()
    # MuJoCo silently softens a contact that is stiffer than the step can resolve
    assert (robot.model.geom_solref[:, 0] >= 2 * robot.model.opt.timestep).all()
    limited = robot.model.jnt_limited.astype(bool)
    assert (robot.model.jnt_solref[limited, 0] >= 2 * robot.model.opt.timestep).all()


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_come_to_rest_on_the_floor(name: str) -> None:
    task = replace(unending(name), episode_length=int(20 / ROBOTS[name].control_step))
    robot = live_episode(task, nothing, seed=0)
    assert np.abs(robot.data.qvel).max() < 0.05
    assert _lowest_point(robot) > -0.02
    assert robot.data.ncon > 0


def _lowest_point(robot: Plain) -> float:
    mujoco.mj_forward(robot.model, robot.data)
    return min(0.0, *(float(distance) for distance in robot.data.contact.dist))


@pytest.mark.parametrize("name", ROBOTS)
def test_no_robot_tunnels_through_the_floor(name: str) -> None:
    """Dropped from three metres with random torques, the soft floor gives way but catches every part."""
    robot = Plain(replace(unending(name), episode_length=10_000), seed=1)
    robot.data.qpos[1 if robot.planar else 2] += 3
    rng = stream(0, "drop", name)
    deepest, landed = 0.0, False
    for _ in range(int(3 / robot.task.robot.control_step)):
        robot.live(rng.uniform(-1, 1, robot.model.nu))
        deepest = min(deepest, *(float(distance) for distance in robot.data.contact.dist), 0.0)
        landed |= robot.data.ncon > 0
        assert robot.height > 0
    assert landed
    assert deepest > -0.2
    assert robot.data.warning.number.sum() == 0


@pytest.mark.parametrize("name", ROBOTS)
def test_random_policies_never_make_a_robot_diverge(name: str) -> None:
    """100,000 control steps of bold random policies; studies/endurance.py does the million."""
    task = replace(unending(name), episode_length=500)
    solutions = task.random_solutions(200, stream(0, "endurance", name))
    solutions[100:] *= 3
    evaluation = task.evaluate(solutions, range(200))
    assert evaluation.valid.all()
    assert evaluation.steps.sum() == 100_000


@pytest.mark.parametrize("name", ROBOTS)
def test_a_forward_gait_beats_doing_nothing_and_falling_at_once(name: str) -> None:
    task = UNI[name]
    gaits, still, fallen = (
        [live_episode(task, controller, seed) for seed in range(3)]
        for controller in (scripted_gait(name), nothing, lunge)
    )
    far = np.median([robot.com[0] for robot in gaits])
    best_rest = max(robot.fitness for robot in (*still, *fallen))
    assert far > MINIMUM_DISTANCE[name]
    assert np.median([robot.fitness for robot in gaits]) > 1.1 * best_rest


MINIMUM_DISTANCE = {"hopper": 1, "walker": 10, "halfcheetah": 10, "ant": 5, "humanoid": 1, "hexapod": 3}
