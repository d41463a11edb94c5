"""What the algorithms for noisy tasks share: a container with depth, fresh solutions, offspring, saving."""

from __future__ import annotations

import numpy as np

from qdbench.algorithms.contract import Problem, SavedState
from qdbench.algorithms.map_elites import at_least
from qdbench.algorithms.variation import iso_line
from qdbench.archives.deep import DeepArchive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Grid
from qdbench.errors import InvalidInput
from qdbench.policy import Parameters
from qdbench.seeds import bulk_stream


class Sampling:
    """Counters, the container, and how new solutions are made; what is asked for is left to the algorithm."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int,
        initial: int,
        iso_sigma: float,
        line_sigma: float,
        depth: int = 1,
        samples: int = 1,
        memory_gb: float = 4.0,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("initial", initial), ("samples", samples)):
            at_least(name, value, 1)
        at_least("iso_sigma", iso_sigma, 0)
        at_least("line_sigma", line_sigma, 0)
        self._problem, self._seed = problem, seed
        self._batch_size, self._initial = batch_size, initial
        self._sigmas = iso_sigma, line_sigma
        self._iteration = self._made = 0
        grid = Grid(problem.descriptor_bounds, problem.cells)
        self.container = DeepArchive(
            grid, problem.n_parameters, depth=depth, samples=samples, memory_gb=memory_gb
        )

    def require_memory(self, n_cells: int) -> None:
        """Refuse so many cells if their solutions would not fit into `memory_gb`."""
        self.container.require_memory(n_cells)

    def _stream(self, name: str) -> np.random.Generator:
        """Return a random stream of this iteration."""
        return bulk_stream(self._seed, name, self._iteration)

    @property
    def _starts(self) -> bool:
        """Whether solutions are still drawn at random."""
        return self._made < self._initial or not len(self.container)

    def _new(self, n: int) -> Parameters:
        """Return `n` fresh solutions at the start, then offspring of the best of each cell."""
        generator = self._stream("ask")
        if self._starts:
            return self._problem.random_solutions(n, generator)
        return iso_line(self.container.best.solutions, n, *self._sigmas, generator)

    def _count(self, new: Evaluated) -> None:
        """End an iteration with these new solutions: their number counts, not that of their samples."""
        self._made += len(new)
        self._iteration += 1

    def collection(self) -> Evaluated:
        """Return the best of each cell, with all its samples."""
        return self.container.best

    def state(self) -> SavedState:
        """Return the counters and the container: every iteration has random streams of its own."""
        return {"iteration": self._iteration, "made": self._made, "container": self.container.state()}

    def restore(self, state: SavedState) -> None:
        """Continue from `state`."""
        self._iteration, self._made = state["iteration"], state["made"]
        self.container.restore(state["container"])


def n_groups(batch_size: int, k: int) -> int:
    """Return how many solutions can be sampled k times in one iteration: at least one."""
    return max(1, batch_size // k)


def require_samples(samples: int, most: int) -> None:
    """Refuse first samples for which there is no place."""
    if samples > most:
        raise InvalidInput(f"samples is {samples}, more than max_samples, {most}; give fewer")


def repeated(solutions: Parameters, k: int) -> Parameters:
    """Return each solution k times in a row."""
    return solutions if k == 1 else np.repeat(solutions, k, axis=0)
