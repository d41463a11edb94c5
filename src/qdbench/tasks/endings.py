"""The built-in endings. An episode also ends after `episode_length` control steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import checked_interval, checked_number
from qdbench.tasks.terms import Ending, Moment


def healthy(low: float, high: float, *, tilt: float | None = None) -> Ending:
    """End the episode when the root's height leaves the interval from `low` to `high`, in metres.

    With `tilt`, it also ends when the root's z axis leans more than this many degrees from the vertical.
    """
    low, high = checked_interval("healthy", (low, high), finite=False)
    parameters = {"low": low, "high": high}
    if tilt is not None:
        parameters["tilt"] = checked_number("tilt", tilt, 0.0)
    return Ending("healthy", _unhealthy, parameters, demands=("floating root",), version=1)


def _unhealthy(moment: Moment, *, low: float, high: float, tilt: float | None = None) -> NDArray[np.bool_]:
    qpos, planar = moment.state.qpos, moment.robot.planar
    height = qpos[:, 1 if planar else 2]
    inside: NDArray[np.bool_] = (height > low) & (height < high)
    if tilt is not None:
        # the z component of the root's z axis, from its angle about y or its quaternion w, x, y, z
        upright = np.cos(qpos[:, 2]) if planar else 1 - 2 * (qpos[:, 4] ** 2 + qpos[:, 5] ** 2)
        inside &= upright >= np.cos(np.radians(tilt))
    return ~inside


def _never(moment: Moment) -> NDArray[np.bool_]:
    return np.zeros(len(moment.steps), np.bool_)


NEVER = Ending("never", _never, version=1)
"""Episodes never end early."""
