"""The spread of the re-evaluations of an elite."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.metrics.robustness import Reevaluations


def deviations(reevaluations: Reevaluations) -> tuple[float, float]:
    """Return the medians over elites of the standard deviations of fitness and descriptor.

    For a descriptor, it is the square root of the variances summed over dimensions. Elites with an invalid
    re-evaluation do not count. NaN if no elite is left, or with one re-evaluation per elite.
    """
    valid = reevaluations.valid()
    if not len(valid) or valid.n_samples < 2:
        return np.nan, np.nan
    fitness = np.sqrt(variances(valid.fitness))
    descriptors = np.sqrt(variances(valid.descriptors).sum(axis=1))
    return float(np.median(fitness)), float(np.median(descriptors))


def variances(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the unbiased variances over the second axis; exactly 0 for equal numbers."""
    variances: NDArray[np.float64] = (samples - samples[:, :1]).var(axis=1, ddof=1)
    return variances
