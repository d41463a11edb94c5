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
    fitness, descriptors = deviations_of_each(valid)
    return float(np.median(fitness)), float(np.median(descriptors))


def deviations_of_each(
    reevaluations: Reevaluations,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the standard deviations of fitness and descriptor of every elite, (n,) each.

    NaN if a re-evaluation was invalid. Needs two re-evaluations per elite.
    """
    descriptors: NDArray[np.float64] = variances(reevaluations.descriptors).sum(axis=1)
    return np.sqrt(variances(reevaluations.fitness)), np.sqrt(descriptors)


def variances(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the unbiased variances over the second axis; exactly 0 for equal numbers."""
    variances: NDArray[np.float64] = (samples - samples[:, :1]).var(axis=1, ddof=1)
    return variances
