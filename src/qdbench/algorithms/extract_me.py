"""Extract-ME: a part of each iteration re-evaluates solutions taken out of the container."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.map_elites import at_least
from qdbench.algorithms.sampling import Sampling, n_groups, repeated, require_samples
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.samples import grouped
from qdbench.errors import InvalidInput
from qdbench.policy import Parameters


class ExtractMe(Sampling):
    """A share of each iteration samples solutions of the container again, the better ones more often.

    They are drawn without replacement, with the weight exp(-rank in the cell), taken out, and put back at the
    means of all their samples. Offspring are evaluated `samples` times first. A solution with `max_samples`
    is not drawn.

    Source: Flageat, Huber, Helenon, Doncieux and Cully 2025 (Extract-QD).
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
        depth: int = 8,
        samples: int = 2,
        max_samples: int = 128,
        extracted: float = 0.25,
        memory_gb: float = 4.0,
    ) -> None:
        require_samples(samples, max_samples)
        at_least("extracted", extracted, 0)
        if extracted > 1:
            raise InvalidInput(f"extracted is {extracted}; give a share of the evaluations, at most 1")
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
        self._k, self._share = samples, extracted

    def _taken_out(self) -> NDArray[np.int64]:
        """Return the rows to sample again; the random keys give a draw without replacement."""
        if self._starts:
            return np.empty(0, np.int64)
        table = self.container.table
        places = table >= 0
        rows, ranks = table[places].astype(np.int64), np.nonzero(places)[1]
        open_ = self.container.counts[rows] < self.container.samples
        rows, ranks = rows[open_], ranks[open_]
        n = min(int(self._batch_size * self._share), len(rows))
        keys = self._stream("extract").gumbel(size=len(rows)) - ranks
        return np.sort(rows[np.argpartition(-keys, n - 1)[:n]]) if n else rows[:0]

    def ask(self) -> Parameters:
        """Return the solutions that are taken out, then new ones, each a few times."""
        rows = self._taken_out()
        new = repeated(self._new(n_groups(self._batch_size - len(rows), self._k)), self._k)
        return np.concatenate([self.container.members.solutions[rows], new]) if len(rows) else new

    def tell(self, evaluated: Evaluated) -> None:
        """Put everything into the cells of its means."""
        rows = self._taken_out()
        offspring = grouped(evaluated[len(rows) :], self._k)
        self.container.resample(rows, evaluated[: len(rows)], offspring)
        self._count(offspring)
