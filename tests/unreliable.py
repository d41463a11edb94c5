"""Algorithms that break the contract in ways that only another process or a long trial shows."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from qdbench import Archive, Evaluated, Grid, Problem, stream


class Sound:
    """It keeps the contract: random solutions, each sampled once."""

    samples = 1

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 8) -> None:
        self.problem, self.seed, self.batch_size, self.iteration = problem, seed, batch_size, 0
        grid = Grid(problem.descriptor_bounds, problem.cells)
        self.archive = Archive(grid, problem.n_parameters, samples=self.samples)

    def salt(self) -> int:
        """What the random numbers depend on besides the seed."""
        return 0

    def ask(self) -> Any:
        rng = stream(self.seed, self.salt(), self.iteration)
        return self.problem.random_solutions(self.batch_size, rng).repeat(self.samples, axis=0)

    def tell(self, evaluated: Evaluated) -> None:
        self.archive.insert(evaluated)
        self.iteration += 1

    def collection(self) -> Evaluated:
        return self.archive.elites


class HashSeed(Sound):
    def salt(self) -> int:
        return hash("salt") % 2**31


class SetOrder(Sound):
    """Only the order in which it hands over its elites depends on the hash seed."""

    def collection(self) -> Evaluated:
        elites = self.archive.elites
        return elites[np.array([int(row) for row in {str(row) for row in range(len(elites))}], np.intp)]


class ProcessId(Sound):
    def salt(self) -> int:
        return os.getpid()


class Address(Sound):
    def salt(self) -> int:
        return id(Sound)


class LateProcessId(Sound):
    def salt(self) -> int:
        return os.getpid() if self.iteration >= 20 else 0


class LateDoubles(Sound):
    def ask(self) -> Any:
        return super().ask().astype(np.float64 if self.iteration >= 20 else np.float32)


class OnlyHere(Sound):
    """It works in the process that imported it first, and in no other."""

    def ask(self) -> Any:
        if os.environ.get("PYTHONHASHSEED") in ("12345", "54321"):
            raise ZeroDivisionError("not here")
        return super().ask()


class Raises(Sound):
    def tell(self, evaluated: Evaluated) -> None:
        raise KeyError("nothing")


class Means(Sound):
    """It samples every solution twice, and keeps the means."""

    samples = 2

    def tell(self, evaluated: Evaluated) -> None:
        n = len(evaluated) // 2
        self.archive.insert(
            Evaluated(
                evaluated.solutions[::2],
                self.mean(evaluated.fitness.reshape(n, 2)),
                evaluated.descriptors.reshape(n, 2, -1).mean(axis=1),
                evaluated.evaluations.reshape(n, 2),
                evaluated.seeds.reshape(n, 2),
            )
        )
        self.iteration += 1

    def mean(self, fitness: Any) -> Any:
        return fitness.mean(axis=1)


class NegativeMeans(Means):
    def mean(self, fitness: Any) -> Any:
        return -fitness.mean(axis=1)


class BestOfTwo(Means):
    def mean(self, fitness: Any) -> Any:
        return fitness.max(axis=1)


class OtherSeeds(Means):
    def collection(self) -> Evaluated:
        elites = self.archive.elites
        columns = {**vars(elites), "seeds": elites.seeds[:, ::-1]}
        return Evaluated(**columns)


class Exits(Sound):
    def tell(self, evaluated: Evaluated) -> None:
        if self.iteration == 2:
            sys.exit(0)
        super().tell(evaluated)


class ExitsAtOnce(Sound):
    def __init__(self, problem: Problem, seed: int) -> None:
        sys.exit()


class Positional(Sound):
    """It runs, but nobody can set its option, and no run.json has it."""

    def __init__(self, problem: Problem, seed: int, sigma: float = 0.1) -> None:
        super().__init__(problem, seed)


class RaisesInside(Sound):
    """What it calls raises, in a file of NumPy."""

    def collection(self) -> Evaluated:
        np.linalg.inv(np.full((2, 2), float(self.iteration != 4)) + np.eye(2) * (self.iteration != 4))
        return super().collection()


class NotANumber(Sound):
    def ask(self) -> Any:
        solutions = super().ask()
        solutions[3, 0] = np.nan
        return solutions
