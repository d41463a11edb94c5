"""Robots moved by scripts instead of networks."""

from __future__ import annotations

import mujoco
import numpy as np

from gaits import GAITS, Array
from plain import Controller, Plain


def root_pitch_and_roll(robot: Plain) -> tuple[float, float]:
    if robot.planar:
        return float(robot.data.qpos[2]), 0.0
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, robot.data.qpos[3:7])
    return float(-np.arcsin(np.clip(matrix[6], -1, 1))), float(np.arctan2(matrix[7], matrix[8]))


def scripted_gait(robot_name: str) -> Controller:
    gait = GAITS[robot_name]

    def act(robot: Plain) -> Array:
        pitch, roll = root_pitch_and_roll(robot)
        return gait.action(robot.q, robot.qd, robot.time, pitch, roll)

    return act


def nothing(robot: Plain) -> Array:
    return np.zeros(robot.model.nu)


def lunge(robot: Plain) -> Array:
    """Full torque at once: falls, or thrashes where it cannot fall."""
    return np.where(np.arange(robot.model.nu) % 2, 1.0, -1.0)
