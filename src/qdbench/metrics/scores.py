"""Coverage, QD score and the extremes of a set of elites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Geometry
from qdbench.archives.evaluated import Evaluated


@dataclass(frozen=True)
class Scores:
    """What an archive is measured by; NaN where it is empty."""

    coverage: int
    """How many cells hold an elite."""
    qd_score: float
    """Σ (fitness - low) / (high - low) over the elites, on a fixed interval; nothing is clipped."""
    max_fitness: float
    sum_fitness: float
    min_fitness: float


def scores(fitness: NDArray[np.float64], interval: tuple[float, float]) -> Scores:
    """Measure elites by their fitness, (elites,), on the interval (low, high)."""
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
    """Return the QD score on the archive's own range, the formula of the paper's text.

    Every archive is its own yardstick, so it cannot compare two. NaN without a range.
    """
    if len(fitness) == 0 or fitness.max() == fitness.min():
        return np.nan
    return float(((fitness - fitness.min()) / (fitness.max() - fitness.min())).sum())


def self_normalised_from_sums(
    coverage: NDArray[Any], total: NDArray[Any], least: NDArray[Any], most: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the same of many archives at once, from their number of elites, sum, min and max of fitness."""
    width = np.where(most > least, most - least, np.nan)
    score: NDArray[np.float64] = (total - coverage * least) / width
    return score


def mean_normalised_fitness(qd_score: float, coverage: int) -> float:
    """Return how good the elites are on average, on the interval of the QD score; NaN without any."""
    return qd_score / coverage if coverage else np.nan


def best_per_cell(collection: Evaluated, geometry: Geometry) -> NDArray[np.float64]:
    """Return the fitness of the fittest of every filled cell: a collection projected onto a geometry."""
    return fittest(collection.fitness, geometry.cells(collection.descriptors))


def fittest(fitness: NDArray[np.float64], cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the highest fitness in every cell that occurs, in the order of the cells."""
    order = np.lexsort((-fitness, cells))
    first = np.diff(cells[order], prepend=-1) != 0
    best: NDArray[np.float64] = fitness[order[first]]
    return best
