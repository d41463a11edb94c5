"""The six robots as physics: they rest, hold together, stay above the floor, and can move."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from scipy.linalg import expm

import qdbench
from plain import Plain, live_episode
from qdbench import RobotTask, stream
from qdbench.errors import BrokenTask
from qdbench.robots import ROBOTS, Robot
from qdbench.robots.shapes import shapes
from qdbench.terms import FEET_CONTACTS, NEVER
from walking import lunge, nothing, scripted_gait

UNI = {task.robot.name: task for task in qdbench.TASKS.values() if task.descriptor is FEET_CONTACTS}
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
    return replace(UNI[robot], ending=NEVER)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_shapes_show_every_body_and_foot(name: str) -> None:
    robot = ROBOTS[name].anatomy
    found = shapes(robot)
    assert {shape.body for shape in found} == set(range(robot.n_bodies))
    assert {shape.foot for shape in found} == {-1, *range(len(robot.feet))}
    assert all(
        min(shape.size) > 0 and np.linalg.norm(shape.orientation) == pytest.approx(1) for shape in found
    )


def test_a_mesh_and_a_wall_are_shown_and_the_floor_is_not() -> None:
    mjcf = """<mujoco><asset><mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset><worldbody>
      <geom type="plane" size="1 1 1"/><geom type="box" size=".1 .2 .3" rgba="1 0 0 1"/>
      <body><freejoint/><geom type="mesh" mesh="tetra" mass="1"/></body></worldbody></mujoco>"""
    anatomy = replace(ROBOTS["ant"].anatomy, model=mujoco.MjModel.from_xml_string(mjcf), foot_geoms=())
    wall, body = shapes(anatomy)
    assert (wall.kind, wall.body, wall.size, wall.colour) == ("box", -1, (0.1, 0.2, 0.3), (1, 0, 0, 1))
    assert (body.kind, body.body) == ("mesh", 0)
    assert body.vertices is not None
    assert body.faces is not None
    assert body.faces.max() < len(body.vertices) == 4


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
    limits = robot.model.jnt_solref[robot.model.jnt_limited.astype(bool)]
    for solref in (*robot.model.geom_solref, *limits):
        if ROBOTS[name].exact_contacts:  # stiffness and damping as computed, which MuJoCo takes as they are
            assert (solref < 0).all()
        else:  # MuJoCo silently softens a contact that is stiffer than the step can resolve
            assert solref[0] >= 2 * robot.model.opt.timestep


SPHERE, CAPSULE = int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)
CLASSIC = ("hopper", "walker", "halfcheetah", "ant", "humanoid")


@pytest.mark.parametrize("name", CLASSIC)
def test_spheres_stand_for_the_limbs_on_the_floor(name: str) -> None:
    """In any pose, no limb is more than 24 mm below the lowest sphere that meets the floor."""
    model = ROBOTS[name].anatomy.model
    data, rng = mujoco.MjData(model), stream(0, "poses", name)
    meets_floor = model.geom_contype == 1
    floor = model.geom("floor").id
    assert set(model.geom_type[meets_floor]) == {SPHERE}
    assert set(model.geom_conaffinity[np.arange(model.ngeom) != floor]) == {0}
    capsules = np.where(model.geom_type == CAPSULE, model.geom_size[:, 1], 0)
    limited = model.jnt_limited.astype(bool)
    joints, (low, high) = model.jnt_qposadr[limited], model.jnt_range[limited].T
    for _ in range(300):
        data.qpos[:] = model.qpos0
        data.qpos[joints] = rng.uniform(low, high)
        if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
            data.qpos[3:7] = rng.normal(size=4)
        else:
            data.qpos[2] = rng.uniform(-np.pi, np.pi)
        mujoco.mj_kinematics(model, data)
        heights = data.geom_xpos[:, 2] - model.geom_size[:, 0] - np.abs(data.geom_xmat[:, 8]) * capsules
        heights[floor] = np.inf
        assert heights.min() > heights[meets_floor].min() - 0.024


def test_a_foot_may_be_a_body_with_several_geoms() -> None:
    robot = ROBOTS["halfcheetah"]
    names = [[robot.anatomy.model.geom(i).name for i in geoms] for geoms in robot.anatomy.foot_geoms]
    assert names == [["front_heel", "front_toe"], ["back_heel", "back_toe"]]
    nameless = robot.mjcf.replace('<geom name="front_shin"', "<geom")
    with pytest.raises(BrokenTask, match="foot 'front_shin' is a body without a geom that can touch"):
        replace(robot, mjcf=nameless, feet=("front_shin",)).anatomy  # noqa: B018


STOP = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="torso">
      <joint type="slide" axis="1 0 0"/> <joint type="slide" axis="0 0 1"/> <joint type="hinge" axis="0 1 0"/>
      <geom mass="1" size="0.1" contype="0" conaffinity="0"/>
      <body>
        <joint name="swing" axis="0 1 0" range="-60 60" armature="1"
               solreflimit="0.05 {ratio}" solimplimit="0.95 0.95"/>
        <geom name="foot" mass="1e-6" size="0.01" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="swing" ctrlrange="-1 1"/></actuator>
  <keyframe><key name="start" qpos="0 1 0 0"/></keyframe>
</mujoco>
"""


