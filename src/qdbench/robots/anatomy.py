"""A robot compiled by MuJoCo, with its sensors and the sizes and scales read off the model."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench.errors import BrokenTask, UnknownName
from qdbench.robots import Robot

_FREE, _SLIDE, _HINGE = (
    int(kind)
    for kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
)


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What tasks and the simulation know about a compiled robot."""

    model: mujoco.MjModel
    planar: bool
    """Whether the root moves in the x-z plane (slide, slide, hinge) or freely."""
    root_q: int
    root_v: int
    """How many entries of qpos and qvel belong to the root; joints follow."""
    n_joints: int
    n_bodies: int
    """Moving bodies: all but the world."""
    n_actions: int
    root_body: int
    weight: float
    """Newtons."""
    standing_height: float
    """The root's height at the start, in metres: the robot's length scale."""
    wrench_scale: NDArray[np.float64]  #: (6,) torques and forces in units of the robot's weight
    force_limits: NDArray[np.float64]  #: (n_actions,)
    start_keyframe: int
    foot_sensors: NDArray[np.intp]  #: (n_feet,) where in sensordata each foot's normal force is
    velocity_sensor: slice
    """Where in sensordata the velocity of the centre of mass is."""


def compile_robot(robot: Robot) -> Anatomy:
    """Compile a robot's MJCF and add the sensors its task reads."""
    try:
        spec = mujoco.MjSpec.from_string(robot.mjcf)
    except ValueError as error:
        raise BrokenTask(f"robot {robot.name!r}: MuJoCo cannot read its MJCF: {error}") from None
    geoms = [geom.name for geom in spec.geoms if geom.name]
    for geom in (robot.floor, *robot.feet):
        _require(robot, "geom", geom, geoms)
    _require(robot, "body", robot.root, [body.name for body in spec.bodies if body.name])
    _require(robot, "keyframe", robot.start, [key.name for key in spec.keys if key.name])
    _add_sensors(spec, robot)
    spec.option.timestep = robot.control_step / robot.physics_steps
    spec.option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE  # the sparse one changed between versions
    try:
        model = spec.compile()
    except ValueError as error:
        raise BrokenTask(f"robot {robot.name!r}: MuJoCo cannot compile its MJCF: {error}") from None
    if robot.exact_contacts:
        of_all = (model.geom_solref, model.jnt_solref, model.pair_solref, model.tendon_solref_lim)
        for solref in (row for rows in of_all for row in rows):
            if solref[0] > 0:  # else the author gave stiffness and damping directly
                solref[:] = _sampled(robot, solref, model.opt.timestep)
    return _describe(model, robot)


def _sampled(robot: Robot, solref: NDArray[np.float64], step: float) -> tuple[float, float]:
    """Return the `solref` with which a free depth decays as in continuous time, whatever the step.

    MuJoCo lets the depth r of a contact or joint limit follow r'' = -k r - b r' by steps v += h (-k r - b v);
    r += h v, which at an h near the time constant are much stiffer than the motion itself. With the k and b
    returned, the steps have the determinant and trace, so the decay, of the exact solution over h. A depth
    that a load holds is a little larger at longer steps.
    """
    time_constant, damping_ratio = solref.tolist()
    try:
        b, k = 2 / time_constant, (time_constant * damping_ratio) ** -2
        determinant = math.exp(-b * step)
        trace = 2 * math.exp(-b * step / 2) * cmath.cosh(cmath.sqrt(b * b / 4 - k) * step).real
    except (ZeroDivisionError, OverflowError):
        raise BrokenTask(
            f"robot {robot.name!r}: a solref is {time_constant:g} {damping_ratio:g}; exact contacts need a "
            "time constant not far below the physics step, and a damping ratio above 0"
        ) from None
    stiffness, damping = (1 + determinant - trace) / step**2, (1 - determinant) / step
    return -stiffness, -damping  # the signs say: not a time constant and a ratio


def _require(robot: Robot, kind: str, name: str, known: list[str]) -> None:
    if name not in known:
        cure = f"robot {robot.name!r} has {', '.join(known) or 'none'}"
        raise UnknownName(kind, name, known, cure)


