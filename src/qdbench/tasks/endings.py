"""The built-in endings. An episode also ends after `episode_length` control steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import checked_interval
from qdbench.tasks.terms import Ending, Moment


def healthy(low: float, high: float) -> Ending:
    """End the episode when the root's height leaves the interval from `low` to `high`, in metres."""
    low, high = checked_interval("healthy", (low, high), finite=False)
    return Ending("healthy", _unhealthy, {"low": low, "high": high}, demands=("floating root",), version=1)


def _unhealthy(moment: Moment, *, low: float, high: float) -> NDArray[np.bool_]:
    height = moment.state.qpos[:, 1 if moment.robot.planar else 2]
    inside: NDArray[np.bool_] = (height > low) & (height < high)
    return ~inside


def _never(moment: Moment) -> NDArray[np.bool_]:
    return np.zeros(len(moment.steps), np.bool_)


NEVER = Ending("never", _never, version=1)
"""Episodes never end early."""
