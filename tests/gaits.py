"""One scripted forward gait per robot: sinusoids tracked by a PD controller.

Tests and studies use them as known behaviour that moves: forward, out-scoring both doing nothing and
falling. The forms of the ant's trot and the hexapod's tripod are written by hand; short CMA-ES runs
found the constants of all but the hexapod's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Gait:
    """Joint targets offset + amplitude × sin(2π frequency t + phase), tracked by torques."""

    frequency: float
    """Strides per second."""
    kp: float
    kd: float
    """Action per rad and per rad/s of error."""
    offset: tuple[float, ...]
    amplitude: tuple[float, ...]
    phase: tuple[float, ...]
    """Radians, one per joint in the order of the actions."""
    pitch_gain: tuple[float, ...] = (0.0,)
    roll_gain: tuple[float, ...] = (0.0,)
    """Balance: how far a joint's target moves per radian of the root's pitch and roll."""

    def action(self, q: Array, qd: Array, time: float, pitch: float = 0.0, roll: float = 0.0) -> Array:
        """The action in [-1, 1] for joint angles `q` and velocities `qd` at `time` seconds."""
        swing = np.sin(2 * np.pi * self.frequency * time + np.array(self.phase))
        target = np.array(self.offset) + np.array(self.amplitude) * swing
        target += np.array(self.pitch_gain) * pitch + np.array(self.roll_gain) * roll
        action: Array = np.clip(self.kp * (target - q) - self.kd * qd, -1.0, 1.0)
        return action


def _tripod(frequency: float, kp: float, yaw: float, lift: float) -> Gait:
    """Legs 0, 2, 4 against 1, 3, 5; a leg is raised while it swings forward."""
    sides = (1, 1, 1, -1, -1, -1)  # a positive hip angle moves a right foot forward, a left one back
    phases = [leg % 2 * np.pi for leg in range(6)]
    return Gait(
        frequency=frequency,
        kp=kp,
        kd=0.0,  # the servos' own damping suffices
        offset=(0.0,) * 18,
        amplitude=tuple(angle for side in sides for angle in (side * yaw, lift, 0.0)),
        phase=tuple(angle for phase in phases for angle in (phase, phase + np.pi / 2, 0.0)),
    )


def _trot(
    frequency: float, kp: float, kd: float, hip: float, ankle: tuple[float, float], ankle_phase: float
) -> Gait:
    """The ant's legs 1 and 3 against 2 and 4; an ankle lifts and pushes `ankle_phase` after its hip."""
    legs = ((-1, 1, 0.0), (-1, -1, np.pi), (1, -1, 0.0), (1, 1, np.pi))  # which way hip and ankle bend, phase
    offset, amplitude = ankle
    return Gait(
        frequency=frequency,
        kp=kp,
        kd=kd,
        offset=tuple(angle for _, bend, _ in legs for angle in (0.0, bend * offset)),
        amplitude=tuple(angle for side, bend, _ in legs for angle in (side * hip, bend * amplitude)),
        phase=tuple(angle for _, _, phase in legs for angle in (phase, phase + ankle_phase)),
    )


GAITS: dict[str, Gait] = {
    "hopper": Gait(
        frequency=1.69,
        kp=5.07,
        kd=0.481,
        offset=(0.61, -0.21, 0.75),
        amplitude=(-0.18, 0.71, 0.22),
        phase=(1.77, 4.35, 5.27),
        pitch_gain=(2.67, -2.33, -6.4),
    ),
    "walker": Gait(
        frequency=1.82,
        kp=2.06,
        kd=0.034,
        offset=(-0.16, 0.26, 1.22, -0.16, 0.26, 1.22),
        amplitude=(0.45, 0.69, 0.57, 0.45, 0.69, 0.57),
        phase=(5.1, 5.38, 5.64, 1.96, 2.24, 2.5),
        pitch_gain=(0.19, -0.45, -1.84, 0.19, -0.45, -1.84),
    ),
    "halfcheetah": Gait(
        frequency=4.65,
        kp=0.96,
        kd=0.03,
        offset=(0.02, -0.47, 0.79, -0.19, 0.0, -0.43),
        amplitude=(-0.55, 0.38, 0.88, 0.43, 1.88, 0.08),
        phase=(-0.01, 3.48, 3.16, 3.7, 4.93, 0.57),
    ),
    "ant": _trot(frequency=1.05, kp=0.63, kd=0.05, hip=0.47, ankle=(0.87, 0.37), ankle_phase=3.71),
    "humanoid": Gait(
        frequency=1.94,
        kp=2.93,
        kd=0.128,
        offset=(0, 0.57, 0, -0.06, -0.1, -0.56, -0.66, -0.06, -0.1, -0.56, -0.66, 0, 0, 0, 0, 0, 0),
        amplitude=(0, 0, -0.21, -0.02, 0, -0.12, -0.16, -0.02, 0, -0.12, -0.16, 0.2, 0, 0, -0.2, 0, 0),
        phase=(0, 0, 4.38, 0.15, 0, 4.67, 4.52, 3.29, 0, 1.53, 1.37, 4.44, 0, 0, 1.3, 0, 0),
        pitch_gain=(0, 0.49, 0, 0, 0, -0.06, -0.21, 0, 0, -0.06, -0.21, 0, 0, 0, 0, 0, 0),
        roll_gain=(0, 0, 0.11, 0.8, 0, 0, 0, -0.8, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ),
    "hexapod": _tripod(frequency=1.5, kp=3.0, yaw=0.4, lift=0.2),
}
