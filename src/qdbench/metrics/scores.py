"""Coverage, QD score, highest and lowest fitness of a set of elites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]


@dataclass(frozen=True)
class Scores:
    """The scores of an archive; highest and lowest fitness are NaN if it is empty."""

    coverage: int
    """The number of elites."""
    qd_score: float
    """The area under the archive profile between low and high, divided by (high - low)."""
    max_fitness: float
    sum_fitness: float
    min_fitness: float
    alive_coverage: float = np.nan
    """The number of elites that lived to the end; NaN if the task has no episodes."""
    alive_qd_score: float = np.nan
    """The QD score of these elites alone."""


def scores(
    fitness: NDArray[np.float64], interval: Interval, alive: NDArray[np.bool_] | None = None
) -> Scores:
    """Return the scores of elites with these fitness values, (elites,), on the interval (low, high).

    `alive` says which of them lived to the end, (elites,).
    """
    n, above = len(fitness), above_low(fitness, interval)
    width = float(interval[1]) - float(interval[0])
    return Scores(
        coverage=n,
        qd_score=float(above.sum()) / width,
        max_fitness=float(fitness.max()) if n else np.nan,
        sum_fitness=float(fitness.sum()),
        min_fitness=float(fitness.min()) if n else np.nan,
        alive_coverage=np.nan if alive is None else float(alive.sum()),
        alive_qd_score=np.nan if alive is None else float(above[alive].sum()) / width,
    )


def above_low(fitness: NDArray[np.float64], interval: Interval) -> NDArray[np.float64]:
    """Return how far each fitness is above the interval's low end: at least 0, at most its width."""
    low, high = map(float, interval)
    above: NDArray[np.float64] = np.clip(fitness, low, high) - low
    return above


def qd_score_from_sums(
    coverage: NDArray[Any], total: NDArray[Any], least: NDArray[Any], most: NDArray[Any], interval: Interval
) -> NDArray[np.float64]:
    """Return the QD score of many archives from coverage, sum, min and max of fitness.

    NaN where a fitness is outside the interval: then the sums do not tell how much is cut off.
    """
    low, high = map(float, interval)
    rounding = 1e-9 * (high - low)  # of means of several samples
    exact = (coverage == 0) | ((least >= low - rounding) & (most <= high + rounding))
    return np.where(exact, (total - coverage * low) / (high - low), np.nan)


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


def fittest(fitness: NDArray[np.float64], cells: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the row of the fittest in every filled cell, rows ascending; of equal ones the first."""
    order = np.lexsort((-fitness, cells))
    first = np.diff(cells[order], prepend=-1) != 0
    return np.sort(order[first])
