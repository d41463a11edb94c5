"""Estimates and tests over replications and tasks: means, bootstrap intervals, rank tests, Holm's correction.

A stratum is the replications of one task. Strata are resampled and permuted separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import comb, prod

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from qdbench.seeds import stream

Values = NDArray[np.float64]  #: (replications,)
Strata = Sequence[Values]
Bounds = tuple[float, float]

RESAMPLES = 10_000
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
FEWEST_TO_TEST = 3
"""The number of replications that a test needs in each group."""
EXACT_UP_TO = 50
"""Without ties, the test of two groups is exact up to this many replications in each."""
ARRANGEMENTS = 100_000
"""A stratified test computes all arrangements of the labels if there are at most this many. Of more, it draws
`RESAMPLES` at random."""


@dataclass(frozen=True)
class Estimate:
    """Median, interquartile mean and mean of replications; NaN without replications."""

    n: int
    median: float
    iqm: float
    mean: float
    low: float
    """Lower end of the confidence interval of `iqm`; `high` is its upper end. NaN with fewer than two."""
    high: float


def iqm(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Return the interquartile mean: the mean without the lowest and highest quarter (rounded down)."""
    mean: NDArray[np.float64] = stats.trim_mean(values, 0.25, axis=axis)
    return mean


def estimate(values: Values, generator: np.random.Generator) -> Estimate:
    """Return median, interquartile mean (IQM) and mean, and a bootstrap interval of the IQM."""
    if not len(values):
        return Estimate(0, np.nan, np.nan, np.nan, np.nan, np.nan)
    low, high = np.nan, np.nan
    if len(values) > 1:  # one value alone would give an interval without width
        low, high = _middle(iqm(values[_resampled(len(values), generator)], axis=1))
    return Estimate(
        len(values), float(np.median(values)), float(iqm(values)), float(values.mean()), low, high
    )  # fmt: skip


# Over tasks


def mean_over_tasks(strata: Strata) -> float:
    """Return the mean over tasks of the mean over replications: every task has the same weight."""
    return float(np.mean([values.mean() for values in strata]))


def mean_interval(strata: Strata, generator: np.random.Generator) -> Bounds:
    """Return the stratified bootstrap interval of `mean_over_tasks`."""
    if min(map(len, strata)) < 2:
        return np.nan, np.nan
    return _middle(_resampled_means(strata, generator))


def difference_interval(a: Strata, b: Strata, generator: np.random.Generator) -> Bounds:
    """Return the stratified bootstrap interval of the difference of `mean_over_tasks`."""
    if min(map(len, (*a, *b))) < 2:
        return np.nan, np.nan
    return _middle(_resampled_means(a, generator) - _resampled_means(b, generator))


def improvement(a: Strata, b: Strata) -> float:
    """Return the probability that a value of `a` is higher than one of `b`, averaged over tasks.

    Ties count half.
    """
    if not min(map(len, (*a, *b))):
        return np.nan
    return float(np.mean([_wins(x, y).mean() for x, y in zip(a, b, strict=True)]))


def improvement_interval(a: Strata, b: Strata, generator: np.random.Generator) -> Bounds:
    """Return the stratified bootstrap interval of `improvement`; both groups are resampled."""
    if min(map(len, (*a, *b))) < 2:
        return np.nan, np.nan
    drawn = [
        ((_shares(len(x), generator) @ _wins(x, y)) * _shares(len(y), generator)).sum(axis=1)
        for x, y in zip(a, b, strict=True)
    ]
    return _middle(np.mean(drawn, axis=0))


def stratified_test(a: Strata, b: Strata, generator: np.random.Generator) -> float:
    """Return the two-sided p-value of a permutation test of `improvement`: no difference on any task.

    The labels of the replications are permuted within each task. With one task, it is the exact Mann-Whitney
    U test. It uses only the order of the values on each task, so scales and anchors do not matter.
    """
    if not min(map(len, (*a, *b))):
        return np.nan
    ranks = [stats.rankdata(np.concatenate([x, y])) for x, y in zip(a, b, strict=True)]
    sizes = [(len(x), len(y)) for x, y in zip(a, b, strict=True)]
    exact = n_arrangements(sizes) <= ARRANGEMENTS
    found = np.zeros(1)
    for values, (n_a, n_b) in zip(ranks, sizes, strict=True):
        if exact:
            sums = np.array([sum(chosen) for chosen in combinations(values.tolist(), n_a)])
            found = (found[:, None] + (sums - sums.mean()) / (n_a * n_b)).ravel()
        else:
            drawn = generator.permuted(np.tile(values, (RESAMPLES, 1)), axis=1)
            found = found + (drawn[:, :n_a].sum(axis=1) - n_a * values.mean()) / (n_a * n_b)
    observed = len(sizes) * abs(improvement(a, b) - 0.5)
    extreme = int((np.abs(found) >= observed - 1e-9).sum())  # equal ones differ by rounding
    return extreme / len(found) if exact else (extreme + 1) / (len(found) + 1)


def n_arrangements(sizes: Iterable[tuple[int, int]]) -> int:
    """Return in how many ways labels can be given to groups of these sizes, one pair of sizes per task."""
    return prod(comb(n_a + n_b, n_a) for n_a, n_b in sizes)


def smallest_p(sizes: Iterable[tuple[int, int]]) -> float:
    """Return the smallest p-value that groups of these sizes allow: all of one group above the other."""
    return min(1.0, 2 / n_arrangements(sizes))


def seeds_needed(tests: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Return how many replications algorithms need at least, so that one of these tests can be significant.

    A test has a pair of sizes per task. 0 is an algorithm that can have more; other sizes stay as they are.
    """
    for n in count(1):
        sizes = [[(a or n, b or n) for a, b in test] for test in tests]
        if len(tests) * min(map(smallest_p, sizes)) <= SIGNIFICANT:
            return max(n, FEWEST_TO_TEST if max(map(len, tests)) == 1 else 1)
    raise AssertionError("more replications always allow a smaller p")


# Of one task


def mann_whitney(a: Values, b: Values) -> float:
    """Return the two-sided p-value of the Mann-Whitney U test; NaN with too few replications.

    It is exact as long as that is cheap, also with ties: there, SciPy's normal approximation can be below the
    smallest p that few replications allow (3 and 3: 0.047 instead of 0.1).
    """
    if min(len(a), len(b)) < FEWEST_TO_TEST:
        return np.nan
    tied = len(np.unique(np.concatenate([a, b]))) < len(a) + len(b)
    if tied and n_arrangements([(len(a), len(b))]) <= ARRANGEMENTS:
        return stratified_test([a], [b], stream(0, "ties"))
    method = "asymptotic" if tied or max(len(a), len(b)) > EXACT_UP_TO else "exact"
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


def _resampled_means(strata: Strata, generator: np.random.Generator) -> Values:
    """Return `mean_over_tasks` of every resample: (resamples,)."""
    means: Values = np.mean([_shares(len(values), generator) @ values for values in strata], axis=0)
    return means


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
