"""The blocks an observation is made of.

Each block is a function of a batch of states and the robot's anatomy, with a leading batch axis in
and out, written against whatever array library the state's arrays come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from qdbench.errors import UnknownName
from qdbench.robots.anatomy import Anatomy
from qdbench.tasks.state import Array, State


class Block(NamedTuple):
    """One part of an observation."""

    values: Callable[[State, Anatomy], Array]
    size: Callable[[Anatomy], int]
    field: str | None = None
    """The field of `State` that has to be read for it, if it is not always there."""


def _height(state: State, robot: Anatomy) -> Array:
    z = 1 if robot.planar else 2
    return state.qpos[:, z : z + 1]


def _position(state: State, robot: Anatomy) -> Array:
    if not robot.planar:
        return state.qpos[:, :3]
    x, z = state.qpos[:, :1], state.qpos[:, 1:2]
    return _columns(x, 0 * x, z)


def _orientation(state: State, robot: Anatomy) -> Array:
    """The root's unit quaternion with w ≥ 0; a planar robot turns about y."""
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
    return state.sensordata[:, robot.velocity_sensor]


def _contact_wrenches(state: State, robot: Anatomy) -> Array:
    """Torque and force of the contacts on world (always 0) and bodies, in robot weights, within ±1."""
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


BLOCKS: dict[str, Block] = {
    "height": Block(_height, lambda robot: 1),
    "position": Block(_position, lambda robot: 3),
    "orientation": Block(_orientation, lambda robot: 4),
    "joint_angles": Block(_joint_angles, lambda robot: robot.n_joints),
    "velocity": Block(_velocity, lambda robot: 3),
    "angular_velocity": Block(_angular_velocity, lambda robot: 3),
    "joint_velocities": Block(_joint_velocities, lambda robot: robot.n_joints),
    "com_velocity": Block(_com_velocity, lambda robot: 3),
    "contact_wrenches": Block(_contact_wrenches, lambda robot: 6 * (robot.n_bodies + 1), "cfrc_ext"),
    "body_inertias": Block(_body_inertias, lambda robot: 9 * robot.n_bodies, "cinert"),
    "body_velocities": Block(_body_velocities, lambda robot: 6 * robot.n_bodies, "cvel"),
    "actuator_forces": Block(_actuator_forces, lambda robot: robot.n_actions, "actuator_force"),
}


def block(name: str) -> Block:
    """Return the observation block of that name."""
    if name not in BLOCKS:
        raise UnknownName("observation block", name, BLOCKS, f"there are {', '.join(BLOCKS)}")
    return BLOCKS[name]


def _library(array: Array) -> Any:
    return array.__array_namespace__()


def _columns(*columns: Array) -> Array:
    joined: Array = _library(columns[0]).concat(columns, axis=1)
    return joined
