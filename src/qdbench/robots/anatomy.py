"""A robot compiled by MuJoCo, with its sensors, sizes and scales."""

from __future__ import annotations

import cmath
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench.errors import BrokenTask, UnknownName
from qdbench.robots import Robot
from qdbench.robots.contact_pairs import with_contact_pairs

Root = Literal["free", "planar", "fixed"]

_FREE, _SLIDE, _HINGE = (
    int(kind)
    for kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
)


_ROOTS: dict[tuple[int, ...], Root] = {(_FREE,): "free", (_SLIDE, _SLIDE, _HINGE): "planar"}
_SIZES: dict[Root, tuple[int, int]] = {"free": (7, 6), "planar": (3, 3), "fixed": (0, 0)}

SENSORS = {
    "cfrc_ext": mujoco.mjtSensor.mjSENS_FRAMELINACC,
    "subtree_linvel": mujoco.mjtSensor.mjSENS_SUBTREELINVEL,
}
"""Fields that MuJoCo leaves at 0 unless a sensor needs them, and such a sensor."""


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What tasks and the simulation need to know about a compiled robot."""

    model: mujoco.MjModel
    stepped_model: mujoco.MjModel
    """The same for MuJoCo's steps, bit for bit, and faster: see `with_contact_pairs`."""
    control_step: float
    """Seconds between two actions."""
    physics_steps: int
    """Physics steps per control step."""
    root: Root
    """How the root moves: `free`, `planar` (slide, slide, hinge in the x-z plane), or `fixed` (neither)."""
    root_q: int
    root_v: int
    """How many entries of qpos and qvel are the root's; those of the joints follow. 0 if it is fixed."""
    root_body: int
    """The id of the root body; 0 (the world) if the robot names none."""
    n_joints: int
    n_bodies: int
    """Number of bodies without the world."""
    n_actions: int
    feet: tuple[str, ...]
    foot_geoms: tuple[tuple[int, ...], ...]
    """The ids of the geoms of each foot that can touch something."""
    foot_sensors: NDArray[np.intp]  #: (feet,) index in sensordata of each foot's normal force
    weight: float
    """In newtons."""
    standing_height: float
    """Height of the root at the start, in metres: the length scale of the robot. NaN if the root is fixed."""
    wrench_scale: NDArray[np.float64]  #: (6,) torques and forces in units of the robot's weight
    force_limits: NDArray[np.float64]  #: (actions,)
    start_keyframe: int
    """-1: the pose in which the MJCF is written."""
    start_qpos: NDArray[np.float64]  #: (nq,)
    start_qvel: NDArray[np.float64]  #: (nv,)

    @property
    def planar(self) -> bool:
        """Whether the root moves in the x-z plane."""
        return self.root == "planar"

    def loaded_feet(self, sensordata: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return against which feet the floor pushes, (batch, feet)."""
        return sensordata[:, self.foot_sensors] > 0


def compile_robot(robot: Robot, filled: Collection[str] = ()) -> Anatomy:
    """Compile the MJCF of a robot, with sensors for its feet and for the state fields in `filled`."""
    try:
        spec = mujoco.MjSpec.from_string(robot.mjcf)
    except ValueError as error:
        raise BrokenTask(f"robot {robot.name!r}: MuJoCo cannot read its MJCF: {error}") from None
    for kind, parts, names in (
        ("geom", spec.geoms, (robot.floor,)),
        ("geom or body", [*spec.geoms, *spec.bodies], robot.feet),
        ("body", spec.bodies, (robot.root,)),
        ("keyframe", spec.keys, (robot.start,)),
    ):
        for name in names:
            _require(robot, kind, name, [part.name for part in parts if part.name])
    _add_sensors(spec, robot, filled)
    spec.option.timestep = robot.control_step / robot.physics_steps
    spec.option.jacobian = (
        mujoco.mjtJacobian.mjJAC_DENSE
    )  # the sparse one gives other results in other versions
    try:
        model = spec.compile()
    except ValueError as error:
        raise BrokenTask(f"robot {robot.name!r}: MuJoCo cannot compile its MJCF: {error}") from None
    stepped_model = with_contact_pairs(spec, model, robot.floor)
    if robot.exact_contacts:
        _exact_contacts(model, robot)
        _exact_contacts(stepped_model, robot)
    return _describe(model, stepped_model, robot)


def _exact_contacts(model: mujoco.MjModel, robot: Robot) -> None:
    """Replace all time constants, as `Robot.exact_contacts` says."""
    of_all = (model.geom_solref, model.jnt_solref, model.pair_solref, model.tendon_solref_lim)
    for solref in (row for rows in of_all for row in rows):
        if solref[0] > 0:  # else it gives stiffness and damping directly
            solref[:] = sampled(robot, solref, model.opt.timestep)


def sampled(robot: Robot, solref: NDArray[np.float64], step: float) -> tuple[float, float]:
    """Return the `solref` with which a free contact depth decays as in continuous time, at any step.

    MuJoCo computes the depth r of a contact or joint limit by r'' = -k r - b r', with the steps
    v += h (-k r - b v); r += h v. If h is close to the time constant, these are much stiffer than the
    continuous motion. With the k and b returned here, a step has the determinant and trace of the exact
    solution over h, and so its decay. Under load, the depth is slightly larger with longer steps.
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
    return -stiffness, -damping  # negative: stiffness and damping, not time constant and ratio


def _require(robot: Robot, kind: str, name: str | None, known: list[str]) -> None:
    if name is not None and name not in known:
        cure = f"robot {robot.name!r} has {', '.join(known) or 'none'}"
        raise UnknownName(kind, name, known, cure)


def foot_sensor(foot: str) -> str:
    """Return the name of a foot's sensor."""
    return f"qdbench foot {foot}"


def _add_sensors(spec: mujoco.MjSpec, robot: Robot, filled: Collection[str]) -> None:
    geoms = {geom.name for geom in spec.geoms}
    for foot in robot.feet:
        # the net force between floor and foot in the world frame; z is the load on the foot
        spec.add_sensor(
            name=foot_sensor(foot),
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=mujoco.mjtObj.mjOBJ_GEOM,
            objname=robot.floor,
            reftype=mujoco.mjtObj.mjOBJ_GEOM if foot in geoms else mujoco.mjtObj.mjOBJ_BODY,
            refname=foot,
            intprm=[1 << mujoco.mjtConDataField.mjCONDATA_FORCE.value, 3, 1],  # 3: reduce to the net force
        )
    for field in sorted(filled):
        spec.add_sensor(
            name=f"qdbench {field}",
            type=SENSORS[field],
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname="world",  # one sensor on any body fills the field for all bodies
        )


def _describe(model: mujoco.MjModel, stepped_model: mujoco.MjModel, robot: Robot) -> Anatomy:
    root_body = model.body(robot.root).id if robot.root is not None else 0
    root = _root(model, root_body)
    root_q, root_v = _SIZES[root]
    of_root = {"free": 1, "planar": 3, "fixed": 0}[root]
    if not set(model.jnt_type.tolist()[of_root:]) <= {_SLIDE, _HINGE}:
        raise BrokenTask(
            f"robot {robot.name!r}: every joint must be a hinge or a slide; only the first may be free, "
            "if it belongs to the body that root= names"
        )
    if not model.nu or model.actuator_ctrlrange.tolist() != [[-1, 1]] * model.nu:
        raise BrokenTask(f'robot {robot.name!r}: it needs actuators, each with ctrlrange="-1 1"')
    key = model.key(robot.start).id if robot.start is not None else -1
    start_qpos = model.key_qpos[key] if key >= 0 else model.qpos0
    start_qvel = model.key_qvel[key] if key >= 0 else np.zeros(model.nv)
    motor_limits = np.abs(model.actuator_gainprm[:, 0])
    force_limits = np.abs(model.actuator_forcerange).max(axis=1)
    weight = float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity))
    height = float(start_qpos[1 if root == "planar" else 2]) if root_q else math.nan
    wrench_units = [weight * height] * 3 + [weight] * 3
    return Anatomy(
        model=model,
        stepped_model=stepped_model,
        control_step=robot.control_step,
        physics_steps=robot.physics_steps,
        root=root,
        root_q=root_q,
        root_v=root_v,
        root_body=root_body,
        n_joints=model.nq - root_q,
        n_bodies=model.nbody - 1,
        n_actions=model.nu,
        feet=robot.feet,
        foot_geoms=tuple(_geoms_of_foot(model, robot, foot) for foot in robot.feet),
        foot_sensors=np.array([model.sensor(foot_sensor(foot)).adr[0] + 2 for foot in robot.feet], np.intp),
        weight=weight,
        standing_height=height,
        wrench_scale=np.array([1 / unit if unit else np.nan for unit in wrench_units]),
        force_limits=np.where(model.actuator_forcelimited, force_limits, motor_limits),
        start_keyframe=key,
        start_qpos=start_qpos.copy(),
        start_qvel=start_qvel.copy(),
    )


def _geoms_of_foot(model: mujoco.MjModel, robot: Robot, foot: str) -> tuple[int, ...]:
    geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot)
    if geom >= 0:
        return (geom,)
    first, n = int(model.body(foot).geomadr[0]), int(model.body(foot).geomnum[0])
    colliding = (model.geom_contype | model.geom_conaffinity) != 0
    geoms = tuple(geom for geom in range(first, first + n) if colliding[geom])
    if not geoms:
        raise BrokenTask(
            f"robot {robot.name!r}: foot {foot!r} is a body without a geom that can touch the floor; "
            "give one a contype or conaffinity above 0"
        )
    return geoms


def _root(model: mujoco.MjModel, root_body: int) -> Root:
    """Return how the root moves. It floats only if the first joints of the model are its own."""
    first, n = int(model.body_jntadr[root_body]), int(model.body_jntnum[root_body])
    root = _ROOTS.get(tuple(model.jnt_type[:n].tolist()), "fixed") if first == 0 else "fixed"
    if root == "planar" and model.jnt_axis[:3].tolist() != [[1, 0, 0], [0, 0, 1], [0, 1, 0]]:
        return "fixed"
    return root
