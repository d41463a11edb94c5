"""Whether a task's descriptor can tell its cells apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.experiments.loading import StoredRun

_LOOKED_AT = 20
_ROUNDING = 1e-9
"""Far above what steps * (k / steps) is off by, far below what another real number would be off by."""


def resolution_warning(run: StoredRun) -> str:
    """Return a sentence where a run's episodes have too few steps for its cells, else nothing.

    A descriptor that is a share of the steps of an episode (how often a foot was on the ground) takes one of
    steps + 1 values; whether it is such a share is seen from the elites themselves.
    """
    task, totals = run.record["task"], run.record["totals"]
    cells, length = max(task["options"]["cells"]), task["options"].get("episode_length")
    if length is None or not _are_shares(run.archive.descriptors, length):
        return ""
    lived = totals["steps"] // totals["evaluations"]
    if lived >= cells:
        return ""
    steps = length if length < cells else lived
    usual = "" if length < cells else f" (the mean in {run.path})"
    return (
        f"{task['name']}: the descriptor is a share of an episode's steps, and {steps:,} steps{usual} give "
        f"at most {steps + 1:,} values for {cells:,} cells: cells stay empty, or only differ in how long the "
        "episode was"
    )


def _are_shares(descriptors: NDArray[np.float64], length: int) -> bool:
    """Return whether every elite's descriptor is k / steps with one number of steps up to `length`."""
    some = descriptors[:_LOOKED_AT]
    counts = some[:, None, :] * np.arange(1.0, length + 1)[:, None]  # (elites, steps, dimensions)
    whole = (np.abs(counts - np.rint(counts)) < _ROUNDING).all(axis=2)
    return bool(len(some) and whole.any(axis=1).all())
