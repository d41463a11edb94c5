"""The numbers behind the lines of figures, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdbench.analysis.measures import Curves
from qdbench.metrics.metric import CURVES
from qdbench.reports import bands
from qdbench.reports.bands import Band, corrected_band, metric_band, profile_band


def curve(
    x: Sequence[float], y: Sequence[float], seconds: Sequence[float] = (), at: Any = (), **taken: Any
) -> Curves:
    none = dict.fromkeys(CURVES, np.array([]))
    return Curves(
        np.array(x, np.float64),
        np.array(seconds or x, np.float64),
        {"coverage": np.array(y, np.float64)},
        np.array(at, np.float64),
        np.array(taken.pop("at_seconds", at), np.float64),
        none | {name: np.array(values, np.float64) for name, values in taken.items()},
    )


def rows(band: Band) -> list[tuple[float, ...]]:
    return list(zip(band.x, band.low, band.middle, band.high, strict=True))


def test_runs_of_different_iterations_meet_on_a_common_axis() -> None:
    first, second = curve([10, 20, 30, 40], [1, 2, 3, 4]), curve([15, 35], [11, 12])
    assert rows(metric_band([first, second], "coverage", "evaluations")) == [
        (15, 3.5, 6, 8.5),  # 1 and 11
        (20, 4.25, 6.5, 8.75),  # 2 and 11
        (30, 5, 7, 9),  # 3 and 11
        (35, 5.25, 7.5, 9.75),  # 3 and 12
        (37.5, 6, 8, 10),  # the last values, 4 and 12, at the median end
    ]
    later = curve([50, 60], [1, 2])
    assert rows(metric_band([second, later], "coverage", "evaluations")) == [(47.5, 4.5, 7, 9.5)]
    alone = metric_band([first], "coverage", "evaluations")
    np.testing.assert_array_equal([alone.low, alone.middle, alone.high], [[1, 2, 3, 4]] * 3)


def test_seconds_have_an_axis_of_their_own() -> None:
    runs = [curve([10, 20], [1, 2], [0.5, 1.5]), curve([10, 20], [3, 5], [1.0, 1.25])]
    assert rows(metric_band(runs, "coverage", "seconds")) == [
        (1.0, 1.5, 2, 2.5),
        (1.25, 2, 3, 4),
        (1.375, 2.75, 3.5, 4.25),
    ]


increasing = st.lists(st.integers(1, 50), min_size=1, max_size=8, unique=True).map(sorted)


@given(st.lists(increasing, min_size=1, max_size=4), st.integers(1, 60))
def test_a_band_is_the_quartiles_of_what_every_run_had_then(runs: list[list[int]], place: int) -> None:
    curves = [curve(x, [7 * i + 3 * j for j in range(len(x))]) for i, x in enumerate(runs)]
    band = metric_band(curves, "coverage", "evaluations")
    end = np.median([x[-1] for x in runs])
    inside = max(x[0] for x in runs) <= place <= end or place == end
    assert (band.x[0] <= place <= band.x[-1]) == inside
    if inside:
        if place == end:  # the last values
            place = 60
        had = [7 * i + 3 * max(j for j in range(len(x)) if x[j] <= place) for i, x in enumerate(runs)]
        drawn = max(i for i in range(len(band.x)) if band.x[i] <= place)  # steps-post
        expected = np.quantile(had, (0.25, 0.5, 0.75))
        np.testing.assert_allclose([band.low[drawn], band.middle[drawn], band.high[drawn]], expected)


@given(st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_corrected_end_is_drawn_where_the_curve_ends(pauses: list[list[int]]) -> None:
    curves = [
        curve(
            [10, 20, 30], [2, 5, 9], np.cumsum(waits).tolist(), at=[30], at_seconds=[sum(waits)], coverage=[8]
        )
        for waits in pauses
    ]
    line, point = (band(curves, "coverage", "seconds") for band in (metric_band, corrected_band))
    assert line.x[-1] == point.x[-1]
    assert (line.middle[-1], point.middle[-1]) == (9, 8)


def test_long_curves_are_looked_at_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "MOST_STEPS", 3)
    assert rows(metric_band([curve(range(1, 12), range(1, 12))], "coverage", "evaluations")) == [
        (1, 1, 1, 1),
        (6, 6, 6, 6),
        (11, 11, 11, 11),
    ]


def test_corrected_values_belong_together_where_their_points_do() -> None:
    first = curve([10, 20, 30], [1, 2, 3], at=[10, 20, 30], at_seconds=[1.0, 2.0, 3.0], coverage=[4, 6, 7])
    second = curve([10, 20, 30], [1, 2, 3], at=[20, 30], at_seconds=[4.0, 5.0], coverage=[8, 9])
    late = curve([10, 20, 30], [1, 2, 3], at=[30], at_seconds=[7.0], coverage=[2])  # corrected afterwards
    without = curve([10], [1])
    for runs in ([first, second, late], [first, without, second, late]):
        assert rows(corrected_band(runs, "coverage", "evaluations")) == [
            (20, 6.5, 7, 7.5),  # of two in three; only one has 10
            (30, 4.5, 7, 8),
        ]
        assert rows(corrected_band(runs, "coverage", "seconds")) == [(3.0, 6.5, 7, 7.5), (5.0, 4.5, 7, 8)]
    assert rows(corrected_band([without], "coverage", "seconds")) == []
    gone = replace(
        first, corrected={"max_fitness": np.array([np.nan, 1.0, 2.0])}
    )  # an empty corrected archive
    np.testing.assert_array_equal(corrected_band([gone], "max_fitness", "evaluations").middle, [np.nan, 1, 2])


def test_other_points_than_ends_are_never_put_together() -> None:
    early, other = (
        curve([10, 24], [1, 2], at=[24], coverage=[2]),
        curve([10, 20], [1, 2], at=[20], coverage=[6]),
    )
    assert rows(corrected_band([early, other], "coverage", "evaluations")) == [(22, 3, 4, 5)]  # their ends
    extended = curve([10, 20, 40], [1, 2, 3], at=[20], coverage=[5])  # and not corrected again
    done = [curve([10, 20, 40], [1, 2, 3], at=[40], coverage=[n]) for n in (7, 8, 9)]
    assert rows(corrected_band([extended, *done], "coverage", "evaluations")) == [(40, 7.5, 8, 8.5)]
    alone = rows(corrected_band([extended, done[0]], "coverage", "evaluations"))
    assert alone == [(20, 5, 5, 5), (40, 7, 7, 7)]


fitnesses = st.lists(st.integers(-5, 5).map(float), max_size=6)


@given(st.lists(fitnesses, min_size=1, max_size=4), st.floats(-6, 6))
def test_a_profile_band_is_exact_at_every_threshold(runs: list[list[float]], threshold: float) -> None:
    band = profile_band([np.array(fitness, np.float64) for fitness in runs], -6.0, 6.0)
    drawn = min(i for i in range(len(band.x)) if band.x[i] >= threshold)  # steps-pre
    counts = [sum(f >= threshold for f in fitness) for fitness in runs]
    expected = np.quantile(counts, (0.25, 0.5, 0.75))
    np.testing.assert_allclose([band.low[drawn], band.middle[drawn], band.high[drawn]], expected)
    assert (band.x[0], band.x[-1]) == (-6, 6)
