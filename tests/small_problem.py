"""A problem without a task, for algorithms alone: a sphere and its evaluation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.archives.evaluated import Evaluated
from qdbench.policy import Parameters

BOX = ((-1.0, 1.0), (-1.0, 1.0))


def problem(n_parameters: int = 6, cells: tuple[int, int] = (8, 8)) -> Problem:
    def random_solutions(n: int, generator: np.random.Generator) -> Parameters:
        return generator.uniform(-1, 1, (n, n_parameters)).astype(np.float32)

    return Problem(
        n_parameters=n_parameters,
        descriptor_bounds=BOX,
        cells=cells,
        fitness_bounds=(-1.0, 0.0),
        random_solutions=random_solutions,
    )


def evaluate(solutions: Parameters, first: int = 0, valid: NDArray[np.bool_] | bool = True) -> Evaluated:
    """A sphere; the descriptor is the mean of either half."""
    x = solutions.astype(np.float64)
    half = x.shape[1] // 2
    fitness = -np.square(x - 0.2).mean(axis=1)
    descriptors = 2 * np.stack([x[:, :half].mean(axis=1), x[:, half:].mean(axis=1)], axis=1)
    fitness[~np.broadcast_to(valid, len(x))] = np.nan
    numbers = np.arange(first, first + len(x))[:, None]
    return Evaluated(solutions, fitness, descriptors, numbers, numbers.astype(np.uint64) * 2**40)


def iterate(algorithm: Algorithm, n: int) -> list[Parameters]:
    asked: list[Parameters] = []
    for _ in range(n):
        asked.append(algorithm.ask().copy())
        algorithm.tell(evaluate(asked[-1], sum(map(len, asked[:-1]))))
    return asked
