"""Every algorithm keeps the contract, broken ones are named, and elites remember their evaluations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import qdbench
from qdbench import BrokenAlgorithm, Evaluated, InvalidInput, Problem, UnknownName, check_algorithm, stream
from qdbench.algorithms import registry
from qdbench.algorithms.map_elites import MapElites
from qdbench.algorithms.random_search import RandomSearch
from qdbench.algorithms.state import flatten, unflatten
from qdbench.algorithms.variation import iso_line
from qdbench.seeds import derived_seed, numbered_seeds

PROBLEM = Problem(
    n_parameters=3,
    descriptor_bounds=((0.0, 1.0),),
    cells=(10,),
    fitness_bounds=(0.0, 1.0),
    random_solutions=lambda n, generator: generator.random((n, 3), np.float32),
)


@pytest.mark.parametrize("name", registry.BUILT_IN)
@pytest.mark.parametrize("batch_size", [1, 33, 256])
def test_every_algorithm_keeps_the_contract(name: str, batch_size: int) -> None:
    check_algorithm(name, batch_size=batch_size)


class NewOnesEachTime(MapElites):
    def ask(self) -> Any:
        self._iteration += 1
        return super().ask()


class OwnDice(RandomSearch):
    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, int(np.random.default_rng().integers(2**32)))


class OneSeed(RandomSearch):
    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, 7)


class Forgets(MapElites):
    def restore(self, state: Any) -> None:
        super().restore(state)
        self._iteration += 1


class KeepsWhatItWasTold(MapElites):
    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self._last: Evaluated | None = None

    def tell(self, evaluated: Evaluated) -> None:
        super().tell(evaluated)
        self._last = evaluated[:3] if evaluated.valid[:3].all() else None

    def collection(self) -> Evaluated:
        return self._last or super().collection()


class LosesItsArchive(RandomSearch):
    def restore(self, state: Any) -> None:
        self._iteration = state["iteration"]


class OddArchive(RandomSearch):
    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self._own, self.archive = self.archive, {}  # type: ignore[assignment]  # wrong on purpose

    def tell(self, evaluated: Evaluated) -> None:
        self._own.insert(evaluated)
        self._iteration += 1

    def collection(self) -> Evaluated:
        return self._own.elites


class Doubles(MapElites):
    def ask(self) -> Any:
        return super().ask().astype(np.float64)


class Optimist(MapElites):
    def collection(self) -> Evaluated:
        return replace(super().collection(), fitness=super().collection().fitness + 1)


class Pickles(MapElites):
    def state(self) -> Any:
        return {**super().state(), "problem": self._problem}


class Scribbles(MapElites):
    def tell(self, evaluated: Evaluated) -> None:
        super().tell(evaluated)
        evaluated.fitness[:] = 0


class NoTell:
    def __init__(self, problem: Problem, seed: int) -> None:
        pass

    def ask(self) -> None:
        pass


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (NewOnesEachTime, "asked twice"),
        (OwnDice, "the same seed gave other solutions"),
        (OneSeed, "two seeds gave the same"),
        (Forgets, "continued differently"),
        (KeepsWhatItWasTold, "an evaluation number was never told|differ from what"),
        (LosesItsArchive, "continued differently"),
        (OddArchive, "must be a qdbench.Archive"),
        (Doubles, "float32"),
        (Optimist, "fitness differ"),
        (Pickles, "JSON cannot hold"),
        (Scribbles, "tell changed the told fitness"),
        (NoTell, "lacks one of"),
    ],
)
def test_broken_promises_are_named(broken: Any, sentence: str) -> None:
    with pytest.raises(BrokenAlgorithm, match=sentence):
        check_algorithm(broken)


def test_an_elite_evaluated_again_gives_its_numbers(any_task: qdbench.RobotTask, tmp_path: Path) -> None:
    """Evaluating a stored elite with its seed returns what the archive holds, exactly."""
    task = replace(any_task, episode_length=25)
    run = qdbench.run(task, "map_elites", evaluations=60, out=tmp_path, batch_size=20, initial=20)
    archive = run.archive
    again = task.evaluate(archive.elites.solutions, archive.elites.seeds[:, 0])
    assert len(archive.elites) > 0
    assert np.array_equal(again.fitness, archive.elites.fitness)
    assert np.array_equal(again.descriptors, archive.elites.descriptors)
    assert np.array_equal(archive.elites.seeds[:, 0], _seeds_of(archive.elites.evaluations[:, 0]))


def _seeds_of(evaluations: Any) -> Any:
    return numbered_seeds(0, "run", "map_elites", first=0, n=60)[evaluations]


def test_iso_line_is_its_formula() -> None:
    elites = np.array([[0.0, 0.0, 0.0], [10.0, 20.0, -30.0]], np.float32)
    still = iso_line(elites, 1000, 0.0, 0.0, stream(0, "x"))
    assert {tuple(row) for row in still.tolist()} == {tuple(row) for row in elites.tolist()}
    along = iso_line(elites, 100_000, 0.0, 0.05, stream(0, "x"))
    shares = along / elites[1]  # every offspring lies on the line through the two
    np.testing.assert_allclose(shares, shares[:, :1].repeat(3, 1), atol=1e-4)
    moved = np.minimum(abs(shares[:, 0]), abs(shares[:, 0] - 1))
    assert np.mean(moved > 1e-6) == pytest.approx(0.5, abs=0.02)  # half of the pairs are one elite twice
    assert np.sqrt(np.mean(moved[moved > 1e-6] ** 2)) == pytest.approx(0.05, rel=0.02)
    noisy = iso_line(elites[:1], 100_000, 0.005, 0.05, stream(0, "x"))
    assert noisy.std() == pytest.approx(0.005, rel=0.01)
    assert noisy.dtype == np.float32


def test_random_search_draws_what_it_says() -> None:
    lecun = RandomSearch(PROBLEM, 0, batch_size=4000).ask()
    wide = RandomSearch(PROBLEM, 0, batch_size=4000, init="uniform").ask()
    assert lecun.min() >= 0
    assert lecun.max() <= 1
    assert abs(wide).max() <= 5
    assert wide.std() == pytest.approx(10 / 12**0.5, rel=0.02)


def test_map_elites_begins_with_fresh_solutions() -> None:
    drawn: list[int] = []

    def counted(n: int, generator: np.random.Generator) -> Any:
        drawn.append(n)
        return PROBLEM.random_solutions(n, generator)

    algorithm = MapElites(replace(PROBLEM, random_solutions=counted), 0, batch_size=10, initial=25)
    for first in range(0, 60, 10):
        solutions = algorithm.ask()
        numbers = np.arange(first, first + 10)[:, None]
        fitness = np.zeros(10) if first else np.full(10, np.nan)
        told = Evaluated(solutions, fitness, fitness[:, None] + 0.5, numbers, numbers.astype(np.uint64))
        algorithm.tell(told)
    assert drawn == [10, 10, 10]


def test_seeds_of_runs_and_algorithms_are_independent() -> None:
    seeds = [
        numbered_seeds(seed, "run", name, first=0, n=500) for seed in range(3) for name in registry.BUILT_IN
    ]
    assert len(np.unique(np.concatenate(seeds))) == 500 * len(seeds)
    whole = numbered_seeds(3, "run", "x", first=0, n=100)
    for first in range(90):
        assert np.array_equal(numbered_seeds(3, "run", "x", first=first, n=7), whole[first : first + 7])
    assert derived_seed(0, "a") != derived_seed(1, "a") != derived_seed(0, "b")


class WithOptions:
    """What an option may be."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        count: int = 3,
        rate: float = 0.5,
        on: bool = False,
        mode: Literal["a", "b"] = "a",
        limit: float | None = None,
        label: str = "x",
    ) -> None: ...


