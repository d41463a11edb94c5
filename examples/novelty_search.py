"""A search for novelty alone: it never looks at fitness."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

import qdbench
from qdbench import Archive, Evaluated, Grid, Problem
from qdbench.algorithms.variation import iso_line
from qdbench.policy import Parameters


class NoveltySearch:
    """Vary the solutions whose behaviour is farthest from that of the others (Lehman and Stanley 2011).

    The archive keeps the first solution of every cell, never a fitter one. Novelty is the mean distance to
    the `neighbours` nearest descriptors in it. Descriptors are normalised: 0 to 1 within the bounds.
    """

    def __init__(
        self, problem: Problem, seed: int, *, batch_size: int = 256, parents: int = 64, neighbours: int = 15
    ) -> None:
        self.problem, self.seed, self.batch_size = problem, seed, batch_size
        self.n_parents, self.neighbours = parents, neighbours
        self.grid = Grid(problem.descriptor_bounds, problem.cells)
        self.archive = Archive(self.grid, problem.n_parameters)
        self.iteration = 0

    def ask(self) -> Parameters:
        """Return random solutions at first, then offspring of the most novel ones."""
        rng = qdbench.stream(self.seed, "ask", self.iteration)
        if len(self.archive) == 0:
            return self.problem.random_solutions(self.batch_size, rng)
        most_novel = np.argsort(-self.novelty(), kind="stable")[: self.n_parents]
        return iso_line(self.archive.elites.solutions[most_novel], self.batch_size, 0.005, 0.05, rng)

    def novelty(self) -> NDArray[np.float64]:
        """Return how novel each solution of the archive is, (n,)."""
        low, high = self.grid.bounds.T
        places = np.clip((self.archive.elites.descriptors - low) / (high - low), 0, 1)
        # the nearest is the solution itself, at distance 0: it does not change the order
        nearest = np.arange(1, min(self.neighbours + 1, len(places)) + 1)
        novelty: NDArray[np.float64] = KDTree(places).query(places, k=nearest)[0].mean(axis=1)
        return novelty

    def tell(self, evaluated: Evaluated) -> None:
        """Keep the first solution of every cell that was empty."""
        valid = evaluated[evaluated.valid]
        cells, first = np.unique(self.grid.cells(valid.descriptors), return_index=True)
        self.archive.insert(valid[np.sort(first[~np.isin(cells, self.archive.cells)])])
        self.iteration += 1

    def collection(self) -> Evaluated:
        """Return the first solution of every cell."""
        return self.archive.elites


if __name__ == "__main__":
    qdbench.check_algorithm(NoveltySearch)
