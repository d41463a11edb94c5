"""The built-in resets: where episodes start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qdbench.tasks.state import Array
from qdbench.tasks.terms import Reset

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy


def _joint_noise(qpos: Array, qvel: Array, noise: Array, robot: Anatomy) -> tuple[Array, Array]:
    qpos[:, robot.root_q :] += noise[:, : robot.n_joints]
    qvel[:, robot.root_v :] += noise[:, robot.n_joints :]
    return qpos, qvel


def _angles_and_velocities(robot: Anatomy) -> int:
    return 2 * robot.n_joints


JOINT_NOISE = Reset("joint noise", _joint_noise, size=_angles_and_velocities, version=1)
"""Noise on joint angles and joint velocities, never on the root."""
