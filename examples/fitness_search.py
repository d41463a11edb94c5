"""A search for fitness alone: a (64 + 256) evolution strategy that never looks at a descriptor."""

import numpy as np

import qdbench
from qdbench import Archive, Evaluated, Grid, Problem
from qdbench.algorithms.variation import iso_line
from qdbench.policy import Parameters


class FitnessSearch:
    """Vary the fittest solutions found so far.

    The archive takes no part in the search. It is what the user gets: the fittest solution of every cell.
    """

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 256, parents: int = 64) -> None:
        self.problem, self.seed, self.batch_size, self.n_parents = problem, seed, batch_size, parents
        self.archive = Archive(Grid(problem.descriptor_bounds, problem.cells), problem.n_parameters)
        self.parents = np.empty((0, problem.n_parameters), np.float32)
        self.fitness = np.empty(0)
        self.iteration = 0

    def ask(self) -> Parameters:
        """Return random solutions at first, then offspring of the parents."""
        rng = qdbench.stream(self.seed, "ask", self.iteration)
        if len(self.parents) == 0:
            return self.problem.random_solutions(self.batch_size, rng)
        return iso_line(self.parents, self.batch_size, 0.005, 0.05, rng)

    def tell(self, evaluated: Evaluated) -> None:
        """Keep the fittest of the parents and the new solutions."""
        valid = evaluated[evaluated.valid]
        fitness = np.concatenate([self.fitness, valid.fitness])
        best = np.argsort(-fitness, kind="stable")[: self.n_parents]
        self.parents = np.concatenate([self.parents, valid.solutions])[best]
        self.fitness = fitness[best]
        self.archive.insert(valid)
        self.iteration += 1

    def collection(self) -> Evaluated:
        """Return the fittest solution of every cell."""
        return self.archive.elites


if __name__ == "__main__":
    qdbench.check_algorithm(FitnessSearch)
