"""Archive-Sampling: every generation the whole container is sampled again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.sampling import Sampling, n_groups, repeated, require_samples
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.samples import grouped
from qdbench.policy import Parameters


class ArchiveSampling(Sampling):
    """Every iteration samples the whole container once more, then puts everything back at its means.

    An iteration evaluates all solutions of the container once, and as many offspring as `batch_size`
    evaluations allow, `samples` times each. A solution with `max_samples` is not sampled again: this bounds
    memory.

    Source: Flageat and Cully 2023.
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
        depth: int = 2,
        samples: int = 2,
        max_samples: int = 128,
        memory_gb: float = 4.0,
    ) -> None:
        require_samples(samples, max_samples)
        super().__init__(
            problem,
            seed,
            batch_size=batch_size,
            initial=initial,
            iso_sigma=iso_sigma,
            line_sigma=line_sigma,
            depth=depth,
            samples=max_samples,
            memory_gb=memory_gb,
        )
        self._k = samples

    def _first_samples(self) -> int:
        """Return how often an offspring is evaluated."""
        return self._k

    def _again(self) -> NDArray[np.int64]:
        """Return the rows to sample again."""
        return np.flatnonzero(self.container.counts < self.container.samples)

    def ask(self) -> Parameters:
        """Return the whole container, then new solutions, each a few times."""
        k = self._first_samples()
        new = repeated(self._new(n_groups(self._batch_size, k)), k)
        rows = self._again()
        return np.concatenate([self.container.members.solutions[rows], new]) if len(rows) else new

    def tell(self, evaluated: Evaluated) -> None:
        """Add the samples, and put everything into the cells of its means."""
        rows = self._again()
        offspring = grouped(evaluated[len(rows) :], self._first_samples())
        self.container.resample(rows, evaluated[: len(rows)], offspring)
        self._count(offspring)
