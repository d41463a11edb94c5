"""pyribs under our contract: any scheduler, its invalid solutions, its checkpoints, its algorithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdbench.algorithms.conformance import check_algorithm
from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.algorithms.map_elites import MapElites
from qdbench.algorithms.registry import build, configure
from qdbench.archives.geometry import Grid
from qdbench.errors import BrokenAlgorithm, InvalidInput
from qdbench.seeds import stream
from small_problem import BOX, evaluate, iterate, problem

pytest.importorskip("ribs")

from ribs.archives import CVTArchive, GridArchive, ProximityArchive
from ribs.emitters import EmitterBase, EvolutionStrategyEmitter, GaussianEmitter, GeneticAlgorithmEmitter
from ribs.schedulers import BanditScheduler, Scheduler

from qdbench.algorithms.ribs import EXTRA_FIELDS, CmaMae, CmaMe, RibsAlgorithm, RibsMapElites
from qdbench.algorithms.ribs_parts import TaskGrid

# Schedulers of users


def bandit(problem: Problem, seed: int) -> RibsAlgorithm:
    centroids = stream(0, "centroids").uniform(-1, 1, (30, 2))
    archive = CVTArchive(
        solution_dim=6, centroids=centroids, ranges=BOX, seed=seed, extra_fields=EXTRA_FIELDS
    )
    pool = [
        GaussianEmitter(archive, sigma=sigma, x0=np.zeros(6), batch_size=9, seed=seed)
        for sigma in (0.1, 0.2, 0.3, 0.4)
    ]
    return RibsAlgorithm(BanditScheduler(archive, pool, num_active=2))


def one_by_one(problem: Problem, seed: int) -> RibsAlgorithm:
    archive = TaskGrid(problem, seed, learning_rate=0.5, threshold_min=-200.0)
    emitter = GeneticAlgorithmEmitter(
        archive, x0=np.zeros(6), operator="gaussian", operator_kwargs={"sigma": 0.1}, batch_size=20, seed=seed
    )
    return RibsAlgorithm(
        Scheduler(archive, [emitter], result_archive=TaskGrid(problem, seed), add_mode="single")
    )


def novelty(problem: Problem, seed: int) -> RibsAlgorithm:
    archive = ProximityArchive(
        solution_dim=6,
        measure_dim=2,
        k_neighbors=3,
        novelty_threshold=0.2,
        solution_dtype=np.float32,
        extra_fields=EXTRA_FIELDS,
        seed=seed,
    )
    emitter = EvolutionStrategyEmitter(
        archive, x0=np.zeros(6), sigma0=0.3, ranker="nov", es="sep_cma_es", batch_size=20, seed=seed
    )
    return RibsAlgorithm(Scheduler(archive, [emitter], result_archive=TaskGrid(problem, seed)))


def qdbench_stream(problem: Problem, seed: int) -> RibsAlgorithm:
    """An emitter that draws from a stream of ours instead of a seed."""
    archive = TaskGrid(problem, seed)
    generator: Any = stream(seed, "emitter")
    emitter = GaussianEmitter(archive, sigma=0.1, x0=np.zeros(6), batch_size=20, seed=generator)
    return RibsAlgorithm(Scheduler(archive, [emitter]))


@pytest.mark.parametrize("scheduler", [bandit, one_by_one, novelty, qdbench_stream])
def test_any_scheduler_keeps_the_contract(scheduler: Callable[..., RibsAlgorithm]) -> None:
    check_algorithm(scheduler)


@pytest.mark.parametrize("name", ["cma_me", "cma_mae"])
@pytest.mark.parametrize("es", ["sep_cma_es", "lm_ma_es"])
def test_evolution_strategies_keep_the_contract(name: str, es: str) -> None:
    check_algorithm(name, batch_size=23, sigma0=0.3, es=es)


def test_map_elites_keeps_the_contract() -> None:
    check_algorithm("ribs_map_elites")


def test_an_archive_without_our_fields_is_refused() -> None:
    archive = GridArchive(solution_dim=6, dims=(8, 8), ranges=BOX)
    emitter = GaussianEmitter(archive, sigma=0.1, x0=np.zeros(6))
    with pytest.raises(BrokenAlgorithm, match=r"no field 'evaluation' of int64; .* extra_fields=qdbench"):
        RibsAlgorithm(Scheduler(archive, [emitter]))
    with pytest.raises(BrokenAlgorithm, match="the GridArchive has no field 'evaluation'"):
        RibsAlgorithm(Scheduler(TaskGrid(problem(), 0), [emitter], result_archive=archive))


def test_an_archive_that_rounds_is_refused() -> None:
    archive = GridArchive(
        solution_dim=6, dims=(8, 8), ranges=BOX, dtype=np.float32, extra_fields=EXTRA_FIELDS
    )
    emitter = GaussianEmitter(archive, sigma=0.1, x0=np.zeros(6))
    with pytest.raises(BrokenAlgorithm, match=r"no field 'objective' of float64; .* no dtype but solution_"):
        RibsAlgorithm(Scheduler(archive, [emitter]))


def test_what_is_kept_is_what_was_evaluated() -> None:
    """Emitters of an archive in float64 draw numbers that no evaluation ever sees."""
    archive = GridArchive(solution_dim=6, dims=(8, 8), ranges=BOX, extra_fields=EXTRA_FIELDS)
    emitter = GaussianEmitter(archive, sigma=0.1, x0=np.full(6, 0.1), batch_size=20, seed=1)
    algorithm = RibsAlgorithm(Scheduler(archive, [emitter]))
    asked = np.concatenate(iterate(algorithm, 3))
    kept = archive.data(["solution", "evaluation"])
    assert kept["solution"].dtype == np.float64
    np.testing.assert_array_equal(kept["solution"], asked[kept["evaluation"]])
    assert algorithm.collection().solutions.dtype == np.float32
    for name in ("objective", "measures"):
        assert TaskGrid(problem(), 0).dtypes[name] == np.float64
    assert TaskGrid(problem(), 0).dtypes["solution"] == np.float32


# Invalid solutions


class Listener(EmitterBase):
    """Asks for fixed solutions and writes down what it is told."""

    def __init__(self, archive: GridArchive) -> None:
        super().__init__(archive, solution_dim=6, bounds=None, lower_bounds=None, upper_bounds=None)
        self.solutions = np.linspace(-0.4, 0.4, 60, dtype=np.float32).reshape(10, 6)
        self.told: list[dict[str, Any]] = []

    def ask(self) -> NDArray[Any]:
        return self.solutions.copy()

    def tell(self, solution: Any, objective: Any, measures: Any, add_info: Any, **fields: Any) -> None:
        self.told.append({"objective": objective, "measures": measures, **add_info, **fields})


@pytest.mark.parametrize("add_mode", ["batch", "single"])
def test_what_emitters_are_told_of_invalid_solutions(add_mode: Any) -> None:
    archive = TaskGrid(problem(), 0)
    emitter = Listener(archive)
    algorithm = RibsAlgorithm(Scheduler(archive, [emitter], add_mode=add_mode))
    valid = np.arange(10) % 3 == 0
    evaluated = evaluate(algorithm.ask(), valid=valid)
    algorithm.tell(evaluated)
    (told,) = emitter.told
    least = np.nanargmin(evaluated.fitness)
    assert set(algorithm.collection().evaluations[:, 0]) <= set(np.flatnonzero(valid))
    assert len(archive) > 0
    assert (told["status"][valid] > 0).any()
    assert (told["status"][~valid] == 0).all()
    assert (told["value"][~valid] == told["value"][valid].min()).all()
    assert (told["objective"][~valid] == evaluated.fitness[least]).all()
    assert (told["measures"][~valid] == evaluated.descriptors[least]).all()
    assert (told["objective"][valid] == evaluated.fitness[valid]).all()
    assert (told["evaluation"][valid] == np.flatnonzero(valid)).all()


@pytest.mark.parametrize("add_mode", ["batch", "single"])
def test_while_there_is_no_elite_a_wholly_invalid_batch_is_forgotten(add_mode: Any) -> None:
    archive = TaskGrid(problem(), 0)
    emitter = Listener(archive)
    algorithm = RibsAlgorithm(Scheduler(archive, [emitter], add_mode=add_mode))
    algorithm.tell(evaluate(algorithm.ask(), valid=False))
    assert not emitter.told
    iterate(algorithm, 1)
    algorithm.tell(evaluate(algorithm.ask(), valid=False))
    first, second = emitter.told
    assert first["status"].any()
    assert not second["status"].any()
    assert len(set(second["value"])) == 1


@pytest.mark.parametrize("algorithm", [CmaMe, CmaMae])
def test_a_strategy_whose_solutions_are_all_invalid_restarts_alone(
    algorithm: type[CmaMe] | type[CmaMae],
) -> None:
    running = algorithm(problem(), 1, batch_size=40, n_emitters=2)
    iterate(running, 2)
    emitters = running._scheduler.emitters
    before = [emitter.restarts for emitter in emitters]
    running.tell(evaluate(running.ask(), first=80, valid=np.arange(40) < 20))
    after = [emitter.restarts for emitter in emitters]
    assert after[1] == before[1] + 1
    running.tell(evaluate(running.ask(), first=120, valid=False))
    assert [emitter.restarts for emitter in emitters] == [after[0] + 1, after[1] + 1]
    assert np.isfinite(running.ask()).all()


@pytest.mark.parametrize(("algorithm", "restarts"), [(CmaMe, 1), (CmaMae, 0)])
def test_only_cma_me_restarts_when_nothing_improves(
    algorithm: type[CmaMe] | type[CmaMae], restarts: int
) -> None:
    running = algorithm(problem(), 1, batch_size=20, n_emitters=1)
    iterate(running, 1)
    worse = evaluate(running.ask(), first=20)
    worse.fitness[:] -= 100
    worse.descriptors[:] = running.collection().descriptors[0]
    running.tell(worse)
    assert running._scheduler.emitters[0].restarts == restarts


def test_annealing_takes_in_a_solution_at_the_low_end_of_fitness() -> None:
    """Of equally bad solutions there must be an elite to restart from."""
    algorithm = CmaMae(problem(), 1, batch_size=20)
    evaluated = evaluate(algorithm.ask())
    evaluated.fitness[:] = -1.0
    algorithm.tell(evaluated)
    assert len(algorithm.collection()) > 0


# The algorithms


@given(
    st.lists(
        st.tuples(*[st.one_of(st.floats(-1.5, 1.5), st.floats(-1e300, 1e300), st.integers(-12, 12))] * 2),
        min_size=1,
    )
)
def test_cells_are_those_of_our_grid(places: list[tuple[float, float]]) -> None:
    descriptors = np.array(places, np.float64)
    on_borders = np.where(np.abs(descriptors) < 12, descriptors, descriptors / 10)
    archive, grid = TaskGrid(problem(cells=(10, 7)), 0), Grid(BOX, (10, 7))
    for raw in (descriptors, on_borders):
        np.testing.assert_array_equal(archive.index_of(raw), grid.cells(raw))
        solutions = np.zeros((len(raw), 6))
        numbers = np.arange(len(raw))
        archive.clear()
        archive.add(solutions, -1.0 * numbers, raw, evaluation=numbers, seed=numbers)
        kept = archive.data(["measures", "evaluation"])
        np.testing.assert_array_equal(kept["measures"], raw[kept["evaluation"]])


def test_cells_of_ordinary_descriptors_are_those_of_pyribs() -> None:
    descriptors = np.random.default_rng(1).normal(scale=2, size=(20_000, 2))
    theirs = GridArchive(solution_dim=6, dims=(10, 7), ranges=BOX)
    np.testing.assert_array_equal(theirs.index_of(descriptors), Grid(BOX, (10, 7)).cells(descriptors))


def test_options_are_read_and_checked() -> None:
    chosen = configure("cma_mae", {"es": "lm_ma_es", "threshold_min": "none", "sigma0": "0.1"})
    assert (chosen["es"], chosen["threshold_min"], chosen["sigma0"]) == ("lm_ma_es", None, 0.1)
    shares = [emitter.batch_size for emitter in CmaMe(problem(), 1, batch_size=23)._scheduler.emitters]
    assert (sum(shares), min(shares), max(shares)) == (23, 4, 5)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("ribs_map_elites", {"batch_size": 0}),
        ("ribs_map_elites", {"initial": 0}),
        ("cma_me", {"sigma0": 0.0}),
        ("cma_me", {"n_emitters": 0}),
        ("cma_me", {"batch_size": 9}),
        ("cma_mae", {"learning_rate": 1.5}),
        ("cma_mae", {"es": "lm_ma_es", "batch_size": 100}),
    ]
    for name, option in wrong:
        with pytest.raises(InvalidInput, match="give"):
            build(name, problem(), 1, option)


REPEATS, ITERATIONS, MARGIN = 40, 20, 0.05


def test_map_elites_of_pyribs_and_ours_reach_the_same_score() -> None:
    """Equivalent: the 95 % bootstrap interval of the relative difference lies within ±5 %."""
    task = problem(n_parameters=20, cells=(20, 20))

    def qd_scores(algorithm: Callable[..., Algorithm], seed: int, **options: float) -> list[float]:
        scores = []
        for i in range(REPEATS):
            running = algorithm(task, seed + i, **options)
            iterate(running, ITERATIONS)
            scores.append(float((running.collection().fitness + 1).sum()))
        return scores

    def equivalent(ones: list[float], others: list[float]) -> bool:
        one = stream(0, "one").choice(ones, (10_000, REPEATS)).mean(axis=1)
        other = stream(0, "other").choice(others, (10_000, REPEATS)).mean(axis=1)
        low, high = np.quantile(other / one - 1, [0.025, 0.975])
        print(f"relative difference within [{low:+.2%}, {high:+.2%}]")
        return bool(low > -MARGIN and high < MARGIN)

    reference = qd_scores(MapElites, 0)
    assert equivalent(reference, qd_scores(RibsMapElites, 1000))
    assert not equivalent(reference, qd_scores(RibsMapElites, 1000, line_sigma=0.1))  # it can tell them apart