def test_options_are_typed() -> None:
    known = registry.options(WithOptions)  # type: ignore[arg-type]  # only its constructor matters here
    texts = {"count": "7", "rate": "1e-3", "on": "yes", "mode": "b", "limit": "none", "label": "hello"}
    parsed = {name: known[name].parse(text) for name, text in texts.items()}
    assert parsed == {"count": 7, "rate": 0.001, "on": True, "mode": "b", "limit": None, "label": "hello"}
    assert known["limit"].parse("2") == 2.0
    for name, text in {"count": "7.5", "rate": "nan", "on": "2", "mode": "c", "limit": "inf"}.items():
        with pytest.raises(InvalidInput, match=f"{name} is '{text}'; give "):
            known[name].parse(text)


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'map_elites'"):
        registry.find("map_elite")
    with pytest.raises(UnknownName, match="did you mean 'iso_sigma'"):
        registry.configure("map_elites", {"iso_sigm": "1"})
    with pytest.raises(InvalidInput, match="cannot load the algorithm 'nowhere:Thing'"):
        registry.find("nowhere:Thing")
    for options in ({"batch_size": 0}, {"iso_sigma": -1.0}, {"initial": 0}):
        with pytest.raises(InvalidInput, match="or more"):
            MapElites(PROBLEM, 0, **options)


def test_states_survive_being_taken_apart() -> None:
    state = {"a": 1, "b": {"c": np.arange(3), "d": {"e": np.ones(2), "f": "x"}, "g": [1, 2.5, None]}, "h": {}}
    arrays, rest = flatten(state)
    assert set(arrays) == {"b/c", "b/d/e"}
    whole = unflatten(arrays, rest)
    assert whole["b"]["d"]["f"] == "x"
    assert np.array_equal(whole["b"]["c"], np.arange(3))
    assert whole["b"]["g"] == [1, 2.5, None]
    assert whole["h"] == {}
    for bad in ({"x": np.array([object()])}, {"x": {1, 2}}, {"x/y": 1}, {"x": float("nan")}):
        with pytest.raises(BrokenAlgorithm, match="the state's"):
            flatten(bad)
