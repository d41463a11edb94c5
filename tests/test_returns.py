"""Robustness without collisions: return rates, displacement, luck, rarefied losses, against plain loops."""

from __future__ import annotations

from itertools import combinations
from math import comb, dist, isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdbench import stream
from qdbench.archives.geometry import Cvt, Geometry, Grid, centroids
from qdbench.metrics.rarefied import RarefiedLoss, rarefied_losses
from qdbench.metrics.returns import Elites, cell_size, on_border, returns
from qdbench.metrics.robustness import Reevaluations
from qdbench.metrics.scores import scores

BOX = ((-1.0, 1.0), (0.0, 3.0))
INTERVAL = (-0.5, 1.5)
GEOMETRIES: dict[str, Geometry] = {
    "grid": Grid(BOX, (5, 4)),
    "cvt": Cvt(BOX, centroids(20, 2)),
}
SIZES = {"grid": (2 / 5, 3 / 4), "cvt": (2 / 20**0.5, 3 / 20**0.5)}


def noisy_elites(n: int, samples: int, *, seed: int = 0, lost: float = 0.02) -> tuple[Elites, Reevaluations]:
    rng = stream(seed, "elites", n, samples)
    places = rng.uniform((-1.1, -0.2), (1.1, 3.2), (n, 2))
    fitness = rng.normal(0.4, 0.6, n)
    again = Reevaluations(
        fitness[:, None] + rng.normal(-0.1, 0.2, (n, samples)),
        places[:, None] + rng.normal(0, 0.25, (n, samples, 2)),
    )
    invalid = rng.random((n, samples)) < lost
    again.fitness[invalid] = np.nan
    again.descriptors[invalid] = np.nan
    return Elites(fitness, places), again


def plain_back(kind: str, here: Any, there: Any) -> bool:
    if kind == "grid":
        cells = [
            tuple(min(max(int(np.floor((x - low) / size)), 0), n - 1)
                  for x, (low, _), size, n in zip(p, BOX, SIZES["grid"], (5, 4), strict=True))
            for p in (here, there)
        ]  # fmt: skip
        return cells[0] == cells[1]
    shares = [np.clip([(p[0] + 1) / 2, p[1] / 3], 0, 1) for p in (here, there)]
    near = [int(np.argmin([dist(s, c) for c in centroids(20, 2)])) for s in shares]
    return near[0] == near[1]


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_plain_loops_find_the_same(kind: str) -> None:
    elites, again = noisy_elites(60, 7)
    found, size = returns(GEOMETRIES[kind], elites, again, INTERVAL), np.array(SIZES[kind])
    np.testing.assert_allclose(cell_size(GEOMETRIES[kind]), size)
    back, inner, moved, luck, lucky, left = [], [], [], [], [], []
    for i, (fitness, place) in enumerate(zip(elites.fitness, elites.descriptors, strict=True)):
        came = [
            not isnan(f) and plain_back(kind, place, d)
            for f, d in zip(again.fitness[i], again.descriptors[i], strict=True)
        ]
        back += came
        if kind == "grid" and -0.6 <= place[0] < 0.6 and 0.75 <= place[1] < 2.25:
            inner += came
        if not np.isnan(again.fitness[i]).any():
            left.append(i)
            moved.append(dist(place / size, again.descriptors[i].mean(axis=0) / size))
            luck.append((fitness - again.fitness[i].mean()) / 2.0)
            lucky.append(fitness > again.fitness[i].mean())
    centre = again.descriptors[left].mean(axis=(0, 1)) / size
    far = [
        dist(elites.descriptors[i] / size, centre)
        - np.mean([dist(d / size, centre) for d in again.descriptors[i]])
        for i in left
    ]
    assert len(left) < 60
    assert found.return_rate == pytest.approx(np.mean(back))
    assert found.interior_return_rate == pytest.approx(np.mean(inner) if inner else np.nan, nan_ok=True)
    assert isnan(found.interior_return_rate) == (kind != "grid")
    assert found.displacement == pytest.approx(np.mean(moved))
    assert found.fitness_luck == pytest.approx(np.mean(luck))
    assert found.lucky_share == pytest.approx(np.mean(lucky))
    assert found.descriptor_luck == pytest.approx(np.mean(far))


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_without_noise_everything_returns(kind: str) -> None:
    elites, _ = noisy_elites(40, 1)
    again = Reevaluations(
        np.repeat(elites.fitness[:, None], 3, 1), np.repeat(elites.descriptors[:, None], 3, 1)
    )
    found = returns(GEOMETRIES[kind], elites, again, INTERVAL)
    assert found.return_rate == 1
    assert found.displacement == found.fitness_luck == found.lucky_share == 0
    assert found.descriptor_luck == pytest.approx(0, abs=1e-12)


