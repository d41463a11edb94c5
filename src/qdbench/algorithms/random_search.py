"""Random search: the baseline that never selects."""

from __future__ import annotations

from typing import Literal

import numpy as np

from qdbench.algorithms.contract import Problem, SavedState
from qdbench.algorithms.map_elites import at_least
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Grid
from qdbench.checks import checked_choice
from qdbench.policy import Parameters
from qdbench.seeds import bulk_stream

WIDTH = 5.0  # of `uniform`: every weight in [-5, 5], as in the authors' later code


class RandomSearch:
    """Fresh random solutions into the task's grid; nothing is ever varied.

    `init` is `lecun` (the task's own fresh solutions) or `uniform` (every parameter in ±5).
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        init: Literal["lecun", "uniform"] = "lecun",
    ) -> None:
        at_least("batch_size", batch_size, 1)
        checked_choice("init", init, ("lecun", "uniform"))
        self._problem, self._seed, self._batch_size, self._init = problem, seed, batch_size, init
        self._iteration = 0
        self.archive = Archive(Grid(problem.descriptor_bounds, problem.cells), problem.n_parameters)

    def ask(self) -> Parameters:
        """Return fresh solutions."""
        generator = bulk_stream(self._seed, "ask", self._iteration)
        if self._init == "lecun":
            return self._problem.random_solutions(self._batch_size, generator)
        solutions = generator.random((self._batch_size, self._problem.n_parameters), np.float32)
        solutions *= np.float32(2 * WIDTH)
        solutions -= np.float32(WIDTH)
        return solutions

    def tell(self, evaluated: Evaluated) -> None:
        """Insert the evaluated solutions into the archive."""
        self.archive.insert(evaluated)
        self._iteration += 1

    def collection(self) -> Evaluated:
        """Return the elites."""
        return self.archive.elites

    def state(self) -> SavedState:
        """Return the counter and the archive."""
        return {"iteration": self._iteration, "archive": self.archive.state()}

    def restore(self, state: SavedState) -> None:
        """Continue from `state`."""
        self._iteration = state["iteration"]
        self.archive.restore(state["archive"])
