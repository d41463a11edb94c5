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
FEWEST_TO_TEST = 3
"""The number of replications that a test needs in each group."""
ENUMERATED = 1_000
"""With ties, SciPy's normal approximation can be below the smallest p that few replications allow (3 and 3:
0.047 instead of 0.1). So if there are at most this many ways to form the groups, all of them are computed."""


@dataclass(frozen=True)
class Estimate:
    """Median and interquartile mean of replications; NaN without replications."""

    n: int
    median: float
    iqm: float
    low: float
    """Lower end of the confidence interval of `iqm`; `high` is its upper end. NaN with fewer than two."""
    high: float


def iqm(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Return the interquartile mean: the mean without the lowest and highest quarter (rounded down)."""
    mean: NDArray[np.float64] = stats.trim_mean(values, 0.25, axis=axis)
    return mean


def estimate(strata: Sequence[Values], generator: np.random.Generator) -> Estimate:
    """Return median and interquartile mean (IQM) of all values, and a stratified bootstrap interval.

    The interval is that of the IQM. A stratum is the replications of one task. Each stratum is resampled
    separately, so that a task has the same weight in every resample as in the data.
    """
    values = np.concatenate([*strata, np.empty(0)])
    if not len(values):
        return Estimate(0, np.nan, np.nan, np.nan, np.nan)
    low, high = _iqm_interval(strata, generator)
    return Estimate(len(values), float(np.median(values)), float(iqm(values)), low, high)


def _iqm_interval(strata: Sequence[Values], generator: np.random.Generator) -> Bounds:
    if min(map(len, strata)) < 2:  # one value alone would give an interval without width
        return np.nan, np.nan
    drawn = [values[_resampled(len(values), generator)] for values in strata]
    return _middle(iqm(np.concatenate(drawn, axis=1), axis=1))


def improvement(a: Values, b: Values) -> float:
    """Return the probability that a value of `a` is higher than one of `b`; ties count half."""
    return float(_wins(a, b).mean()) if len(a) and len(b) else np.nan


def improvement_interval(a: Values, b: Values, generator: np.random.Generator) -> Bounds:
    """Return the bootstrap interval of `improvement`; both groups are resampled."""
    if min(len(a), len(b)) < 2:
        return np.nan, np.nan
    shares_a, shares_b = (_shares(len(group), generator) for group in (a, b))
    return _middle(((shares_a @ _wins(a, b)) * shares_b).sum(axis=1))


def mann_whitney(a: Values, b: Values) -> float:
    """Return the two-sided p-value of the Mann-Whitney U test; NaN with too few replications."""
    if min(len(a), len(b)) < FEWEST_TO_TEST:
        return np.nan
    tied = len(np.unique(np.concatenate([a, b]))) < len(a) + len(b)
    few = comb(len(a) + len(b), len(a)) <= ENUMERATED
    method = stats.PermutationMethod(n_resamples=ENUMERATED) if tied and few else "auto"
    return float(stats.mannwhitneyu(a, b, alternative="two-sided", method=method).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's correction; NaN means that there was no test, and stays NaN."""
    p = np.array(p_values, np.float64)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN sorts last
    factors = np.arange(len(order), 0, -1)
    p[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
    return [float(value) for value in p]


def _wins(a: Values, b: Values) -> NDArray[np.float64]:
    """Return for every pair 1 if `a` is higher, ½ if both are equal, else 0: (a, b)."""
    wins: NDArray[np.float64] = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    return wins


def _resampled(n: int, generator: np.random.Generator) -> NDArray[np.int64]:
    return generator.integers(n, size=(RESAMPLES, n))


def _shares(n: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return the share of every replication in each resample: (resamples, n)."""
    rows = np.arange(RESAMPLES)[:, None] * n
    counts = np.bincount((rows + _resampled(n, generator)).ravel(), minlength=RESAMPLES * n)
    return counts.reshape(RESAMPLES, n) / n


def _middle(statistics: NDArray[np.float64]) -> Bounds:
    """Return the percentile interval."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(statistics, [tail, 1 - tail]).tolist()
    return low, high
