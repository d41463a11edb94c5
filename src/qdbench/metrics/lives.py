"""Which elites lived to the end of their episode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def lived(
    steps: NDArray[Any], evaluations: NDArray[np.int64], episode_length: int | None
) -> NDArray[np.bool_] | None:
    """Return which elites lived to the end in all their samples, (n,); None without an episode length.

    `steps` are those of every sample, (n, k). Where `evaluations` is below 0, there is no sample.
    """
    if episode_length is None:
        return None
    alive: NDArray[np.bool_] = ((steps == episode_length) | (evaluations < 0)).all(axis=1)
    return alive


def lived_again(steps: NDArray[Any], valid: NDArray[np.bool_], episode_length: int) -> NDArray[np.bool_]:
    """Return which re-evaluations lived to the end, (n, N); an invalid one did not."""
    alive: NDArray[np.bool_] = (steps == episode_length) & valid
    return alive


def mostly(alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which elites lived to the end in at least half of their re-evaluations, (n,)."""
    most: NDArray[np.bool_] = 2 * alive.sum(axis=1) >= alive.shape[1]
    return most
