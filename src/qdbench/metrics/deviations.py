"""How far the re-evaluations of an elite scatter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.metrics.robustness import Reevaluations


def deviations(reevaluations: Reevaluations) -> tuple[float, float]:
    """Return the medians over elites of the standard deviations of fitness and of descriptor.

    That of a descriptor is the root of its variances summed over dimensions. Elites with an invalid
    re-evaluation do not count; NaN where no elite is left, or from one re-evaluation each.
    """
    left = ~np.isnan(reevaluations.fitness).any(axis=1)
    if not left.any() or reevaluations.fitness.shape[1] < 2:
        return np.nan, np.nan
    fitness = np.sqrt(_variances(reevaluations.fitness[left]))
    descriptors = np.sqrt(_variances(reevaluations.descriptors[left]).sum(axis=1))
    return float(np.median(fitness)), float(np.median(descriptors))


def _variances(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the unbiased variances over the second axis; of equal numbers exactly 0."""
    variances: NDArray[np.float64] = (samples - samples[:, :1]).var(axis=1, ddof=1)
    return variances
