"""Archives with depth: against thirty lines of plain Python, and laws of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qdbench import Evaluated, Grid, InvalidInput, stream
from qdbench.algorithms import registry
from qdbench.algorithms.sampling import Sampling
from qdbench.archives.deep import DeepArchive
from qdbench.archives.samples import grouped
from small_problem import problem

GRID = Grid(((0.0, 1.0),), (4,))


def batch(values: list[tuple[float, float]], first: int, n_parameters: int = 3) -> Evaluated:
    """One evaluation each; the solution holds its own number."""
    numbers = np.arange(first, first + len(values))
    fitness, descriptors = (np.array([v[i] for v in values], float) for i in (0, 1))
    solutions = np.repeat(numbers[:, None], n_parameters, axis=1).astype(np.float32)
    return Evaluated(
        solutions, fitness, descriptors[:, None], numbers[:, None], numbers[:, None].astype(np.uint64)
    )


def running_mean(values: list[float]) -> float:
    """The mean, rounded as when samples come one by one: ties depend on it."""
    mean = values[0]
    for n, value in enumerate(values[1:], 1):
        mean += (value - mean) / (n + 1)
    return mean


class Plain:
    """The rule for one solution after the other, with lists."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.cells: dict[int, list[dict[str, Any]]] = {}

    def add(self, one: dict[str, Any]) -> None:
        if not all(np.isfinite([*one["fitness"], *one["descriptors"]])):
            return
        f, d = running_mean(one["fitness"]), running_mean(one["descriptors"])
        one = one | {"mean": f}
        cell = self.cells.setdefault(min(3, max(0, int(d * 4))), [])
        if len(cell) < self.depth:
            cell.append(one)
        else:
            worst = min(cell, key=lambda other: (other["mean"], -other["numbers"][0]))
            if f > worst["mean"]:
                cell[cell.index(worst)] = one

    def remove(self, number: int) -> dict[str, Any]:
        for cell in self.cells.values():
            for one in cell:
                if one["numbers"][0] == number:
                    cell.remove(one)
                    return one
        raise AssertionError("not there")

    def best(self) -> set[int]:
        return {
            max(cell, key=lambda one: (one["mean"], -one["numbers"][0]))["numbers"][0]
            for cell in self.cells.values()
            if cell
        }


def require_consistent(archive: DeepArchive) -> None:
    """Whatever happened before."""
    members, table = archive.members, archive.table
    rows = table[table >= 0]
    assert sorted(rows.tolist()) == list(range(len(archive)))
    assert (table[:, 0] == np.arange(archive.n_filled)).all()  # the best come first
    for cell, places in zip(archive.cells[: archive.n_filled], table, strict=True):
        inside = places[places >= 0]
        assert (places[len(inside) :] == -1).all()
        assert (archive.cells[inside] == cell).all()
        assert (np.diff(archive.scores[inside]) <= 0).all()
    assert np.array_equal(archive.cells, archive.geometry.cells(members.descriptors))
    assert (members.solutions[:, 0] == members.evaluations[:, 0]).all()
    numbers = members.evaluations[members.evaluations >= 0]
    assert len(np.unique(numbers)) == len(numbers)  # no sample counts twice
    assert members.valid.all()


# few different numbers: many ties
VALUES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 2.0, 2.5, np.nan]), st.sampled_from([-0.1, 0.1, 0.3, 0.6, 0.9, 1.0])
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(VALUES, st.integers(0, 5), VALUES), min_size=1, max_size=6), st.integers(1, 4))
def test_it_does_what_plain_lists_do(rounds: list[Any], depth: int) -> None:
    """Insertions and new samples in turn; samples are neither lost nor mixed up."""
    archive, plain, first = DeepArchive(GRID, 3, depth=depth, samples=8), Plain(depth), 0
    for values, n_again, more in rounds:
        archive.insert(batch(values, first))
        for i, (f, d) in enumerate(values):
            plain.add({"fitness": [f], "descriptors": [d], "numbers": [first + i]})
        first += len(values)
        require_consistent(archive)
        rows = np.arange(len(archive))[::-1][: min(n_again, len(more))]
        told = batch(more[: len(rows)], first)
        first += len(rows)
        taken = [plain.remove(int(archive.members.evaluations[row, 0])) for row in rows]
        archive.resample(rows, told)
        for i, one in sorted(enumerate(taken), key=lambda pair: pair[1]["numbers"][0]):
            one["fitness"] = [*one["fitness"], float(told.fitness[i])]
            one["descriptors"] = [*one["descriptors"], float(told.descriptors[i, 0])]
            one["numbers"] = [*one["numbers"], int(told.evaluations[i, 0])]
        # together with those that stayed, as if all came one by one in the order of their age
        stayed = [one for cell in plain.cells.values() for one in cell]
        plain.cells = {}
        for one in sorted([*stayed, *taken], key=lambda one: one["numbers"][0]):
            plain.add(one)
        require_consistent(archive)
        members = archive.members
        expected = {one["numbers"][0]: one for cell in plain.cells.values() for one in cell}
        assert set(members.evaluations[:, 0].tolist()) == set(expected)
        assert set(archive.best.evaluations[:, 0].tolist()) == plain.best()
        for row in range(len(members)):
            one = expected[int(members.evaluations[row, 0])]
            used = members.evaluations[row] >= 0
            assert members.evaluations[row][used].tolist() == one["numbers"]
            assert members.seeds[row][used].tolist() == one["numbers"]
            assert members.fitness[row] == pytest.approx(np.mean(one["fitness"]), rel=1e-12)
            assert members.descriptors[row, 0] == pytest.approx(np.mean(one["descriptors"]), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6), st.integers(1, 4))
