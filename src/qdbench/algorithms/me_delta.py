"""MAP-Elites that trades fitness against reproducibility: by thresholds."""

from __future__ import annotations

import numpy as np

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.map_elites import at_least
from qdbench.algorithms.me_sampling import MeSampling
from qdbench.algorithms.me_weighted import normalised_fitness, spreads
from qdbench.archives.evaluated import Evaluated


class MeDelta(MeSampling):
    """MAP-Elites with `samples` evaluations each; fitness may fall a little for a smaller spread.

    A newcomer replaces the elite if its fitness is higher by more than `fitness_delta`, or if its fitness is
    not lower by more than that and its spread is smaller by more than `spread_delta`. Both are shares: of the
    fitness bounds and of the descriptor's box.

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
        fitness_delta: float = 0.01,
        spread_delta: float = 0.005,
    ) -> None:
        at_least("samples", samples, 2)
        at_least("fitness_delta", fitness_delta, 0)
        at_least("spread_delta", spread_delta, 0)
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
        self._deltas = fitness_delta, spread_delta

    def _insert(self, told: Evaluated, means: Evaluated) -> None:
        """One after the other: the rule is no order, so a batch cannot be sorted."""
        shares = normalised_fitness(self._problem, means.fitness)
        steady = -spreads(self._problem, told, self._k)
        for i in np.flatnonzero(means.valid).tolist():
            newcomer = means[i : i + 1]
            (row,) = self.container.best_of(self.container.geometry.cells(newcomer.descriptors))
            if row < 0 or self._replaces(shares[i], steady[i], int(row)):
                # with one place per cell, the random occupant that leaves is the elite
                self.container.insert(newcomer, scores=steady[i : i + 1], random=self._stream("tell"))

    def _replaces(self, share: float, steady: float, row: int) -> bool:
        elite = normalised_fitness(self._problem, self.container.members.fitness[row : row + 1])[0]
        by_fitness, by_spread = self._deltas
        if share > elite + by_fitness:
            return True
        return bool(share >= elite - by_fitness and steady > self.container.scores[row] + by_spread)
