"""The archive profile: the number of elites with at least a given fitness, as an exact step function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Profile:
    """A step function: `counts[i]` elites have a fitness of `steps[i]` or more."""

    steps: NDArray[np.float64]  #: (m,) all different fitness values, ascending
    counts: NDArray[np.int64]  #: (m,)

    def __call__(self, threshold: ArrayLike) -> NDArray[np.int64]:
        """Return how many elites have at least this fitness."""
        place = np.searchsorted(self.steps, threshold, side="left")
        return np.append(self.counts, 0)[place]

    def area(self, low: float, high: float) -> float:
        """Return the exact area under the step function between two fitness values.

        On an interval that contains every fitness, it is (high - low) × the QD score on that interval.
        """
        edges = np.clip(np.concatenate([[low], self.steps, [high]]), low, high)
        return float(np.diff(edges) @ np.append(self.counts, 0))


def profile(fitness: NDArray[np.float64]) -> Profile:
    """Return the profile of elites with these fitness values, (n,)."""
    steps, counts = np.unique(fitness, return_counts=True)
    return Profile(steps, len(fitness) - np.cumsum(counts) + counts)