def test_nothing_depends_on_the_size_of_the_archive_and_without_selection_there_is_no_luck() -> None:
    _, again = noisy_elites(20_000, 8, lost=0)
    rng = stream(0, "fresh")
    fresh = Elites(again.fitness[:, 0], again.descriptors[:, 0])  # one more sample: nothing was selected
    others = Reevaluations(again.fitness[:, 1:], again.descriptors[:, 1:])
    found = returns(GEOMETRIES["grid"], fresh, others, INTERVAL)
    assert abs(found.fitness_luck) < 0.002
    assert abs(found.descriptor_luck) < 0.01
    assert abs(found.lucky_share - 0.5) < 0.015
    some = rng.choice(20_000, 5000, replace=False)
    part = Reevaluations(others.fitness[some], others.descriptors[some])
    again_found = returns(
        GEOMETRIES["grid"], Elites(fresh.fitness[some], fresh.descriptors[some]), part, INTERVAL
    )
    assert again_found.return_rate == pytest.approx(found.return_rate, abs=0.02)
    assert again_found.displacement == pytest.approx(found.displacement, rel=0.03)


def test_edges() -> None:
    nothing = Elites(np.empty(0), np.empty((0, 2)))
    none = Reevaluations(np.empty((0, 3)), np.empty((0, 3, 2)))
    assert all(map(isnan, vars(returns(GEOMETRIES["grid"], nothing, none, INTERVAL)).values()))
    elites, _ = noisy_elites(3, 1)
    lost = Reevaluations(np.full((3, 2), np.nan), np.full((3, 2, 2), np.nan))
    found = returns(GEOMETRIES["grid"], elites, lost, INTERVAL)
    assert found.return_rate == 0
    assert isnan(found.displacement)
    assert on_border(Grid(BOX, (1, 9)), np.array([[0.0, 1.5]])).all()  # one cell wide: all border


# Rarefied losses


def plain_loss(fitness: Any, cells: Any, means: Any, chosen: Any) -> tuple[float, float, float]:
    """Return corrected coverage and QD score of some elites, and their uncorrected QD score."""
    best: dict[int, float] = {}
    for i in chosen:
        if cells[i] is not None:
            best[cells[i]] = max(best.get(cells[i], -np.inf), means[i])
    return len(best), scores(np.array([*best.values()]), INTERVAL).qd_score, (
        scores(fitness[list(chosen)], INTERVAL).qd_score
    )  # fmt: skip


def plain_parts(again: Reevaluations) -> tuple[list[int | None], Any]:
    means, places = again.means()
    cells = [
        None if isnan(m) else int(GEOMETRIES["grid"].cells(p[None])[0])
        for m, p in zip(means, places, strict=True)
    ]
    return cells, means


@given(n=st.integers(1, 9), data=st.data())
def test_rarefied_losses_are_those_of_all_subsets(n: int, data: Any) -> None:
    m = data.draw(st.integers(1, n))
    elites, again = noisy_elites(n, 2, seed=data.draw(st.integers(0, 99)), lost=0.05)
    tight = Reevaluations(again.fitness, again.descriptors * 0.4)  # several in one cell
    cells, means = plain_parts(tight)
    found = [plain_loss(elites.fitness, cells, means, chosen) for chosen in combinations(range(n), m)]
    assert len(found) == comb(n, m)
    coverage, score, before = np.mean(found, axis=0)
    (loss,) = rarefied_losses(GEOMETRIES["grid"], elites.fitness, tight, INTERVAL, [m])
    assert loss.coverage == pytest.approx(1 - coverage / m, abs=1e-12)
    expected = 1 - score / before if before > 0 else np.nan
    assert loss.qd_score == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_rarefied_losses_of_many_elites_are_those_of_random_draws() -> None:
    n, m = 700, 100
    elites, again = noisy_elites(n, 3, lost=0.01)
    cells, means = plain_parts(again)
    rng = stream(0, "draws")
    draws = [rng.choice(n, m, replace=False).tolist() for _ in range(2000)]
    found = np.array([plain_loss(elites.fitness, cells, means, chosen) for chosen in draws])
    (loss,) = rarefied_losses(GEOMETRIES["grid"], elites.fitness, again, INTERVAL, [m])
    error = 4 * found[:, 0].std() / m / 2000**0.5
    assert loss.coverage == pytest.approx(1 - found[:, 0].mean() / m, abs=error)
    assert loss.qd_score == pytest.approx(1 - found[:, 1].mean() / found[:, 2].mean(), abs=0.005)


def test_the_curve_ends_with_the_whole_archive_and_never_falls() -> None:
    elites, again = noisy_elites(300, 3)
    curve = rarefied_losses(GEOMETRIES["grid"], elites.fitness, again, INTERVAL, range(1, 301))
    cells, means = plain_parts(again)
    coverage, score, before = plain_loss(elites.fitness, cells, means, range(300))
    assert curve[-1].coverage == pytest.approx(1 - coverage / 300)
    assert curve[-1].qd_score == pytest.approx(1 - score / before)
    assert (np.diff([loss.coverage for loss in curve]) >= -1e-12).all()
    nothing = RarefiedLoss(np.nan, np.nan)
    assert str(rarefied_losses(GEOMETRIES["grid"], elites.fitness, again, INTERVAL, [301])) == str([nothing])
