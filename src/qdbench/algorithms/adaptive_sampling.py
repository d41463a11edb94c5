"""Adaptive-Sampling: who challenges an elite must prove it with as many samples."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Problem, SavedState
from qdbench.algorithms.sampling import Sampling
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.samples import extended, joined, padded
from qdbench.policy import Parameters


class AdaptiveSampling(Sampling):
    """A newcomer that looks fitter than the elite of its cell gets one more sample per iteration.

    This goes on until it has as many samples as the elite, or is no longer fitter. An elite gets one sample
    more when a challenge begins, and moves if its mean descriptor leaves its cell. An iteration has exactly
    `batch_size` evaluations: first of challengers, then of challenged elites, then of new solutions.

    Source: Justesen, Risi and Mouret 2019.
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
        depth: int = 10,
        max_samples: int = 500,
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
            samples=max_samples,
            memory_gb=memory_gb,
        )
        self._challengers = padded(self.container.members, max_samples)
        self._challenged = np.empty(0, np.int64)  # cells whose elite is to be sampled again

    def _elites(self) -> NDArray[np.int64]:
        """Return the rows of the elites to sample, as far as there are evaluations left."""
        rows = self.container.best_of(self._challenged)
        rows = rows[rows >= 0]
        rows = rows[self.container.counts[rows] < self.container.samples]
        return rows[: self._batch_size - len(self._challengers)]

    def ask(self) -> Parameters:
        """Return the challengers, the elites they challenge, and new solutions."""
        again = self._challengers.solutions, self.container.members.solutions[self._elites()]
        left = self._batch_size - sum(map(len, again))
        return np.concatenate([*again, *([self._new(left)] if left else [])])

    def tell(self, evaluated: Evaluated) -> None:
        """Add the samples, then decide about all that wait for a place."""
        rows, n = self._elites(), len(self._challengers)
        before = extended(self._challengers, evaluated[:n])
        new = padded(evaluated[n + len(rows) :], self.container.samples)
        self.container.resample(rows, evaluated[n : n + len(rows)])
        waiting, is_new = joined(before, new), np.arange(n + len(new)) >= n
        is_new, waiting = is_new[waiting.valid], waiting[waiting.valid]
        self._decide(waiting, is_new)
        self._count(new)

    def _decide(self, waiting: Evaluated, is_new: NDArray[np.bool_]) -> None:
        """Insert who need not be sampled, or has been; the others go on as challengers."""
        cells = self.container.geometry.cells(waiting.descriptors)
        elites = self.container.best_of(cells)
        met = elites >= 0  # a cell without an elite is entered at once
        fitter, fewer = np.zeros((2, len(waiting)), np.bool_)
        fitter[met] = waiting.fitness[met] > self.container.members.fitness[elites[met]]
        fewer[met] = waiting.samples[met] < self.container.counts[elites[met]]
        # an elite of one sample is sampled once more before a newcomer of one sample replaces it
        untested = is_new & (waiting.samples < self.container.samples)
        goes_on = fitter & (fewer | untested)
        self._challenged = np.unique(cells[goes_on & is_new])
        self._challengers = waiting[goes_on]
        self.container.insert(waiting[~goes_on])

    def state(self) -> SavedState:
        """Return the counters, the container and the challengers."""
        waiting = {f.name: getattr(self._challengers, f.name) for f in fields(Evaluated)}
        return {**super().state(), "challengers": waiting, "challenged": self._challenged}

    def restore(self, state: SavedState) -> None:
        """Continue from `state`."""
        super().restore(state)
        self._challengers = _copied(Evaluated(**state["challengers"]))
        self._challenged = state["challenged"].copy()


def _copied(evaluated: Evaluated) -> Evaluated:
    return Evaluated(**{f.name: getattr(evaluated, f.name).copy() for f in fields(Evaluated)})
