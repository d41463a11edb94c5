"""Coverage, QD score, highest and lowest fitness of a set of elites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Geometry


@dataclass(frozen=True)
class Scores:
    """The scores of an archive; highest and lowest fitness are NaN if it is empty."""

    coverage: int
    """The number of elites."""
    qd_score: float
    """Σ (fitness - low) / (high - low) over the elites, on the interval [low, high]; nothing is clipped."""
    max_fitness: float
    sum_fitness: float
    min_fitness: float


def scores(fitness: NDArray[np.float64], interval: tuple[float, float]) -> Scores:
    """Return the scores of elites with these fitness values, (elites,), on the interval (low, high)."""
    low, high = map(float, interval)
    n, total = len(fitness), float(fitness.sum())
    return Scores(
        coverage=n,
        qd_score=(total - n * low) / (high - low),
        max_fitness=float(fitness.max()) if n else np.nan,
        sum_fitness=total,
        min_fitness=float(fitness.min()) if n else np.nan,
    )


def self_normalised_qd_score(fitness: NDArray[np.float64]) -> float:
    """Return the QD score on the archive's own fitness range, the formula in the paper's text.

    It cannot compare two archives. NaN if all elites have the same fitness.
    """
    if len(fitness) == 0 or fitness.max() == fitness.min():
        return np.nan
    return float(((fitness - fitness.min()) / (fitness.max() - fitness.min())).sum())


def self_normalised_from_sums(
    coverage: NDArray[Any], total: NDArray[Any], least: NDArray[Any], most: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the same for many archives at once, from coverage, sum, min and max of fitness."""
    width = np.where(most > least, most - least, np.nan)
    score: NDArray[np.float64] = (total - coverage * least) / width
    return score


def mean_normalised_fitness(qd_score: float, coverage: int) -> float:
    """Return the mean fitness of the elites, normalised as the QD score; NaN without elites."""
    return qd_score / coverage if coverage else np.nan


def best_per_cell(collection: Evaluated, geometry: Geometry) -> NDArray[np.float64]:
    """Project a collection onto a geometry: return the highest fitness in every filled cell."""
    return fittest(collection.fitness, geometry.cells(collection.descriptors))


def fittest(fitness: NDArray[np.float64], cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the highest fitness in every filled cell, in the order of the cells."""
    order = np.lexsort((-fitness, cells))
    first = np.diff(cells[order], prepend=-1) != 0
    best: NDArray[np.float64] = fitness[order[first]]
    return best
