"""A perspective camera that looks at a point from a side, as the page's player does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FOCAL = 1.6
"""Focal length in units of half the picture's height; a larger one flattens."""
NEAR = 0.05


@dataclass(frozen=True, eq=False)
class Camera:
    """Where the camera is and what it looks at. It projects points of the world to pixels."""

    target: NDArray[np.float64]  #: (3,) metres
    distance: float
    yaw: float
    """Degrees around the vertical: 0 looks along y, at the robot's right side if it walks along x."""
    pitch: float
    """Degrees above the horizon."""
    width: int
    height: int

    @cached_property
    def axes(self) -> NDArray[np.float64]:
        """Right, up and forward of the camera as rows, (3, 3)."""
        yaw, pitch = np.radians((self.yaw, self.pitch))
        forward = np.array([np.sin(yaw) * np.cos(pitch), np.cos(yaw) * np.cos(pitch), -np.sin(pitch)])
        right = np.array([np.cos(yaw), -np.sin(yaw), 0.0])
        return np.stack([right, np.cross(right, forward), forward])

    @property
    def scale(self) -> float:
        """Pixels per metre at a depth of 1 m."""
        return FOCAL * self.height / 2

    def project(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return pixels (n, 2) and depths (n,) of points (n, 3)."""
        axes = self.axes
        seen = (points - self.target) @ axes.T
        depth = seen[:, 2] + self.distance
        shrunk = self.scale / np.maximum(depth, NEAR)
        across = self.width / 2 + seen[:, 0] * shrunk
        down = self.height / 2 - seen[:, 1] * shrunk
        return np.stack([across, down], axis=1), depth