@pytest.mark.parametrize("ratio", [0.5, 1, 2])
@pytest.mark.parametrize("physics_steps", [2, 3, 4, 16])
def test_exact_contacts_decay_as_in_continuous_time_at_any_step(physics_steps: int, ratio: float) -> None:
    """A joint driven past its limit comes back along r'' = -k r - b r', here from the matrix exponential."""
    robot = Robot(
        name="stop",
        mjcf=STOP.format(ratio=ratio),
        control_step=0.05,
        physics_steps=physics_steps,
        exact_contacts=True,
    )
    model, step = robot.anatomy.model, 0.05 / physics_steps
    model.opt.gravity[:] = 0
    data = mujoco.MjData(model)
    data.qpos[3], data.qvel[3] = np.pi / 3 + 0.01, 1.0  # past the limit, and on its way further
    depth, pushes = [data.qpos[3] - np.pi / 3], []
    for _ in range(2 * physics_steps):
        mujoco.mj_step(model, data)
        depth.append(data.qpos[3] - np.pi / 3)
        pushes.append(data.efc_force.any())  # a limit never pulls
    motion = np.array([[0, 1], [-((0.05 * ratio) ** -2), -2 / 0.05]])
    over_one_step = expm(motion * step)
    # its samples, and those of the steps, obey r(n+2) = trace r(n+1) - determinant r(n)
    trace, determinant = np.trace(over_one_step), np.linalg.det(over_one_step)
    assert pushes[0]
    assert pushes[1]
    for n in range(len(pushes) - 1):
        if not (pushes[n] and pushes[n + 1]):
            break
        assert depth[n + 2] == pytest.approx(trace * depth[n + 1] - determinant * depth[n], abs=1e-9)


def test_exact_contacts_leave_direct_ones_alone_and_refuse_impossible_ones() -> None:
    ant = ROBOTS["ant"]
    direct = replace(ant, mjcf=ant.mjcf.replace('solref="0.025 1"', 'solref="-500 -30"'))
    assert (direct.anatomy.model.geom_solref == [-500, -30]).all()
    assert (direct.anatomy.model.jnt_solref[1:] == ant.anatomy.model.jnt_solref[1:]).all()
    broken = replace(ant, mjcf=ant.mjcf.replace('solref="0.025 1"', 'solref="0.025 0"'))
    with pytest.raises(BrokenTask, match=r"'ant': a solref is 0\.025 0; .* damping ratio above 0"):
        broken.anatomy  # noqa: B018


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_come_to_rest_on_the_floor(name: str) -> None:
    task = replace(unending(name), episode_length=int(20 / ROBOTS[name].control_step))
    robot = live_episode(task, nothing, seed=0)
    assert np.abs(robot.data.qvel[: robot.nv]).max() < 0.05
    # a hexapod's upright tibiae lean over by and by, against the damping of the servos
    assert np.abs(robot.data.qvel).max() < (0.15 if name == "hexapod" else 0.05)
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
