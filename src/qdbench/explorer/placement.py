"""Where the picture of an archive is in the scene: on the floor, or standing behind the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdbench.explorer.plane import Plane

Numbers = NDArray[np.float64]

Lookout = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Where a camera is, and what it looks at."""

BOARD = 3.2
"""Width and height of a standing picture, in metres."""
STRIP = 5.2, 0.5
_BEHIND = 1.2
"""How far a standing picture is behind the robot's way, in metres."""
_ABOVE = 0.9
"""How far its lower edge is above the floor."""
_ON_FLOOR = 0.004
_LANE = 0.7
"""Between the ways of two robots."""
_GAP = 0.45
"""Between the pictures of two elites."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A rectangle in the scene, and where its robot starts."""

    centre: Numbers  #: (3,)
    size: tuple[float, float]
    is_standing: bool
    start: Numbers  #: (3,) where the origin of the robot's world is

    @property
    def wxyz(self) -> tuple[float, float, float, float]:
        """How it is turned: flat, or a quarter turn around x."""
        return (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0) if self.is_standing else (1.0, 0.0, 0.0, 0.0)

    def local(self, points: Numbers, above: float = 0.0) -> Numbers:
        """Return points (..., 2), shares of the rectangle, in its own frame, (..., 3)."""
        flat = (points - 0.5) * np.array(self.size)
        return np.concatenate([flat, np.full((*flat.shape[:-1], 1), above)], axis=-1)

    def hit(self, origin: Numbers, direction: Numbers) -> tuple[float, Numbers] | None:
        """Return how far a ray goes until it hits the rectangle's plane, and where; None if it does not."""
        away = np.asarray(origin, np.float64) - self.centre
        ahead = np.asarray(direction, np.float64)
        if self.is_standing:  # its own axes are x, z and -y of the scene
            away, ahead = (v[[0, 2, 1]] * (1, 1, -1) for v in (away, ahead))
        if abs(ahead[2]) < 1e-9 or (far := -away[2] / ahead[2]) <= 0:
            return None
        return float(far), (away + far * ahead)[:2] / np.array(self.size) + 0.5


def placement_of(plane: Plane, side: int, n_sides: int, *, in_metres: bool, has_robot: bool) -> Placement:
    """Return where the picture of one archive is, if `n_sides` of them are side by side."""
    if in_metres:
        low, high = plane.bounds.T
        width, height = (high - low).tolist()
        start = np.array([side * (width + _GAP), 0.0, 0.0])
        middle = np.append((low + high) / 2, _ON_FLOOR) + start
        return Placement(middle, (width, height), False, start)
    width, height = STRIP if plane.is_strip else (BOARD, BOARD)
    along = (side - (n_sides - 1) / 2) * (width + _GAP)
    behind = _BEHIND if has_robot else 0.0
    start = np.array([along, -_LANE * side, 0.0])  # two robots do not run into each other
    return Placement(np.array([along, behind, _ABOVE + height / 2]), (width, height), True, start)


def lookout(plane: Plane, *, in_metres: bool) -> Lookout:
    """Return where a camera is best, and what it looks at."""
    if not in_metres:
        return (0.0, -3.4, 2.0), (0.0, 0.4, 1.75)
    low, high = plane.bounds.T
    (x, y), size = ((low + high) / 2).tolist(), float((high - low).max())
    return (x - 0.12 * size, y - 0.62 * size, 0.5 * size), (x, y - 0.07 * size, 0.0)
