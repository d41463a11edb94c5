"""The parts of a robot as meshes: what moves together and has one colour is one part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench.robots.anatomy import Anatomy
from qdbench.robots.shapes import Shape, shapes

_ROUND = 16
"""Corners of a circle."""
_SWOLLEN = {True: 1.06, False: 1.03}
"""Growth of spheres, feet first: they end capsules of the same radius, and would flicker."""


@dataclass(frozen=True, eq=False)
class Part:
    """A mesh in the frame of its body."""

    body: int
    """A row of `Pose.positions`; -1, the last, is the world."""
    colour: tuple[int, int, int]
    foot: int
    """A column of `Pose.loaded`; -1 if it is no foot."""
    vertices: NDArray[np.float32]  #: (n, 3)
    faces: NDArray[np.uint32]  #: (m, 3)


def parts_of(robot: Anatomy) -> tuple[Part, ...]:
    """Return the parts of a robot, and of its surroundings without the floor."""
    groups: dict[tuple[int, tuple[int, int, int], int], list[Any]] = {}
    for shape in shapes(robot):
        red, green, blue = (round(255 * channel) for channel in shape.colour[:3])
        groups.setdefault((shape.body, (red, green, blue), shape.foot), []).append(_mesh(shape))
    return tuple(_part(*key, meshes) for key, meshes in groups.items())


def _part(body: int, colour: tuple[int, int, int], foot: int, meshes: list[Any]) -> Part:
    import trimesh

    whole: Any = trimesh.util.concatenate(meshes)
    return Part(body, colour, foot, whole.vertices.astype(np.float32), whole.faces.astype(np.uint32))


def _mesh(shape: Shape) -> Any:
    """Return a shape as a mesh, in the frame of its body."""
    import trimesh
    from trimesh.creation import box, capsule, cylinder, icosphere

    if shape.kind == "mesh":
        mesh = trimesh.Trimesh(shape.vertices, shape.faces, process=False)
    elif shape.kind == "box":
        mesh = box(2 * np.array(shape.size))
    elif shape.kind == "capsule":
        radius, half = shape.size
        mesh = capsule(2 * half, radius, count=(_ROUND, _ROUND))
        mesh.apply_translation(-mesh.bounds.mean(axis=0))  # ours are in the middle of their length
    elif shape.kind == "cylinder":
        mesh = cylinder(shape.size[0], 2 * shape.size[1], sections=_ROUND)
    else:  # a sphere has one radius, an ellipsoid three
        mesh = icosphere(subdivisions=2, radius=1.0)
        mesh.apply_scale(shape.size if len(shape.size) == 3 else shape.size[0] * _SWOLLEN[shape.foot >= 0])
    placed = np.eye(4)
    mujoco.mju_quat2Mat(turn := np.empty(9), shape.orientation)
    placed[:3, :3], placed[:3, 3] = turn.reshape(3, 3), shape.position
    mesh.apply_transform(placed)
    return mesh
