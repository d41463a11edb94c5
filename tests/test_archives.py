"""Laws of every archive: batch insertion equals one by one, the rule, the memory, the cells."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qdbench import Archive, Evaluated, Grid, InvalidInput, stream
from qdbench.archives import archive as archive_module
from qdbench.archives.geometry import Cvt, Unstructured, centroids
from qdbench.archives.unstructured import CHUNK, UnstructuredArchive

BOUNDS = ((-1.0, 1.0), (0.0, 4.0))
KINDS: dict[str, Callable[[], Archive]] = {
    "grid": lambda: Archive(Grid(BOUNDS, (4, 3)), 2),
    "cvt": lambda: Archive(Cvt(BOUNDS, centroids(12, 2)), 2),
    "unstructured": lambda: UnstructuredArchive(Unstructured(BOUNDS, 0.2), 2),
}


def batch_of(fitness: np.ndarray, descriptors: np.ndarray) -> Evaluated:
    n = len(fitness)
    numbers = np.arange(n)[:, None]
    solutions = np.repeat(numbers, 2, axis=1).astype(np.float32)
    return Evaluated(solutions, fitness, descriptors, numbers, numbers.astype(np.uint64) + 100)


@st.composite
def batches(draw: st.DrawFn) -> Evaluated:
    n = draw(st.integers(0, 40))
    # few different values: ties and shared cells must happen; NaN and values outside the box too
    fitness = draw(arrays(float, n, elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.5, -7.0, np.nan])))
    places = st.sampled_from([-9.0, -1.0, -0.6, -0.5, -0.1, 0.0, 0.11, 0.5, 0.99, 1.0, 3.0, 4.0, 77.0])
    return batch_of(fitness, draw(arrays(float, (n, 2), elements=places)))


def contents(archive: Archive) -> list[bytes]:
    return [np.ascontiguousarray(array).tobytes() for array in archive.state().values()]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(batch=batches(), cut=st.integers(0, 40))
def test_a_batch_is_inserted_as_if_one_by_one(kind: str, batch: Evaluated, cut: int) -> None:
    whole, parts, singles = (KINDS[kind]() for _ in range(3))
    changed = whole.insert(batch)
    parts.insert(batch[:cut])
    parts.insert(batch[cut:])
    for i in range(len(batch)):
        singles.insert(batch[i : i + 1])
    assert contents(whole) == contents(singles) == contents(parts)
    assert changed <= batch.valid.sum()


@pytest.mark.parametrize("kind", ["grid", "cvt"])
@given(batch=batches())
def test_the_rule_is_the_one_written_down(kind: str, batch: Evaluated) -> None:
    """A better fitness replaces, ties keep the incumbent, invalid never enters: a plain dictionary."""
    archive = KINDS[kind]()
    archive.insert(batch)
    expected: dict[int, int] = {}
    for i in np.flatnonzero(~np.isnan(batch.fitness)).tolist():
        cell = int(archive.geometry.cells(batch.descriptors[i : i + 1])[0])
        if cell not in expected or batch.fitness[i] > batch.fitness[expected[cell]]:
            expected[cell] = i
    assert (
        dict(zip(archive.cells.tolist(), archive.elites.evaluations[:, 0].tolist(), strict=True)) == expected
    )
    rows = list(expected.values())
    for name in ("solutions", "fitness", "descriptors", "seeds"):
        assert np.array_equal(getattr(archive.elites, name), getattr(batch, name)[rows])
    assert (archive.elites.samples == 1).all()


@settings(max_examples=300)
@given(batch=batches())
def test_the_unstructured_rule_is_the_one_written_down(batch: Evaluated) -> None:
    archive = UnstructuredArchive(Unstructured(BOUNDS, 0.2), 2)
    archive.insert(batch)
    elites: list[int] = []
    low, high = np.array(BOUNDS).T
    places = (batch.descriptors - low) / (high - low)
    for i in np.flatnonzero(~np.isnan(batch.fitness)).tolist():
        near = [k for k, j in enumerate(elites) if np.hypot(*(places[i] - places[j])) <= 0.2]
        if not near:
            elites.append(i)
        elif len(near) == 1 and batch.fitness[i] > batch.fitness[elites[near[0]]]:
            elites[near[0]] = i
    assert archive.elites.evaluations[:, 0].tolist() == elites
    kept = (archive.elites.descriptors - low) / (high - low)
    apart = np.linalg.norm(kept[:, None] - kept[None], axis=2)
    assert (apart[~np.eye(len(kept), dtype=bool)] > 0.2).all()


@pytest.mark.parametrize("kind", KINDS)
@given(batch=batches())
def test_insertion_into_an_empty_archive_loses_no_elite(kind: str, batch: Evaluated) -> None:
    archive, again, backwards = (KINDS[kind]() for _ in range(3))
    archive.insert(batch)
    elites = archive.elites
    again.insert(elites)
    assert contents(again) == contents(archive)
    backwards.insert(elites[np.arange(len(elites))[::-1]])
    assert sorted(backwards.elites.evaluations[:, 0]) == sorted(elites.evaluations[:, 0])


def test_batches_larger_than_a_chunk_are_inserted_whole() -> None:
    rng = stream(0, "large")
    n = 3 * CHUNK + 7
    batch = batch_of(rng.random(n), rng.uniform((-1, 0), (1, 4), (n, 2)))
    whole, singles = (UnstructuredArchive(Unstructured(BOUNDS, 0.03), 2) for _ in range(2))
    whole.insert(batch)
    for i in range(n):
        singles.insert(batch[i : i + 1])
    assert contents(whole) == contents(singles)
    assert whole.elites.evaluations.max() > 3 * CHUNK


def test_an_archive_of_several_samples_remembers_only_what_happened() -> None:
    one = batch_of(np.array([1.0, 2.0]), np.array([[-0.9, 0.1], [0.9, 3.9]]))
    two = replace(one, evaluations=np.array([[5, 6], [7, 8]]), seeds=np.array([[1, 2], [3, 4]], np.uint64))
    archive = Archive(Grid(BOUNDS, (4, 3)), 2, samples=3)
    archive.insert(one)
    assert archive.elites.samples.tolist() == [1, 1]
    archive.insert(replace(two, fitness=one.fitness + 1))
    assert archive.elites.evaluations.tolist() == [[5, 6, -1], [7, 8, -1]]
    before = contents(archive)
    with pytest.raises(InvalidInput, match="do not fit"):
        KINDS["grid"]().insert(two)
    with pytest.raises(InvalidInput, match="do not fit"):
        archive.insert(replace(one, solutions=np.zeros((2, 5), np.float32)))
    assert contents(archive) == before


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_numbers_and_broken_descriptors_never_enter(kind: str) -> None:
    archive = KINDS[kind]()
    descriptors = np.array([[0, 1], [np.nan, 1], [0, np.inf], [0, 1.0]])
    archive.insert(batch_of(np.array([np.inf, 1, 1, np.nan]), descriptors))
    assert len(archive) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_state_and_restore_give_the_same_archive(kind: str) -> None:
    rng = stream(0, "test")
    old, new = KINDS[kind](), KINDS[kind]()
    first, second = (batch_of(rng.random(50), rng.random((50, 2))) for _ in range(2))
    old.insert(first)
    new.restore({key: value.copy() for key, value in old.state().items()})
    assert contents(old) == contents(new)
    for archive in (old, new):
        archive.insert(second)
    assert contents(old) == contents(new)


def test_handed_out_arrays_cannot_be_written() -> None:
    archive = KINDS["grid"]()
    archive.insert(batch_of(np.ones(1), np.zeros((1, 2))))
    with pytest.raises(ValueError, match="read-only"):
        archive.elites.fitness[0] = 2
    archive.insert(batch_of(np.full(1, 3.0), np.zeros((1, 2))))  # and the archive still can
    assert archive.elites.fitness.tolist() == [3.0]


def test_memory_grows_with_the_elites_not_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    archive = Archive(Grid(((0.0, 1.0),), (10**9,)), 10_000)
    few = batch_of(np.ones(3), np.array([[0.1], [0.2], [0.3]]))
    archive.insert(replace(few, solutions=np.zeros((3, 10_000), np.float32)))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000  # kB; the room set aside is 2 GB, and a table of the cells would be 8 GB
    monkeypatch.setattr(archive_module, "RESERVED_BYTES", 80)  # so little that it must grow
    small = Archive(Grid(BOUNDS, (40, 40)), 2)
    rng = stream(1, "test")
    batch = batch_of(rng.random(900), rng.uniform(-1, 4, (900, 2)))
    for i in range(0, 900, 90):
        small.insert(batch[i : i + 90])
    monkeypatch.undo()
    roomy = Archive(Grid(BOUNDS, (40, 40)), 2)
    roomy.insert(batch)
    assert contents(small) == contents(roomy)


@given(
    point=st.tuples(*(st.floats(low - 1, high + 1) for low, high in BOUNDS)),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_a_grid_cell_is_where_the_descriptor_lies(point: tuple[float, float], shape: tuple[int, int]) -> None:
    cell = int(Grid(BOUNDS, shape).cells(np.array([point]))[0])
    for value, (low, high), n, index in zip(point, BOUNDS, shape, divmod(cell, shape[1]), strict=True):
        edges = low + (high - low) * np.arange(n + 1) / n
        assert value >= edges[index] - 1e-12 or index == 0
        assert value <= edges[index + 1] + 1e-12 or index == n - 1


def test_a_cvt_cell_is_that_of_the_nearest_centroid() -> None:
    points = centroids(50, 2)
    geometry = Cvt(BOUNDS, points)
    queries = stream(0, "queries").uniform(-2, 5, (300, 2))
    low, high = np.array(BOUNDS).T
    shares = np.clip((queries - low) / (high - low), 0, 1)
    distances = np.linalg.norm(shares[:, None] - points[None], axis=2)
    assert np.array_equal(geometry.cells(queries), distances.argmin(axis=1))


@pytest.mark.parametrize(("n", "dimensions"), [(900, 1), (900, 2), (625, 4)])
def test_centroids_are_always_the_same_and_share_the_box_evenly(n: int, dimensions: int) -> None:
    points = centroids(n, dimensions)
    centroids.cache_clear()
    assert np.array_equal(points, centroids(n, dimensions))
    assert points.shape == (n, dimensions)
    assert (points >= 0).all()
    assert (points <= 1).all()
    samples = stream(0, "samples").random((n * 200, dimensions))
    shares = np.bincount(Cvt(((0.0, 1.0),) * dimensions, points).cells(samples), minlength=n) / 200
    assert shares.min() > 0.3
    assert shares.std() < 0.25  # cells drawn at random would have about 0.5 in two dimensions


def test_places_beyond_all_measure_are_kept_apart() -> None:
    """Descriptors whose shares of the box have squares that are not finite; larger ones are invalid."""
    archive = UnstructuredArchive(Unstructured(((0.0, 1e-200), (0.0, 1.0)), 0.1), 2)
    places = np.array([[0.0, 0.0], [1e99, -1e99], [-1e100, 1e100], [0.0, 0.05], [1e101, 0.0]])
    archive.insert(batch_of(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), places))
    assert archive.elites.fitness.tolist() == [4.0, 2.0, 3.0]
    again = UnstructuredArchive(Unstructured(((0.0, 1e-200), (0.0, 1.0)), 0.1), 2)
    again.restore(archive.state())
    assert again.insert(batch_of(np.array([0.0]), np.array([[1e99, -1e99]]))) == 0
