"""What a robot looks like: simple solids, each fixed to a body. Viewers draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench.robots.anatomy import Anatomy

Kind = Literal["sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"]
KINDS: dict[int, Kind] = {
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ellipsoid",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
    int(mujoco.mjtGeom.mjGEOM_MESH): "mesh",
}


@dataclass(frozen=True, eq=False)
class Shape:
    """One solid of a robot, in the frame of its body."""

    kind: Kind
    body: int
    """A column of `Episode.body_positions`; -1 for a solid that is fixed to the world."""
    position: NDArray[np.float64]  #: (3,) metres
    orientation: NDArray[np.float64]  #: (4,) unit quaternion, w first
    size: tuple[float, ...]
    """As in MJCF: sphere (radius), capsule and cylinder (radius, half length along z), box and ellipsoid
    (half sizes), mesh ()."""
    colour: tuple[float, float, float, float]
    """Red, green, blue, opacity, from 0 to 1."""
    foot: int = -1
    """A column of `Episode.contacts`; -1 if it is no foot."""
    vertices: NDArray[np.float64] | None = None  #: (vertices, 3), of a mesh
    faces: NDArray[np.int32] | None = None  #: (faces, 3), of a mesh


def shapes(robot: Anatomy) -> tuple[Shape, ...]:
    """Return the visible solids of a robot and its surroundings. The floor and other planes are left out."""
    model = robot.model
    feet = {geom: foot for foot, geoms in enumerate(robot.foot_geoms) for geom in geoms}
    kinds = [(geom, KINDS.get(int(model.geom_type[geom]))) for geom in range(model.ngeom)]
    return tuple(
        _shape(model, geom, kind, feet.get(geom, -1))
        for geom, kind in kinds
        if kind is not None and _colour(model, geom)[3] > 0
    )


_SIZES: dict[Kind, int] = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "mesh": 0}


def _shape(model: mujoco.MjModel, geom: int, kind: Kind, foot: int) -> Shape:
    vertices = faces = None
    if kind == "mesh":
        mesh = model.mesh(int(model.geom_dataid[geom]))
        first, n = int(mesh.vertadr[0]), int(mesh.vertnum[0])
        vertices = np.array(model.mesh_vert[first : first + n], np.float64)
        first, n = int(mesh.faceadr[0]), int(mesh.facenum[0])
        faces = np.array(model.mesh_face[first : first + n], np.int32)
    return Shape(
        kind=kind,
        body=int(model.geom_bodyid[geom]) - 1,
        position=model.geom_pos[geom].copy(),
        orientation=model.geom_quat[geom].copy(),
        size=tuple(model.geom_size[geom][: _SIZES[kind]].tolist()),
        colour=_colour(model, geom),
        foot=foot,
        vertices=vertices,
        faces=faces,
    )


def _colour(model: mujoco.MjModel, geom: int) -> tuple[float, float, float, float]:
    """Return the colour of a geom: that of its material, if it has one, as MuJoCo's own viewer does."""
    material = int(model.geom_matid[geom])
    red, green, blue, opacity = (model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]).tolist()
    return red, green, blue, opacity
