"""MAP-Elites with a fixed number of samples: every offspring is evaluated k times."""

from __future__ import annotations

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.sampling import Sampling, n_groups, repeated
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.samples import grouped
from qdbench.policy import Parameters


class MeSampling(Sampling):
    """MAP-Elites whose offspring are evaluated `samples` times and inserted with their means.

    An iteration makes `batch_size` evaluations, rounded down to whole offspring, at least one offspring.

    Source: the usual baseline for noisy tasks, e.g. in Flageat and Cully 2023.
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
    ) -> None:
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
        self._k = samples

    def ask(self) -> Parameters:
        """Return new solutions, each k times."""
        return repeated(self._new(n_groups(self._batch_size, self._k)), self._k)

    def tell(self, evaluated: Evaluated) -> None:
        """Insert the solutions with the means of their samples."""
        means = grouped(evaluated, self._k)
        self._insert(evaluated, means)
        self._count(means)

    def _insert(self, told: Evaluated, means: Evaluated) -> None:
        self.container.insert(means)
