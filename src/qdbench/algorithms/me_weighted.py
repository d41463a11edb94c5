"""MAP-Elites that trades fitness against reproducibility: by a weighted sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.map_elites import at_least
from qdbench.algorithms.me_sampling import MeSampling
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Box
from qdbench.errors import InvalidInput


class MeWeighted(MeSampling):
    """MAP-Elites with `samples` evaluations each, ordered by fitness minus the spread of the descriptor.

    The score is (1 - weight) × normalised fitness - weight × spread. The spread is the standard deviation of
    the normalised descriptor, the mean over its dimensions.

    Source: Flageat, Janmohamed, Lim and Cully 2024.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        initial: int = 256,
        iso_sigma: float = 0.005,
        line_sigma: float = 0.05,
        samples: int = 32,
        memory_gb: float = 4.0,
        weight: float = 0.5,
    ) -> None:
        at_least("samples", samples, 2)
        at_least("weight", weight, 0)
        if weight > 1:
            raise InvalidInput(
                f"weight is {weight}; give a number from 0 (fitness alone) to 1 (spread alone)"
            )
        super().__init__(
            problem,
            seed,
            batch_size=batch_size,
            initial=initial,
            iso_sigma=iso_sigma,
            line_sigma=line_sigma,
            samples=samples,
            memory_gb=memory_gb,
        )
        self._weight = weight

    def _insert(self, told: Evaluated, means: Evaluated) -> None:
        shares = normalised_fitness(self._problem, means.fitness)
        scores = (1 - self._weight) * shares - self._weight * spreads(self._problem, told, self._k)
        self.container.insert(means, scores=scores)


def normalised_fitness(problem: Problem, fitness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return fitness as a share of what is possible."""
    low, high = problem.fitness_bounds
    shares: NDArray[np.float64] = (fitness - low) / (high - low)
    return shares


def spreads(problem: Problem, told: Evaluated, k: int) -> NDArray[np.float64]:
    """Return how far the descriptors of k samples scatter, in shares of the descriptor's box, (n / k,)."""
    shares = Box(problem.descriptor_bounds).shares(told.descriptors).reshape(len(told) // k, k, -1)
    shares = shares - shares[:, :1]  # so that equal samples have exactly 0
    found: NDArray[np.float64] = shares.std(axis=1, ddof=1).mean(axis=1)
    return found
