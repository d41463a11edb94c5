"""A robot as few simple solids: round ones (spheres, capsules) and convex ones with flat faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.robots.anatomy import Anatomy
from qdbench.robots.shapes import Shape, shapes

Points = NDArray[np.float64]  #: (n, 3) metres
_SIDES = 12
"""Of a cylinder, and of an ellipsoid around its axis."""
_DIRECTIONS = 48
"""A mesh is drawn as the hull of its outermost vertices in this many directions."""


@dataclass(frozen=True, eq=False)
class Solid:
    """One solid, in the frame of its body. Round: one or two points with a radius. Else: faces."""

    body: int
    """-1: fixed to the world."""
    points: Points
    radius: float
    """0 for a solid with faces."""
    faces: tuple[tuple[int, ...], ...]
    """Rows of `points`, counter-clockwise from outside."""
    colour: tuple[int, int, int]
    foot: int
    """-1 if it is no foot."""


def solids(robot: Anatomy) -> tuple[Solid, ...]:
    """Return the solids of a robot, as simple as they can be drawn."""
    return tuple(_solid(shape) for shape in shapes(robot))


def rotations(quaternions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rotation matrices of unit quaternions, (..., 4) -> (..., 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternions, np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _solid(shape: Shape) -> Solid:
    points, radius, faces = _form(shape)
    placed = points @ rotations(shape.orientation).T + shape.position
    red, green, blue = (round(255 * min(1.0, max(0.0, part))) for part in shape.colour[:3])
    return Solid(shape.body, placed, radius, faces, (red, green, blue), shape.foot)


def _form(shape: Shape) -> tuple[Points, float, tuple[tuple[int, ...], ...]]:
    """Return points, radius and faces of a shape in its own frame."""
    if shape.kind == "sphere":
        return np.zeros((1, 3)), shape.size[0], ()
    if shape.kind == "capsule":
        radius, half = shape.size
        return np.array([[0, 0, -half], [0, 0, half]]), radius, ()
    return _hull(_corners(shape))


def _corners(shape: Shape) -> Points:
    if shape.kind == "mesh":
        assert shape.vertices is not None
        outermost = np.unique((shape.vertices @ _directions().T).argmax(axis=0))
        return np.asarray(shape.vertices[outermost])
    if shape.kind == "box":
        return np.asarray(np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, 8).T * shape.size)
    angles = 2 * np.pi * np.arange(_SIDES) / _SIDES
    ring = np.stack([np.cos(angles), np.sin(angles), np.zeros(_SIDES)], axis=1)
    if shape.kind == "cylinder":
        radius, half = shape.size
        return np.concatenate([ring * radius + [0, 0, end] for end in (-half, half)])
    return _directions() * shape.size  # an ellipsoid


def _directions() -> Points:
    """Return unit vectors, evenly spread: a spiral over the sphere."""
    i = np.arange(_DIRECTIONS)
    z = 1 - (2 * i + 1) / _DIRECTIONS
    angle = i * np.pi * (3 - np.sqrt(5))  # the golden angle
    flat = np.sqrt(1 - z * z)
    return np.stack([flat * np.cos(angle), flat * np.sin(angle), z], axis=1)


def _hull(corners: Points) -> tuple[Points, float, tuple[tuple[int, ...], ...]]:
    """Return the convex hull of corners; triangles in one plane are one face."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(corners)
    except QhullError:  # a mesh without a volume: a thin stroke
        return corners[[0, -1]], 0.01, ()
    planes: dict[tuple[float, ...], set[int]] = {}
    for triangle, plane in zip(hull.simplices.tolist(), hull.equations.round(6).tolist(), strict=True):
        planes.setdefault(tuple(plane), set()).update(triangle)
    faces = tuple(_around(corners, sorted(rows), plane[:3]) for plane, rows in planes.items())
    return corners, 0.0, faces


def _around(corners: Points, rows: list[int], normal: Any) -> tuple[int, ...]:
    """Return the corners of a face in order, counter-clockwise seen from outside."""
    away = corners[rows] - corners[rows].mean(axis=0)
    across = away[0]
    up = np.cross(normal, across)
    order = np.argsort(np.arctan2(away @ up, away @ across))
    return tuple(rows[i] for i in order)
