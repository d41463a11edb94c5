"""The built-in descriptors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.robots import Robot
from qdbench.tasks.state import Array
from qdbench.tasks.terms import Descriptor, Ended, Moment


def _share_of_steps(ended: Ended, *, over: str) -> Array:
    return ended.sums / (ended.episode_length if over == "episode" else ended.steps[:, None])


def _loaded(moment: Moment, **_: str) -> NDArray[np.bool_]:
    return moment.robot.loaded_feet(moment.state.sensordata)


def _foot_names(robot: Robot) -> tuple[str, ...]:
    return tuple(f"{foot.replace('_', ' ')} on the ground" for foot in robot.feet)


def _final_xy(ended: Ended) -> Array:
    return ended.state.subtree_com[:, ended.robot.root_body, :2]


FEET_CONTACTS = Descriptor(
    "feet contacts",
    _share_of_steps,
    {"over": "episode"},
    each_step=_loaded,
    counts_steps=True,
    axes=_foot_names,
    demands=("feet",),
    version=2,
)
"""For every foot, in how many steps the floor pushed against it, divided by the episode length.

With the parameter `over="lived"`, divided by the steps made before the episode ended."""

FINAL_POSITION = Descriptor(
    "final position", _final_xy, axes=("x (m)", "y (m)"), demands=("root", "subtree_com"), version=1
)
"""x and y of the centre of mass at the end of the episode."""
