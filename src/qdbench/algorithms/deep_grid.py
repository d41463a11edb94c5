"""Deep-Grid: several solutions per cell, so that one lucky evaluation does not decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.sampling import Sampling
from qdbench.algorithms.variation import iso_line_of
from qdbench.archives.evaluated import Evaluated
from qdbench.policy import Parameters


class DeepGrid(Sampling):
    """A grid with `depth` places per cell; newcomers always enter, in a full cell for a random occupant.

    Each solution is evaluated once. Parents: a random filled cell, then in proportion to fitness within it,
    scaled so that the least fit has 0.

    Source: Flageat and Cully 2020.
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
        depth: int = 32,
        memory_gb: float = 4.0,
    ) -> None:
        super().__init__(
            problem,
            seed,
            batch_size=batch_size,
            initial=initial,
            iso_sigma=iso_sigma,
            line_sigma=line_sigma,
            depth=depth,
            memory_gb=memory_gb,
        )

    def ask(self) -> Parameters:
        """Return fresh solutions at the start, then offspring."""
        if self._starts:
            return self._new(self._batch_size)
        generator = self._stream("ask")
        first, second = self._parents(2 * self._batch_size, generator).reshape(2, -1)
        solutions = self.container.members.solutions
        return iso_line_of(solutions, first, second, *self._sigmas, generator)

    def _parents(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return the rows of `n` parents."""
        table = self.container.table
        rows = table[generator.integers(len(table), size=n)]
        fitness = np.where(rows >= 0, self.container.members.fitness[rows], np.nan)
        least, most = np.nanmin(fitness, axis=1), np.nanmax(fitness, axis=1)
        flat = most == least
        weights = np.where(flat[:, None], 1.0, fitness - least[:, None])
        ends = np.cumsum(np.where(rows >= 0, weights, 0.0), axis=1)
        places = (ends > generator.random((n, 1)) * ends[:, -1:]).argmax(axis=1)
        chosen: NDArray[np.int64] = rows[np.arange(n), places].astype(np.int64)
        return chosen

    def tell(self, evaluated: Evaluated) -> None:
        """Let the evaluated solutions enter."""
        self.container.insert(evaluated, random=self._stream("tell"))
        self._count(evaluated)
