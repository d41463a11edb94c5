"""Estimates and tests over replications: interquartile means, bootstrap intervals, rank tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]  #: (replications,)
Bounds = tuple[float, float]

RESAMPLES = 10_000
CONFIDENCE = 0.95
FEWEST = 3
"""Replications that a test needs in each group."""
ENUMERATED = 1_000
"""With ties, SciPy's normal approximation can go below the smallest p that few replications allow (3 and 3:
0.047 instead of 0.1), so up to this many ways to divide the values into the groups all are looked at."""


@dataclass(frozen=True)
class Estimate:
    """What replications have in common; NaN where there is nothing to estimate from."""

    n: int
    median: float
    iqm: float
    low: float
    """Of the confidence interval of `iqm`, as `high`; NaN with fewer than two replications."""
    high: float


def iqm(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Return the interquartile mean: without a quarter of the values, rounded down, at either end."""
    mean: NDArray[np.float64] = stats.trim_mean(values, 0.25, axis=axis)
    return mean


def estimate(strata: Sequence[Values], generator: np.random.Generator) -> Estimate:
    """Return median and interquartile mean of all values, with a stratified bootstrap interval of the latter.

    A stratum is a task's replications; each is drawn from anew by itself, so that a task weighs as much in
    every resample as in the data.
    """
    values = np.concatenate([*strata, np.empty(0)])
    if not len(values):
        return Estimate(0, np.nan, np.nan, np.nan, np.nan)
    low, high = _iqm_interval(strata, generator)
    return Estimate(len(values), float(np.median(values)), float(iqm(values)), low, high)


def _iqm_interval(strata: Sequence[Values], generator: np.random.Generator) -> Bounds:
    if min(map(len, strata)) < 2:  # one value alone would look like certainty
        return np.nan, np.nan
    drawn = [values[_resampled(len(values), generator)] for values in strata]
    return _middle(iqm(np.concatenate(drawn, axis=1), axis=1))


def improvement(a: Values, b: Values) -> float:
    """Return the probability that a value of `a` is above one of `b`, ties counted half."""
    return float(_wins(a, b).mean()) if len(a) and len(b) else np.nan


def improvement_interval(a: Values, b: Values, generator: np.random.Generator) -> Bounds:
    """Return the bootstrap interval of `improvement`, both groups drawn from anew."""
    if min(len(a), len(b)) < 2:
        return np.nan, np.nan
    shares_a, shares_b = (_shares(len(group), generator) for group in (a, b))
    return _middle(((shares_a @ _wins(a, b)) * shares_b).sum(axis=1))


def mann_whitney(a: Values, b: Values) -> float:
    """Return the two-sided p-value of the Mann-Whitney U test; NaN with too few replications."""
    if min(len(a), len(b)) < FEWEST:
        return np.nan
    tied = len(np.unique(np.concatenate([a, b]))) < len(a) + len(b)
    few = comb(len(a) + len(b), len(a)) <= ENUMERATED
    method = stats.PermutationMethod(n_resamples=ENUMERATED) if tied and few else "auto"
    return float(stats.mannwhitneyu(a, b, alternative="two-sided", method=method).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's method; a NaN is no test, and stays."""
    p = np.array(p_values, np.float64)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN sorts last
    factors = np.arange(len(order), 0, -1)
    p[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
    return [float(value) for value in p]


def _wins(a: Values, b: Values) -> NDArray[np.float64]:
    """Return for every pair 1 where `a` is above, ½ where both are equal, else 0: (a, b)."""
    wins: NDArray[np.float64] = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    return wins


def _resampled(n: int, generator: np.random.Generator) -> NDArray[np.int64]:
    return generator.integers(n, size=(RESAMPLES, n))


def _shares(n: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return how large a share of each resample every replication is: (resamples, n)."""
    rows = np.arange(RESAMPLES)[:, None] * n
    counts = np.bincount((rows + _resampled(n, generator)).ravel(), minlength=RESAMPLES * n)
    return counts.reshape(RESAMPLES, n) / n


def _middle(statistics: NDArray[np.float64]) -> Bounds:
    """Return the percentile interval."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(statistics, [tail, 1 - tail]).tolist()
    return low, high