def _foot_sensor(foot: str) -> str:
    return f"qdbench foot {foot}"


def _add_sensors(spec: mujoco.MjSpec, robot: Robot) -> None:
    for foot in robot.feet:
        # the net force between floor and foot, in the world frame: z is the load on the foot
        spec.add_sensor(
            name=_foot_sensor(foot),
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=mujoco.mjtObj.mjOBJ_GEOM,
            objname=robot.floor,
            reftype=mujoco.mjtObj.mjOBJ_GEOM,
            refname=foot,
            intprm=[1 << mujoco.mjtConDataField.mjCONDATA_FORCE.value, 3, 1],  # 3: reduce to the net force
        )
    if "contact_wrenches" in robot.observation:
        # MuJoCo fills cfrc_ext only when a sensor of accelerations asks for it
        spec.add_sensor(
            name="qdbench acceleration",
            type=mujoco.mjtSensor.mjSENS_FRAMELINACC,
            objtype=mujoco.mjtObj.mjOBJ_XBODY,
            objname=robot.root,
        )
    if "com_velocity" in robot.observation:
        spec.add_sensor(
            name="qdbench velocity",
            type=mujoco.mjtSensor.mjSENS_SUBTREELINVEL,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=robot.root,
        )


def _describe(model: mujoco.MjModel, robot: Robot) -> Anatomy:
    kinds = model.jnt_type.tolist()
    planar = kinds[:3] == [_SLIDE, _SLIDE, _HINGE]
    if not planar and kinds[:1] != [_FREE]:
        raise BrokenTask(
            f"robot {robot.name!r}: the first joints must be the root's: a free joint, or slide, slide, hinge"
        )
    root_joints = 3 if planar else 1
    if not set(kinds[root_joints:]) <= {_SLIDE, _HINGE}:
        raise BrokenTask(f"robot {robot.name!r}: joints behind the root must be hinges or slides")
    if planar and model.jnt_axis[:3].tolist() != [[1, 0, 0], [0, 0, 1], [0, 1, 0]]:
        raise BrokenTask(f"robot {robot.name!r}: a planar root slides along x, then z, and turns about y")
    if model.jnt_bodyid[0] != model.body(robot.root).id:
        raise BrokenTask(f"robot {robot.name!r}: the first joint does not belong to its root, {robot.root!r}")
    if not model.nu or model.actuator_ctrlrange.tolist() != [[-1, 1]] * model.nu:
        raise BrokenTask(f'robot {robot.name!r}: it needs actuators, each with ctrlrange="-1 1"')
    root_q, root_v = (3, 3) if planar else (7, 6)
    key = model.key(robot.start).id
    motor_limits = np.abs(model.actuator_gainprm[:, 0])
    force_limits = np.abs(model.actuator_forcerange).max(axis=1)
    velocity_address = 0
    if "com_velocity" in robot.observation:
        velocity_address = int(model.sensor("qdbench velocity").adr[0])
    weight = float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity))
    height = float(model.key_qpos[key, 1 if planar else 2])
    if "contact_wrenches" in robot.observation and not (weight > 0 and height > 0):
        raise BrokenTask(
            f"robot {robot.name!r}: it weighs {weight:g} N and starts {height:g} m high; contact wrenches, "
            "in units of these, need both above 0 (a root's slide gets its height by `ref`)"
        )
    wrench_units = [weight * height] * 3 + [weight] * 3
    return Anatomy(
        model=model,
        planar=planar,
        root_q=root_q,
        root_v=root_v,
        n_joints=model.nq - root_q,
        n_bodies=model.nbody - 1,
        n_actions=model.nu,
        root_body=model.body(robot.root).id,
        weight=weight,
        standing_height=height,
        wrench_scale=np.array([1 / unit if unit else np.nan for unit in wrench_units]),
        force_limits=np.where(model.actuator_forcelimited, force_limits, motor_limits),
        start_keyframe=key,
        foot_sensors=np.array([model.sensor(_foot_sensor(foot)).adr[0] + 2 for foot in robot.feet], np.intp),
        velocity_sensor=slice(velocity_address, velocity_address + 3),
    )
