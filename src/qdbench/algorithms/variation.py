"""How offspring are made from elites."""

from __future__ import annotations

import numpy as np

from qdbench.policy import Parameters


def iso_line(
    elites: Parameters, n: int, iso_sigma: float, line_sigma: float, generator: np.random.Generator
) -> Parameters:
    """Return `n` offspring: a random elite, plus isotropic noise, plus a step along the line to another.

    x = a + iso_sigma N(0, I) + line_sigma N(0, 1) (b - a), with a and b drawn uniformly.
    """
    first, second = generator.integers(len(elites), size=(2, n))
    steps = generator.standard_normal((n, 1), np.float32)
    steps *= np.float32(line_sigma)
    offspring = generator.standard_normal((n, elites.shape[1]), np.float32)
    offspring *= np.float32(iso_sigma)
    chosen, towards = elites[first], elites[second]
    towards -= chosen
    towards *= steps
    offspring += chosen
    offspring += towards
    return offspring
