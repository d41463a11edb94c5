"""Estimates and tests against numbers worked out by hand, by SciPy, or by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from qdbench import stream
from qdbench.analysis import statistics
from qdbench.analysis.statistics import (
    estimate,
    holm,
    improvement,
    improvement_interval,
    iqm,
    mann_whitney,
)

A = np.array([12.1, 9.4, 15.0, 11.3, 13.7, 10.2, 14.4, 8.9, 12.8, 11.9])
B = np.array([10.6, 8.1, 9.9, 12.0, 7.4, 11.1, 9.0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        ([1.0, 3.0], 2.0),
        ([9.0, 1.0, 2.0], 4.0),  # a quarter of 3 is none
        ([100.0, 2.0, 3.0, -50.0], 2.5),  # one at either end
        ([1.0, 2.0, 3.0, 4.0, 90.0], 3.0),
        ([-9.0, 1.0, 2.0, 3.0, 5.0, 8.0, 99.0], 19 / 5),  # a quarter of 7, rounded down, is 1
        ([10.0, 1.0, 2.0, 9.0, 3.0, 8.0, 4.0, 7.0, 5.0, 6.0], 5.5),  # 2 of 10 at either end
        ([1.0, 1.0, 2.0, 4.0, 4.0, 7.0, 50.0, 60.0], 17 / 4),
    ],
)
def test_the_interquartile_mean_by_hand(values: list[float], expected: float) -> None:
    assert iqm(np.array(values)) == pytest.approx(expected)
    assert iqm(np.array(values)) == pytest.approx(stats.trim_mean(values, 0.25))
    np.testing.assert_allclose(iqm(np.array([values, values[::-1]]), axis=1), expected)


def test_an_estimate_is_reproducible_and_knows_its_limits() -> None:
    found = estimate([A], stream(0, "bootstrap", "a"))
    assert found == estimate([A], stream(0, "bootstrap", "a"))
    assert found != estimate([A], stream(0, "bootstrap", "b"))
    assert (found.n, found.median) == (10, 12.0)
    assert A.min() < found.low < found.iqm < found.high < A.max()
    one = estimate([A[:1]], stream(0))
    assert (one.n, one.median, one.iqm) == (1, 12.1, 12.1)
    assert np.isnan([one.low, one.high]).all()
    nothing = estimate([A[:0]], stream(0))
    assert nothing.n == 0
    assert np.isnan([nothing.median, nothing.iqm, nothing.low, nothing.high]).all()


def test_the_bootstrap_is_scipys_percentile_bootstrap() -> None:
    found = estimate([A], stream(0, "ours"))
    theirs = stats.bootstrap(
        (A,), iqm, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert found.low == pytest.approx(theirs.low, abs=0.1)
    assert found.high == pytest.approx(theirs.high, abs=0.1)


@pytest.mark.parametrize(("n", "share"), [(3, 0.75), (5, 0.90), (10, 0.94), (30, 0.94)])
def test_intervals_hold_the_truth_as_often_as_the_tables_say(
    n: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 300)
    data = stream(0, "normal data", n).normal(7.0, 2.0, (400, n))
    found = [estimate([row], stream(0, "resamples", i)) for i, row in enumerate(data)]
    assert np.mean([one.low <= 7.0 <= one.high for one in found]) == pytest.approx(share, abs=0.05)


def test_strata_are_resampled_by_themselves() -> None:
    apart = [np.full(4, 0.0), np.full(4, 1.0)]
    stratified, pooled = (estimate(data, stream(0)) for data in (apart, [np.concatenate(apart)]))
    assert (stratified.iqm, stratified.low, stratified.high) == (0.5, 0.5, 0.5)
    assert (pooled.low, pooled.high) == (0.0, 1.0)
    assert estimate([A, B], stream(0)).iqm == pytest.approx(stats.trim_mean(np.concatenate([A, B]), 0.25))
    assert np.isnan(estimate([A, B[:1]], stream(0)).low)


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # 0.04 × 1 must not fall below 0.03 × 2
        ([0.5, 0.02, 0.6], [1.0, 0.06, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
        ([np.nan, 0.01, np.nan, 0.04], [np.nan, 0.02, np.nan, 0.04]),  # no test, not counted
    ],
)
def test_holm_by_hand(p: list[float], adjusted: list[float]) -> None:
    np.testing.assert_allclose(holm(p), adjusted)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p: list[float]) -> None:
    found = holm(p)
    for (p_i, q_i), (p_j, q_j) in product(zip(p, found, strict=True), repeat=2):
        assert p_i <= q_i <= min(1, len(p) * p_i)
        assert q_i <= q_j or p_i > p_j


@pytest.mark.parametrize("b", [B, B[:3], np.append(B, 12.1), np.concatenate([B, B + 0.05])])
def test_mann_whitney_is_scipys(b: NDArray[np.float64]) -> None:
    assert mann_whitney(A, b) == stats.mannwhitneyu(A, b, alternative="two-sided").pvalue


def test_mann_whitney_by_hand() -> None:
    low, high = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    assert mann_whitney(low, high) == pytest.approx(2 / 20)  # the most extreme of 20 ways, both sides
    assert mann_whitney(np.ones(3), np.zeros(3)) == pytest.approx(2 / 20)  # with ties too
    assert stats.mannwhitneyu(np.ones(3), np.zeros(3)).pvalue < 0.05  # what the approximation would say
    assert mann_whitney(np.ones(5), np.ones(5)) == 1
    assert mann_whitney(np.ones(30), np.ones(30)) == 1
    assert np.isnan(mann_whitney(low[:2], high))
    assert np.isnan(mann_whitney(low, high[:2]))


few = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=6).map(np.array)


@given(few, few)
def test_the_probability_of_improvement_by_brute_force(
    a: NDArray[np.float64], b: NDArray[np.float64]
) -> None:
    wins = sum((x > y) + (x == y) / 2 for x, y in product(a, b))
    assert improvement(a, b) == pytest.approx(wins / (len(a) * len(b)))
    assert improvement(a, b) + improvement(b, a) == pytest.approx(1)
    assert improvement(a, b) == pytest.approx(stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)))


def test_the_interval_of_the_improvement() -> None:
    low, high = improvement_interval(A, B, stream(0, "x"))
    assert (low, high) == improvement_interval(A, B, stream(0, "x"))
    assert 0.5 < low < improvement(A, B) < high <= 1
    theirs = stats.bootstrap(
        (A, B),
        lambda x, y: np.array(improvement(x, y)),
        vectorized=False,
        n_resamples=3000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.03)
    assert improvement_interval(A + 100, B, stream(0)) == pytest.approx((1, 1))
    assert np.isnan(improvement_interval(A[:1], B, stream(0))).all()
    assert np.isnan(improvement(A[:0], B))
