"""How offspring are made from elites."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.policy import Parameters

CACHED = 65536
"""Numbers that are worked on at once: few enough to stay in the cache, which is three times faster."""


def iso_line(
    elites: Parameters, n: int, iso_sigma: float, line_sigma: float, generator: np.random.Generator
) -> Parameters:
    """Return `n` offspring: a random elite, plus isotropic noise, plus a step along the line to another.

    x = a + iso_sigma N(0, I) + line_sigma N(0, 1) (b - a), with a and b drawn uniformly.
    """
    first, second = generator.integers(len(elites), size=(2, n))
    return iso_line_of(elites, first, second, iso_sigma, line_sigma, generator)


def iso_line_of(
    solutions: Parameters,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    iso_sigma: float,
    line_sigma: float,
    generator: np.random.Generator,
) -> Parameters:
    """Return one offspring for each pair of rows: the first parent is a, the second b."""
    n = len(first)
    steps = generator.standard_normal((n, 1), np.float32)
    steps *= np.float32(line_sigma)
    offspring = generator.standard_normal((n, solutions.shape[1]), np.float32)
    rows = max(1, CACHED // solutions.shape[1])
    for start in range(0, n, rows):
        some = slice(start, start + rows)
        chosen, towards = solutions[first[some]], solutions[second[some]]
        towards -= chosen
        towards *= steps[some]
        towards += chosen
        offspring[some] *= np.float32(iso_sigma)
        offspring[some] += towards
    return offspring
