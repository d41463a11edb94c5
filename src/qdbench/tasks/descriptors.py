"""The built-in descriptors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.robots import Robot
from qdbench.tasks.state import Array
from qdbench.tasks.terms import Descriptor, Ended, Moment


def _loaded(moment: Moment) -> NDArray[np.bool_]:
    return moment.robot.loaded_feet(moment.state.sensordata)


def _share_of_steps(ended: Ended) -> Array:
    return ended.sums / ended.steps[:, None]


def _foot_names(robot: Robot) -> tuple[str, ...]:
    return tuple(f"{foot.replace('_', ' ')} on the ground" for foot in robot.feet)


def _final_xy(ended: Ended) -> Array:
    return ended.state.subtree_com[:, ended.robot.root_body, :2]


FEET_CONTACTS = Descriptor(
    "feet contacts",
    _share_of_steps,
    each_step=_loaded,
    counts_steps=True,
    axes=_foot_names,
    demands=("feet",),
    version=1,
)
"""For every foot, the share of the steps made in which the floor pushed against it."""

FINAL_POSITION = Descriptor(
    "final position", _final_xy, axes=("x (m)", "y (m)"), demands=("root", "subtree_com"), version=1
)
"""x and y of the centre of mass at the end of the episode."""
