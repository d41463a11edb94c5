"""One scripted forward gait per robot: sinusoids tracked by a PD controller.

Tests and studies use them as known behaviour that moves: forward, out-scoring both doing nothing and
falling. The hexapod's is written by hand; a short CMA-ES run found the others' constants.
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
        frequency=4.22,
        kp=0.94,
        kd=0.007,
        offset=(-0.04, -0.4, 0.56, -0.16, 0.12, -0.42),
        amplitude=(-0.26, 0.11, 1.09, 0.29, 1.57, 0.36),
        phase=(0.17, 2.57, 3.61, 4.38, 5.07, 2.2),
    ),
    "ant": Gait(
        frequency=2.09,
        kp=0.67,
        kd=0.104,
        offset=(0.45, 0.72, -0.23, -0.72, 0.23, -0.72, -0.45, 0.72),
        amplitude=(0.32, 0.6, 0.75, -0.03, -0.75, -0.03, -0.32, 0.6),
        phase=(5.25, 5.87, 1.91, 3.64, 5.05, 0.5, 2.1, 2.73),
    ),
    "humanoid": Gait(
        frequency=2.17,
        kp=2.51,
        kd=0.149,
        offset=(0, 0.46, 0, -0.05, 0, -0.6, -0.67, -0.05, 0, -0.6, -0.67, 0, 0, 0, 0, 0, 0),
        amplitude=(0, 0, -0.24, -0.01, 0, -0.15, -0.15, -0.01, 0, -0.15, -0.15, 0.32, 0, 0, -0.32, 0, 0),
        phase=(0, 0, 3.43, 0.05, 0, 5.46, 4.54, 3.19, 0, 2.32, 1.4, 3.3, 0, 0, 0.16, 0, 0),
        pitch_gain=(0, 0.52, 0, 0, 0, 0, -0.47, 0, 0, 0, -0.47, 0, 0, 0, 0, 0, 0),
        roll_gain=(0, 0, 0.37, 0.92, 0, 0, 0, -0.92, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ),
    "hexapod": _tripod(frequency=1.5, kp=3.0, yaw=0.4, lift=0.2),
}
