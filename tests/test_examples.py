"""The examples of one's own algorithm: they keep the contract, and look only at what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import ROOT
from examples.fitness_search import FitnessSearch
from examples.novelty_search import NoveltySearch
from qdbench import Evaluated
from qdbench.policy import Parameters
from small_problem import evaluate, problem

EXAMPLES = (FitnessSearch, NoveltySearch)


@pytest.mark.parametrize("example", EXAMPLES)
def test_they_keep_the_contract(example: Any) -> None:
    qdbench.check_algorithm(example)
    qdbench.check_algorithm(example, batch_size=1, parents=1)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_shows_them_as_they_are(example: Any) -> None:
    source = (ROOT / f"{example.__module__.replace('.', '/')}.py").read_text()
    assert f"\n```python\n{source}```\n" in (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 65


def iterate(
    example: Any, n: int, change: Callable[[Evaluated], Evaluated] = lambda told: told
) -> tuple[Any, list[Parameters], list[Evaluated]]:
    algorithm = example(problem(), 3, batch_size=40, parents=10)
    asked, told = [], []
    for i in range(n):
        solutions = algorithm.ask().copy()
        valid = np.arange(40) % 7 != i  # some are invalid
        told.append(change(evaluate(solutions, 40 * i, valid)))
        algorithm.tell(told[-1])
        asked.append(solutions)
    return algorithm, asked, told


def test_novelty_is_defined_in_an_archive_of_one() -> None:
    algorithm = NoveltySearch(problem(cells=(1, 1)), 3, batch_size=5)
    for i in range(3):
        algorithm.tell(evaluate(algorithm.ask(), 5 * i))
    assert algorithm.novelty().tolist() == [0.0]
    assert algorithm.collection().evaluations.tolist() == [[0]]


def test_novelty_search_never_looks_at_fitness() -> None:
    _, asked, _ = iterate(NoveltySearch, 6)
    _, others, _ = iterate(NoveltySearch, 6, lambda told: replace(told, fitness=-17 * told.fitness))
    assert all(np.array_equal(a, b) for a, b in zip(asked, others, strict=True))


def test_fitness_search_never_looks_at_descriptors() -> None:
    _, asked, _ = iterate(FitnessSearch, 6)
    _, others, _ = iterate(FitnessSearch, 6, lambda told: replace(told, descriptors=-0.1 * told.descriptors))
    assert all(np.array_equal(a, b) for a, b in zip(asked, others, strict=True))


def test_novelty_search_keeps_the_first_of_every_cell_and_varies_the_most_novel() -> None:
    algorithm, _, told = iterate(NoveltySearch, 6)
    first: dict[tuple[int, ...], tuple[int, Any]] = {}
    for batch in told:
        for number, place in zip(batch.evaluations[:, 0], batch.descriptors, strict=True):
            if batch.valid[number % 40]:
                cell = tuple(np.clip(np.floor((place + 1) / 2 * 8), 0, 7).astype(int))
                first.setdefault(cell, (int(number), np.clip((place + 1) / 2, 0, 1)))
    kept = algorithm.collection()
    assert sorted(kept.evaluations[:, 0].tolist()) == sorted(number for number, _ in first.values())
    places = np.array([place for _, place in sorted(first.values(), key=lambda one: one[0])])
    order = np.argsort(kept.evaluations[:, 0])
    distances = np.sort(np.linalg.norm(places[:, None] - places, axis=2), axis=1)[:, 1:16]
    assert len(places) > 16
    np.testing.assert_allclose(algorithm.novelty()[order] * 16 / 15, distances.mean(axis=1))


def test_fitness_search_varies_the_fittest_of_all() -> None:
    algorithm, _, told = iterate(FitnessSearch, 6)
    fitness = np.concatenate([batch.fitness for batch in told])
    best = np.sort(fitness[~np.isnan(fitness)])[::-1][:10]
    np.testing.assert_array_equal(algorithm.fitness, best)
    solutions = np.concatenate([batch.solutions for batch in told])
    for fittest, parent in zip(best, algorithm.parents, strict=True):
        assert np.array_equal(solutions[fitness == fittest][0], parent)
    cells: dict[tuple[int, ...], float] = {}
    for batch in told:
        for value, place in zip(batch.fitness, batch.descriptors, strict=True):
            if not np.isnan(value):
                cell = tuple(np.clip(np.floor((place + 1) / 2 * 8), 0, 7).astype(int))
                cells[cell] = max(value, cells.get(cell, -np.inf))
    assert sorted(algorithm.collection().fitness) == sorted(cells.values())


@pytest.mark.parametrize("example", EXAMPLES)
def test_runs_of_a_robot_resume(example: Any, tmp_path: Path) -> None:
    task = qdbench.make("walker_uni", episode_length=10)
    name = f"{example.__module__}:{example.__name__}"
    qdbench.run(task, name, evaluations=32, out=tmp_path / "twice", workers=1, batch_size=16)
    whole, resumed = (
        qdbench.run(task, name, evaluations=80, out=tmp_path / out, workers=1, batch_size=16)
        for out in ("once", "twice")
    )
    assert len(whole.archive) > 1
    for column in ("fitness", "descriptors", "evaluations", "seeds"):
        assert np.array_equal(getattr(whole.archive, column), getattr(resumed.archive, column))
