"""The built-in observation blocks.

Each is a function of a batch of states and the compiled robot. It uses the array library of the state's
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from qdbench.tasks.state import Array, State
from qdbench.tasks.terms import Block

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy


def _height(state: State, robot: Anatomy) -> Array:
    z = 1 if robot.planar else 2
    return state.qpos[:, z : z + 1]


def _position(state: State, robot: Anatomy) -> Array:
    if not robot.planar:
        return state.qpos[:, :3]
    x, z = state.qpos[:, :1], state.qpos[:, 1:2]
    return _columns(x, 0 * x, z)


def _orientation(state: State, robot: Anatomy) -> Array:
    """The unit quaternion of the root with w ≥ 0. A planar robot turns about y."""
    xp = _library(state.qpos)
    if robot.planar:
        half = state.qpos[:, 2:3] / 2
        w, y = xp.cos(half), xp.sin(half)
        quaternion = _columns(w, 0 * w, y, 0 * w)
    else:
        quaternion = state.qpos[:, 3:7]
    sign: Array = xp.where(quaternion[:, :1] < 0, -1.0, 1.0)
    return quaternion * sign


def _joint_angles(state: State, robot: Anatomy) -> Array:
    return state.qpos[:, robot.root_q :]


def _velocity(state: State, robot: Anatomy) -> Array:
    if not robot.planar:
        return state.qvel[:, :3]
    x, z = state.qvel[:, :1], state.qvel[:, 1:2]
    return _columns(x, 0 * x, z)


def _angular_velocity(state: State, robot: Anatomy) -> Array:
    if not robot.planar:
        return state.qvel[:, 3:6]  # MuJoCo keeps it in the body's frame
    y = state.qvel[:, 2:3]
    return _columns(0 * y, y, 0 * y)


def _joint_velocities(state: State, robot: Anatomy) -> Array:
    return state.qvel[:, robot.root_v :]


def _com_velocity(state: State, robot: Anatomy) -> Array:
    return state.subtree_linvel[:, robot.root_body]


def _contact_wrenches(state: State, robot: Anatomy) -> Array:
    """Contact torque and force on the world (always 0) and each body, in robot weights, clipped to ±1."""
    wrenches: Array = _library(state.cfrc_ext).clip(state.cfrc_ext * robot.wrench_scale, -1.0, 1.0)
    return wrenches.reshape(len(wrenches), -1)


_SYMMETRIC = np.array([0, 3, 4, 3, 1, 5, 4, 5, 2])  # xx yy zz xy xz yz → the 3×3 matrix, row by row


def _body_inertias(state: State, robot: Anatomy) -> Array:
    """Each body's rotational inertia about the robot's centre of mass, a 3×3 matrix in world axes."""
    matrices = state.cinert[:, 1:][:, :, _SYMMETRIC]
    return matrices.reshape(len(matrices), -1)


def _body_velocities(state: State, robot: Anatomy) -> Array:
    """Each body's angular velocity, and its linear velocity at the robot's centre of mass."""
    velocities = state.cvel[:, 1:]
    return velocities.reshape(len(velocities), -1)


def _actuator_forces(state: State, robot: Anatomy) -> Array:
    return state.actuator_force / robot.force_limits


def _library(array: Array) -> Any:
    return array.__array_namespace__()


def _columns(*columns: Array) -> Array:
    joined: Array = _library(columns[0]).concat(columns, axis=1)
    return joined


def _joints(robot: Anatomy) -> int:
    return robot.n_joints


def _wrenches(robot: Anatomy) -> int:
    return 6 * (robot.n_bodies + 1)


def _matrices(robot: Anatomy) -> int:
    return 9 * robot.n_bodies


def _twists(robot: Anatomy) -> int:
    return 6 * robot.n_bodies


def _actions(robot: Anatomy) -> int:
    return robot.n_actions


# What the entries of a block are called


def _parts(prefixes: Iterable[str], parts: str) -> tuple[str, ...]:
    return tuple(f"{prefix} {part}" for prefix in prefixes for part in parts.split(", "))


def _joint_names(robot: Anatomy) -> tuple[str, ...]:
    first = robot.model.njnt - robot.n_joints
    return tuple(robot.model.joint(i).name or f"joint {i}" for i in range(first, robot.model.njnt))


def _body_names(robot: Anatomy, first: int = 1) -> tuple[str, ...]:
    return tuple(robot.model.body(i).name or f"body {i}" for i in range(first, robot.model.nbody))


def _wrench_names(robot: Anatomy) -> tuple[str, ...]:
    return _parts(_body_names(robot, 0), "torque x, torque y, torque z, force x, force y, force z")


def _matrix_names(robot: Anatomy) -> tuple[str, ...]:
    return _parts(_body_names(robot), "xx, xy, xz, yx, yy, yz, zx, zy, zz")


def _twist_names(robot: Anatomy) -> tuple[str, ...]:
    return _parts(_body_names(robot), "angular x, angular y, angular z, linear x, linear y, linear z")


def _actuator_names(robot: Anatomy) -> tuple[str, ...]:
    return tuple(robot.model.actuator(i).name or f"actuator {i}" for i in range(robot.n_actions))


_XYZ = ("x", "y", "z")

# The blocks


def _block(
    name: str,
    values: Callable[[State, Anatomy], Array],
    size: int | Callable[[Anatomy], int],
    labels: tuple[str, ...] | Callable[[Anatomy], tuple[str, ...]],
    unit: str,
    meaning: str,
    *demands: str,
) -> Block:
    return Block(
        name, values, size=size, labels=labels, unit=unit, meaning=meaning, demands=demands, version=1
    )


HEIGHT = _block("height", _height, 1, ("z",), "m", "height of the root", "floating root")
"""The root's height, in metres."""
POSITION = _block("position", _position, 3, _XYZ, "m", "position of the root", "floating root")
"""The root's x, y and z, in metres."""
ORIENTATION = _block(
    "orientation", _orientation, 4, ("w", "x", "y", "z"), "1",
    "orientation of the root, a unit quaternion with w of 0 or more; a planar root turns about y",
    "floating root",
)  # fmt: skip
"""The root's orientation, a unit quaternion with w ≥ 0."""
JOINT_ANGLES = _block(
    "joint angles", _joint_angles, _joints, _joint_names, "rad (a slide: m)",
    "positions of all joints except the root's",
)  # fmt: skip
"""All joint angles except the root's, in radians (metres for a slide)."""
VELOCITY = _block(
    "velocity", _velocity, 3, _XYZ, "m/s", "velocity of the root in world axes", "floating root"
)
"""The root's velocity in the world's axes, in m/s."""
ANGULAR_VELOCITY = _block(
    "angular velocity", _angular_velocity, 3, _XYZ, "rad/s",
    "angular velocity of the root in its own axes", "floating root",
)  # fmt: skip
"""The root's angular velocity in its own axes, in rad/s."""
JOINT_VELOCITIES = _block(
    "joint velocities", _joint_velocities, _joints, _joint_names, "rad/s (a slide: m/s)",
    "velocities of all joints except the root's",
)  # fmt: skip
"""The velocities of all joints except the root's, in rad/s (m/s for a slide)."""
COM_VELOCITY = _block(
    "velocity of the centre of mass", _com_velocity, 3, _XYZ, "m/s",
    "velocity of the robot's centre of mass in world axes", "root", "subtree_linvel",
)  # fmt: skip
"""The velocity of the robot's centre of mass, in m/s."""
CONTACT_WRENCHES = _block(
    "contact wrenches", _contact_wrenches, _wrenches, _wrench_names,
    "torque: robot weight x standing height; force: robot weight",
    "contact torque about the robot's centre of mass and contact force on the world (always 0) and each "
    "body, in world axes, clipped to ±1",
    "floating root", "weight", "cfrc_ext",
)  # fmt: skip
"""Contact torque and force on the world (always 0) and each body, in robot weights, clipped to ±1."""
BODY_INERTIAS = _block(
    "body inertias", _body_inertias, _matrices, _matrix_names, "kg·m²",
    "rotational inertia of each body about the robot's centre of mass, a 3x3 matrix in world axes",
    "cinert",
)  # fmt: skip
"""Each body's rotational inertia, a matrix, about the robot's centre of mass, in kg·m²."""
BODY_VELOCITIES = _block(
    "body velocities", _body_velocities, _twists, _twist_names, "angular: rad/s; linear: m/s",
    "angular velocity of each body, and its linear velocity at the robot's centre of mass", "cvel",
)  # fmt: skip
"""Each body's angular velocity, and its linear velocity at the robot's centre of mass."""
ACTUATOR_FORCES = _block(
    "actuator forces", _actuator_forces, _actions, _actuator_names, "share of the actuator's limit",
    "force of each actuator", "actuator_force",
)  # fmt: skip
"""The force of each actuator, as a share of its limit."""
