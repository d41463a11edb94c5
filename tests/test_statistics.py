"""Estimates and tests against numbers worked out by hand, by SciPy, or by brute force."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from qdbench import stream
from qdbench.analysis import statistics
from qdbench.analysis.statistics import (
    difference_interval,
    estimate,
    holm,
    improvement,
    improvement_interval,
    iqm,
    mann_whitney,
    mean_interval,
    mean_over_tasks,
    n_arrangements,
    seeds_needed,
    smallest_p,
    stratified_test,
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
    found = estimate(A, stream(0, "bootstrap", "a"))
    assert found == estimate(A, stream(0, "bootstrap", "a"))
    assert found != estimate(A, stream(0, "bootstrap", "b"))
    assert (found.n, found.median) == (10, 12.0)
    assert found.mean == pytest.approx(sum(A) / 10)
    assert A.min() < found.low < found.iqm < found.high < A.max()
    one = estimate(A[:1], stream(0))
    assert (one.n, one.median, one.iqm) == (1, 12.1, 12.1)
    assert np.isnan([one.low, one.high]).all()
    nothing = estimate(A[:0], stream(0))
    assert nothing.n == 0
    assert np.isnan([nothing.median, nothing.iqm, nothing.low, nothing.high]).all()


def test_the_bootstrap_is_scipys_percentile_bootstrap() -> None:
    found = estimate(A, stream(0, "ours"))
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
    found = [estimate(row, stream(0, "resamples", i)) for i, row in enumerate(data)]
    assert np.mean([one.low <= 7.0 <= one.high for one in found]) == pytest.approx(share, abs=0.05)


def test_strata_are_resampled_by_themselves() -> None:
    apart = [np.full(4, 0.0), np.full(4, 1.0)]
    assert mean_interval(apart, stream(0)) == (0.5, 0.5)
    assert mean_interval([np.concatenate(apart)], stream(0)) != (0.5, 0.5)
    assert np.isnan(mean_interval([A, B[:1]], stream(0))).all()
    assert np.isnan(difference_interval([A, B], [A, B[:1]], stream(0))).all()


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


@pytest.mark.parametrize("b", [B, B[:3], np.concatenate([B, B + 0.05])])
def test_mann_whitney_is_scipys_exact_test(b: NDArray[np.float64]) -> None:
    assert mann_whitney(A, b) == stats.mannwhitneyu(A, b, alternative="two-sided", method="exact").pvalue


@pytest.mark.parametrize("n", [3, 5, 7])
def test_with_ties_mann_whitney_is_exact_too(n: int) -> None:
    """All ways to form the groups, in plain Python; SciPy's own enumeration doubles the smaller tail."""
    a, b = A[:n].round(), np.append(B[:4], A[1]).round()
    both = np.concatenate([a, b])
    assert len(np.unique(both)) < len(both)

    def wins(chosen: tuple[int, ...]) -> float:
        rest = [both[i] for i in range(len(both)) if i not in chosen]
        return float(sum((both[i] > x) + 0.5 * (both[i] == x) for i in chosen for x in rest))

    middle = n * len(b) / 2
    found = [abs(wins(chosen) - middle) for chosen in combinations(range(len(both)), n)]
    p = np.mean([value >= abs(wins(tuple(range(n))) - middle) for value in found])
    assert mann_whitney(a, b) == pytest.approx(p)
    many = np.tile(A.round(), 12)  # too many to enumerate: the normal approximation
    assert 0 < mann_whitney(many, many - 1) < 0.05


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
    assert improvement([a], [b]) == pytest.approx(wins / (len(a) * len(b)))
    assert improvement([a], [b]) + improvement([b], [a]) == pytest.approx(1)
    assert improvement([a], [b]) == pytest.approx(stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)))


def test_the_interval_of_the_improvement() -> None:
    low, high = improvement_interval([A], [B], stream(0, "x"))
    assert (low, high) == improvement_interval([A], [B], stream(0, "x"))
    assert 0.5 < low < improvement([A], [B]) < high <= 1
    theirs = stats.bootstrap(
        (A, B),
        lambda x, y: np.array(improvement([x], [y])),
        vectorized=False,
        n_resamples=3000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.03)
    assert improvement_interval([A + 100], [B], stream(0)) == pytest.approx((1, 1))
    assert np.isnan(improvement_interval([A[:1]], [B], stream(0))).all()
    assert np.isnan(improvement([A[:0]], [B]))


# Over tasks


def test_intervals_over_tasks_are_those_of_plain_resampling() -> None:
    """A plain loop over resamples; also what rliable does, whose estimates these are."""
    strata, others = [A, B * 3], [A[:6] - 1, B[:5]]
    rng, means, differences, chances = np.random.default_rng(3), [], [], []
    for _ in range(3000):
        x, y = ([rng.choice(values, len(values)) for values in group] for group in (strata, others))
        means.append((x[0].mean() + x[1].mean()) / 2)
        differences.append(means[-1] - (y[0].mean() + y[1].mean()) / 2)
        chances.append(
            np.mean([np.mean([(i > j) + (i == j) / 2 for i in x[k] for j in y[k]]) for k in (0, 1)])
        )
    for found, resampled, precision in (
        (mean_interval(strata, stream(0)), means, 0.1),
        (difference_interval(strata, others, stream(0)), differences, 0.15),
        (improvement_interval(strata, others, stream(0)), chances, 0.02),
    ):
        assert found == pytest.approx(np.quantile(resampled, [0.025, 0.975]), abs=precision)


scores = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=5).map(np.array)
tasks = st.lists(st.tuples(scores, scores), min_size=1, max_size=6)


