"""Whether a task's descriptor can tell its cells apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.experiments.loading import StoredRun

_LOOKED_AT = 20
_ROUNDING = 1e-9
"""Far above what k / steps × steps is off by, far below what another real number would be off by."""


def resolution_warning(run: StoredRun) -> str:
    """Return a sentence where a run's episodes have too few steps for its cells, else nothing.

    A descriptor that is a share of the steps of an episode (how often a foot was on the ground) takes one of
    steps + 1 values; whether it is such a share is seen from the elites themselves.
    """
    task, totals = run.record["task"], run.record["totals"]
    cells, length = max(task["options"]["cells"]), task["options"].get("episode_length")
    if length is None or not _are_shares(run.archive.descriptors, length):
        return ""
    lived = totals["steps"] / totals["evaluations"]
    if length < cells:
        episodes = f"an episode of {length:,} steps gives"
    elif lived < cells:
        episodes = f"episodes of {lived:,.0f} steps, as these are on average, give"
    else:
        return ""
    values = min(length, int(lived)) + 1 if length >= cells else length + 1
    return (
        f"{task['name']}: the descriptor is a share of the steps of an episode, and {episodes} at most {values:,} "
        f"values for {cells:,} cells: cells stay empty, or are told apart by how long an episode was"
    )


def _are_shares(descriptors: NDArray[np.float64], length: int) -> bool:
    """Return whether every elite's descriptor is k / steps with one number of steps up to `length`."""
    some = descriptors[:_LOOKED_AT]
    counts = some[:, None, :] * np.arange(1.0, length + 1)[:, None]  # (elites, steps, dimensions)
    whole = (np.abs(counts - np.rint(counts)) < _ROUNDING).all(axis=2)
    return bool(len(some) and whole.any(axis=1).all())
