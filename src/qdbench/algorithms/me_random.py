"""Offspring of random solutions: the control that never uses its grid."""

from __future__ import annotations

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.map_elites import MapElites
from qdbench.algorithms.variation import iso_line
from qdbench.policy import Parameters
from qdbench.seeds import bulk_stream


class MeRandom(MapElites):
    """MAP-Elites whose parents are fresh random solutions, never its elites: what selection adds.

    The grid keeps the fittest of every cell, as in MAP-Elites.

    Source: a control of Flageat and Cully 2023.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        iso_sigma: float = 0.005,
        line_sigma: float = 0.05,
    ) -> None:
        super().__init__(problem, seed, batch_size=batch_size, iso_sigma=iso_sigma, line_sigma=line_sigma)

    def ask(self) -> Parameters:
        """Return offspring of solutions that are drawn for this iteration alone."""
        generator = bulk_stream(self._seed, "ask", self._iteration)
        parents = self._problem.random_solutions(self._batch_size, generator)
        return iso_line(parents, self._batch_size, *self._sigmas, generator)
