"""What the player of a page is given: the robot, and its motion in few bytes.

A track is a take in columns: qpos, then the centre of mass. Every column is divided into `LEVELS` steps
between its lowest and its highest value. Stored are the differences from frame to frame, small numbers
first (0, -1, 1, -2, … become 0, 1, 2, 3, …), the low bytes of all before the high bytes, then one byte per
foot and frame; all compressed by zlib and written in base64. `player.js` reads it back.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.films.filming import Performer
from qdbench.films.solids import solids
from qdbench.films.takes import Take
from qdbench.robots.anatomy import Anatomy

LEVELS = 2**14 - 1
"""Over 20 m a step is about 1 mm, less than a pixel."""
_FREE, _SLIDE = 0, 2  # mjtJoint


def packed_track(take: Take) -> dict[str, Any]:
    """Return a take in few bytes."""
    columns = np.concatenate([take.qpos, take.path], axis=1).astype(np.float64)
    low, high = columns.min(axis=0), columns.max(axis=0)
    step = np.where(high > low, (high - low) / LEVELS, 1.0)
    levels = np.rint((columns - low) / step).astype(np.int64)
    differences = np.diff(levels, axis=0, prepend=0).T.ravel()  # column by column
    small_first = np.where(differences < 0, -2 * differences - 1, 2 * differences).astype(np.uint16)
    parts = [small_first & 0xFF, small_first >> 8, take.contacts.T.ravel()]
    content = b"".join(part.astype(np.uint8).tobytes() for part in parts)
    return {
        "frames": len(take),
        "rate": round(take.rate, 4),
        "low": _rounded(low),
        "step": [float(f"{x:.6g}") for x in step],
        "data": b64encode(zlib.compress(content, 9)).decode(),
    }


def packed_robot(robot: Anatomy) -> dict[str, Any]:
    """Return a robot: how its bodies hang together, and its solids."""
    model = robot.model
    bodies = [
        {
            "parent": int(model.body_parentid[body]) - 1,
            "pos": _rounded(model.body_pos[body]),
            "quat": _rounded(model.body_quat[body]),
            "joints": [
                {
                    "kind": {_FREE: "free", _SLIDE: "slide"}.get(int(model.jnt_type[joint]), "hinge"),
                    "at": int(model.jnt_qposadr[joint]),
                    "zero": round(float(model.qpos0[model.jnt_qposadr[joint]]), 5),
                    "axis": _rounded(model.jnt_axis[joint]),
                    "pos": _rounded(model.jnt_pos[joint]),
                }
                for joint in range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
            ],
        }
        for body in range(1, model.nbody)
    ]
    drawn = [
        {
            "body": solid.body,
            "points": [_rounded(point) for point in solid.points],
            "radius": round(solid.radius, 4),
            "faces": solid.faces,
            "colour": solid.colour,
            "foot": solid.foot,
        }
        for solid in solids(robot)
    ]
    return {
        "nq": int(model.nq),
        "feet": len(robot.feet),
        "size": size_of(robot),
        "planar": robot.planar,
        "bodies": bodies,
        "solids": drawn,
    }


def size_of(robot: Anatomy) -> float:
    """Return a length that the camera's distance is measured in: about the robot's height or width."""
    return round(float(robot.model.stat.extent), 3)


def thinner(performers: Sequence[Performer]) -> Iterator[tuple[Performer, ...]]:
    """Yield films of the same elites that need less and less space: fewer ghosts, frames, seconds."""
    for rate, ghosts, seconds in (
        (25, 4, 60), (20, 3, 60), (15, 3, 30), (15, 2, 20), (12, 1, 20), (10, 0, 20), (10, 0, 10), (8, 0, 5),
    ):  # fmt: skip
        yield tuple(
            replace(
                one,
                take=one.take.thinned(rate, seconds),
                ghosts=tuple(ghost.thinned(rate, seconds) for ghost in one.ghosts[:ghosts]),
            )
            for one in performers
        )


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [round(float(x), 5) for x in values]