@given(tasks, st.data())
def test_no_task_can_vanish_from_the_aggregate(
    groups: list[tuple[NDArray[np.float64], NDArray[np.float64]]], data: st.DataObject
) -> None:
    strata = [values for values, _ in groups]
    which, by = data.draw(st.integers(0, len(strata) - 1)), data.draw(st.integers(1, 10**6))
    changed = [values + by * (i == which) for i, values in enumerate(strata)]
    assert mean_over_tasks(changed) == pytest.approx(mean_over_tasks(strata) + by / len(strata))
    one = [values.copy() for values in strata]
    one[which][0] += by  # one run of one task
    assert mean_over_tasks(one) > mean_over_tasks(strata)
    assert mean_over_tasks(strata) == pytest.approx(sum(sum(v) / len(v) for v in strata) / len(strata))


@given(tasks)
def test_the_improvement_over_tasks_is_the_mean_of_u_statistics(
    groups: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> None:
    a, b = ([pair[i] for pair in groups] for i in (0, 1))
    each = [stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in groups]
    assert improvement(a, b) == pytest.approx(np.mean(each))


def by_brute_force(a: list[NDArray[np.float64]], b: list[NDArray[np.float64]]) -> float:
    """Return the p-value from all ways to choose who of each task is called `a`."""
    ways = []
    for x, y in zip(a, b, strict=True):
        both = [*x, *y]
        chosen = list(combinations(range(len(both)), len(x)))
        ways.append(
            [([both[i] for i in c], [both[i] for i in range(len(both)) if i not in c]) for c in chosen]
        )

    def statistic(groups: Iterable[tuple[Any, Any]]) -> float:
        wins = [np.mean([(i > j) + (i == j) / 2 for i in x for j in y]) for x, y in groups]
        return abs(float(np.mean(wins)) - 0.5)

    observed = statistic(zip(a, b, strict=True))
    return float(np.mean([statistic(groups) >= observed - 1e-12 for groups in product(*ways)]))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([[1, 2, 3]], [[4, 5, 6]]),
        ([[1, 4, 2], [7, 9]], [[3, 6], [8, 5]]),
        ([[1, 1, 2], [3, 3]], [[1, 2, 2], [3, 4]]),  # ties
        ([[5], [2], [9]], [[1], [1], [1]]),
    ],
)
def test_the_stratified_test_by_brute_force(a: list[list[float]], b: list[list[float]]) -> None:
    x, y = ([np.array(values, np.float64) for values in groups] for groups in (a, b))
    p = stratified_test(x, y, stream(0))
    assert p == pytest.approx(by_brute_force(x, y))
    assert p == pytest.approx(stratified_test(y, x, stream(0)))
    scaled = (
        [100 * values - i for i, values in enumerate(x)],
        [100 * values - i for i, values in enumerate(y)],
    )
    assert p == pytest.approx(stratified_test(*scaled, stream(0)))  # scales do not matter


def test_with_one_task_the_stratified_test_is_the_exact_mann_whitney_test() -> None:
    for a, b in ((A[:6], B), (A[:3], B[:4]), (A, B[:5])):
        exact = stats.mannwhitneyu(a, b, method="exact").pvalue
        assert stratified_test([a], [b], stream(0)) == pytest.approx(exact)
    assert np.isnan(stratified_test([A, A[:0]], [B, B], stream(0)))


def test_drawn_arrangements_give_nearly_the_exact_p(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = [A[:4], A[4:8]], [B[:4], B[3:7]]
    exact = stratified_test(a, b, stream(0))
    monkeypatch.setattr(statistics, "ARRANGEMENTS", 10)
    assert stratified_test(a, b, stream(0)) == pytest.approx(exact, abs=0.02)
    far = [values + 1000 for values in a]
    assert stratified_test(far, b, stream(0)) >= 1 / (statistics.RESAMPLES + 1)  # never 0


def test_without_a_difference_the_stratified_test_rejects_as_often_as_it_says() -> None:
    rng = stream(0, "no difference")
    p = []
    for _ in range(400):
        levels = rng.normal(0, 100, 2)  # tasks differ, algorithms do not
        a, b = ([rng.normal(level, 1, 4) for level in levels] for _ in range(2))
        p.append(stratified_test(a, b, rng))
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.08


@pytest.mark.parametrize(
    ("n_tests", "n_tasks", "n", "least"),
    [
        (1, 1, 4, 2 / 70),  # 3 and 3 give 2 / 20
        (3, 1, 5, 3 * 2 / 252),  # 4 and 4 give 0.086
        (1, 2, 3, 2 / 400),  # 2 and 2 give 2 / 36 = 0.056
        (3, 9, 1, 3 * 2 / 512),
    ],
)
def test_how_many_seeds_a_significant_result_needs(n_tests: int, n_tasks: int, n: int, least: float) -> None:
    assert seeds_needed([[(0, 0)] * n_tasks] * n_tests) == n
    assert n_tests * smallest_p([(n, n)] * n_tasks) == pytest.approx(least)
    if n > 1:
        assert n_tests * smallest_p([(n - 1, n - 1)] * n_tasks) > 0.05
    high, low = np.full(n, 1.0), np.full(n, 0.0)
    assert n_tests * stratified_test([high] * n_tasks, [low] * n_tasks, stream(0)) == pytest.approx(least)
    assert n_arrangements([(2, 3), (1, 1)]) == 20
    assert smallest_p([(0, 3)]) == 1


def test_more_seeds_of_one_s_own_are_needed_beside_results_that_are_fixed() -> None:
    """Of seven tests against five seeds: with five of one's own 7 x 2 / 252 = 0.056, with six 0.03."""
    assert seeds_needed([[(0, 5)]] * 7) == 6
    assert seeds_needed([[(0, 0)]] * 7) == 6
    assert seeds_needed([[(0, 3)]] * 7) == 10  # 7 x 2 / 286 = 0.049