def test_random_places_always_let_newcomers_in(rounds: list[Any], depth: int) -> None:
    archive, first = DeepArchive(GRID, 3, depth=depth), 0
    inside: dict[int, int] = {}
    for values in rounds:
        archive.insert(batch(values, first), random=stream(0, "places", first))
        for f, d in values:
            if np.isfinite(f):
                cell = min(3, max(0, int(d * 4)))
                inside[cell] = min(depth, inside.get(cell, 0) + 1)
        first += len(values)
        require_consistent(archive)
        cells, counts = np.unique(archive.cells, return_counts=True)
        assert dict(zip(cells.tolist(), counts.tolist(), strict=True)) == inside
    last = [i for i, (f, _) in enumerate(rounds[-1]) if np.isfinite(f)]
    if last:
        assert first - len(rounds[-1]) + last[-1] in archive.members.evaluations


def test_equal_samples_have_exactly_their_mean() -> None:
    told = batch([(0.1, 0.7)] * 6, 0)
    means = grouped(told, 3)
    assert (means.fitness == 0.1).all()
    assert (means.descriptors == 0.7).all()
    assert means.evaluations.tolist() == [[0, 1, 2], [3, 4, 5]]
    archive = DeepArchive(GRID, 3, depth=2, samples=4)
    archive.insert(means)
    archive.resample(np.array([0]), batch([(0.1, 0.7)], 6))
    assert (archive.members.fitness == 0.1).all()


def test_a_sample_without_a_place_is_invalid() -> None:
    archive = DeepArchive(GRID, 3, depth=1, samples=2)
    archive.insert(batch([(0.0, 0.5)], 0))
    archive.resample(np.array([0]), batch([(0.0, np.nan)], 1))
    assert len(archive) == 0


def test_what_does_not_fit_is_refused() -> None:
    wide = Grid(((0.0, 1.0), (0.0, 1.0)), (100, 100))
    cure = r"need 31\.\d GB, more than memory_gb=4; give a depth of at most 4, or memory_gb=32"
    with pytest.raises(InvalidInput, match=cure):
        DeepArchive(wide, 24_465, depth=32)  # humanoid
    with pytest.raises(InvalidInput, match=r"memory_gb=0\.5; give memory_gb=1"):
        DeepArchive(wide, 24_465, depth=1, memory_gb=0.5)
    archive = DeepArchive(GRID, 3, depth=1, samples=1)
    archive.insert(batch([(0.0, 0.5)], 0))
    with pytest.raises(InvalidInput, match="has 1 samples already"):
        archive.resample(np.array([0]), batch([(0.0, 0.5)], 1))


NOISY = [name for name in registry.BUILT_IN if issubclass(registry.find(name), Sampling)]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NOISY)
def test_estimates_are_means_of_exactly_the_stored_samples(name: str) -> None:
    """Every algorithm with a container: all its solutions, not only what it hands over."""
    algorithm = registry.build(name, problem(), 3, {"batch_size": 64})
    assert isinstance(algorithm, Sampling)
    rng, first = np.random.default_rng(5), 0
    fitness, descriptors, solutions = np.empty(0), np.empty((0, 2)), np.empty((0, 6), np.float32)
    for _ in range(30):
        asked = algorithm.ask().copy()
        n = len(asked)
        found = -np.square(asked).sum(axis=1) + rng.normal(0, 0.3, n)
        where = asked[:, :2] + rng.normal(0, 0.2, (n, 2))
        found[rng.random(n) < 0.004] = np.nan
        fitness, descriptors = np.append(fitness, found), np.concatenate([descriptors, where])
        solutions = np.concatenate([solutions, asked])
        numbers = np.arange(first, first + n)[:, None]
        algorithm.tell(Evaluated(asked, found, where, numbers, numbers.astype(np.uint64)))
        first += n
        members = algorithm.container.members
        used = members.evaluations >= 0
        flat = members.evaluations[used]
        assert len(np.unique(flat)) == len(flat)
        assert np.array_equal(members.seeds[used], flat)
        for row in range(len(members)):
            own = members.evaluations[row][used[row]]
            assert members.fitness[row] == pytest.approx(fitness[own].mean(), rel=1e-9, abs=1e-12)
            assert members.descriptors[row] == pytest.approx(
                descriptors[own].mean(axis=0), rel=1e-9, abs=1e-12
            )
            assert (solutions[own] == members.solutions[row]).all()
        counts = np.bincount(algorithm.container.cells)
        assert counts.max(initial=0) <= algorithm.container.depth
        assert members.samples.max(initial=0) <= algorithm.container.samples
        assert len(np.unique(algorithm.container.geometry.cells(algorithm.collection().descriptors))) == len(
            algorithm.collection()
        )
    assert len(algorithm.collection()) > 5
