"""The rules of the algorithms for noisy tasks, each as a property."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import Evaluated, InvalidInput, stream
from qdbench.algorithms import registry
from qdbench.algorithms.adaptive_sampling import AdaptiveSampling
from qdbench.algorithms.archive_sampling import ArchiveSampling
from qdbench.algorithms.deep_grid import DeepGrid
from qdbench.algorithms.extract_me import ExtractMe
from qdbench.algorithms.me_delta import MeDelta
from qdbench.algorithms.me_weighted import MeWeighted, spreads
from qdbench.algorithms.parallel_adaptive_sampling import ParallelAdaptiveSampling
from qdbench.algorithms.sampling import Sampling
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.job import Job, Settings
from qdbench.experiments.plan import plan_for
from qdbench.experiments.runs import check_jobs
from qdbench.policy import Parameters
from qdbench.store.record import Target
from running import results
from small_problem import problem


class Told:
    """Evaluates what an algorithm asks for, with noise; remembers how much it was."""

    def __init__(self, algorithm: Sampling, noise: float = 0.1) -> None:
        self.algorithm, self.noise, self.n = algorithm, noise, 0
        self.rng = np.random.default_rng(3)

    def __call__(self, iterations: int) -> list[int]:
        return [self.once() for _ in range(iterations)]

    def once(self) -> int:
        asked: Any = self.algorithm.ask()  # type: ignore[attr-defined]
        n = len(asked)
        x = asked.astype(np.float64)
        fitness = -np.square(x - 0.2).mean(axis=1) + self.rng.normal(0, self.noise, n)
        where = x[:, :2] + self.rng.normal(0, self.noise, (n, 2))
        numbers = np.arange(self.n, self.n + n)[:, None]
        self.algorithm.tell(Evaluated(asked, fitness, where, numbers, numbers.astype(np.uint64)))  # type: ignore[attr-defined]
        self.n += n
        return n


FEWER = {"samples": 4}
NOISE: dict[str, dict[str, Any]] = {
    "me_sampling": FEWER,
    "me_weighted": FEWER,
    "me_delta": FEWER,
    "deep_grid": {"depth": 4},
    "adaptive_sampling": {"max_samples": 16},
    "archive_sampling": {},
    "parallel_adaptive_sampling": {},
    "extract_me": {},
    "me_random": {},
}


@pytest.mark.parametrize("name", NOISE)
def test_one_worker_and_two_give_the_same(name: str, tmp_path: Path) -> None:
    """On a robot: functions are evaluated in one thread anyway."""
    task = qdbench.make("hopper_uni", episode_length=12, cells=(12,), hidden=(8,), reset_noise=0.3)
    sizes: dict[str, Any] = {"evaluations": 240, "batch_size": 24, **NOISE[name]}
    one, two = (
        qdbench.run(task, name, out=tmp_path / str(workers), workers=workers, **sizes) for workers in (1, 2)
    )
    assert [run.record.environments[0].workers for run in (one, two)] == [1, 2]
    assert results(one.path) == results(two.path)
    assert len(one.archive) > 1


DEEP = [name for name in NOISE if name != "me_random"]


@pytest.mark.parametrize("name", DEEP)
def test_memory_that_cannot_fit_is_refused_before_the_work(name: str, tmp_path: Path) -> None:
    """With the sentence of the container itself, as the algorithm would build it for this task."""
    task = qdbench.make("humanoid_omni")
    chosen: dict[str, Any] = {"memory_gb": 0.5}
    plan = plan_for(task, "humanoid_omni", name, chosen, seed=0)
    settings = Settings(evaluators=Threads(1))
    sentence = r"10,000 cells may need [\d.]+ GB, more than memory_gb=0\.5"
    with pytest.raises(InvalidInput, match=sentence) as early:
        check_jobs([Job(plan, tmp_path / "x", Target(8))], settings)
    with pytest.raises(InvalidInput) as late:
        plan.build()
    assert str(early.value) == str(late.value)
    with pytest.raises(InvalidInput, match=sentence):
        qdbench.run(task, name, evaluations=8, out=tmp_path / "runs", **chosen)
    assert not list(tmp_path.iterdir())


def test_every_task_is_looked_at(cli: Cli) -> None:
    """hopper_uni fits into the memory, hexapod_uni does not: nothing is begun."""
    tasks = ["--tasks", "hopper_uni,hexapod_uni", "--seeds", "100"]
    done = cli("suite", "deep_grid", *tasks, "--set", "depth=32", "--name", "deep")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("qdbench: depth 32 of 15,625 cells may need 32.")
    assert not list(cli.folder.rglob("run.json"))


def made(kind: Any, **options: Any) -> tuple[Any, Told]:
    algorithm = kind(problem(), 5, batch_size=64, initial=64, **options)
    return algorithm, Told(algorithm)


@pytest.mark.parametrize(
    "name", ["me_sampling", "me_weighted", "me_delta", "deep_grid", "adaptive_sampling", "extract_me"]
)
def test_an_iteration_has_exactly_batch_size_evaluations(name: str) -> None:
    _, told = made(registry.find(name))
    assert set(told(25)) == {64}


@pytest.mark.parametrize("name", DEEP)
def test_the_start_counts_solutions_not_samples(name: str) -> None:
    """All have as many random solutions as MAP-Elites, however often each is sampled."""
    drawn: list[int] = []

    def counted(n: int, generator: np.random.Generator) -> Parameters:
        drawn.append(n)
        return problem().random_solutions(n, generator)

    of: Any = registry.find(name)
    options = {"batch_size": 64, "initial": 64, **NOISE[name]}
    Told(of(replace(problem(), random_solutions=counted), 5, **options))(40)
    assert 64 <= sum(drawn) < 64 + max(drawn)


@pytest.mark.parametrize("n_cells", [1, 2, 3])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_no_sample_is_counted_twice_if_the_container_gets_empty(n_cells: int, share: float) -> None:
    small = replace(problem(), cells=(n_cells, 1))
    for seed in range(40):
        algorithm, rng, first = AdaptiveSampling(small, seed, batch_size=2, depth=2), stream(seed, "told"), 0
        for _ in range(30):
            asked = algorithm.ask()
            fitness = rng.normal(size=len(asked))
            fitness[rng.random(len(asked)) < share] = np.nan
            numbers = np.arange(first, first + len(asked))[:, None]
            where = rng.uniform(-1, 1, (len(asked), 2))
            algorithm.tell(Evaluated(asked, fitness, where, numbers, numbers.astype(np.uint64)))
            first += len(asked)
            of = (algorithm.container.members.evaluations, algorithm._challengers.evaluations)
            used = np.concatenate([numbers[numbers >= 0] for numbers in of])
            assert len(np.unique(used)) == len(used)


def test_equal_samples_have_no_spread() -> None:
    told = Evaluated(
        np.zeros((63, 6), np.float32),
        np.zeros(63),
        np.repeat(np.random.default_rng(1).uniform(-1, 1, (9, 2)), 7, axis=0),
        np.arange(63)[:, None],
        np.arange(63, dtype=np.uint64)[:, None],
    )
    assert (spreads(problem(), told, 7) == 0).all()


def test_archive_sampling_evaluates_its_container_and_a_batch() -> None:
    algorithm, told = made(ArchiveSampling, max_samples=4)
    for _ in range(12):
        again = int((algorithm.container.counts < 4).sum())
        counts = dict(
            zip(
                algorithm.container.members.evaluations[:, 0].tolist(),
                algorithm.container.counts,
                strict=True,
            )
        )
        assert told.once() == again + 64
        for first, count in zip(
            algorithm.container.members.evaluations[:, 0].tolist(), algorithm.container.counts, strict=True
        ):
            assert count == min(4, counts[first] + 1) if first in counts else count == 2


def test_offspring_get_the_median_number_of_samples() -> None:
    algorithm, told = made(ParallelAdaptiveSampling)
    seen = set()
    for _ in range(20):
        k = int(np.median(algorithm.container.counts)) if len(algorithm.container) else 1
        before = set(algorithm.container.members.evaluations[:, 0].tolist())
        told.once()
        members = algorithm.container.members
        new = [i for i, first in enumerate(members.evaluations[:, 0].tolist()) if first not in before]
        assert (algorithm.container.counts[new] == k).all()
        seen.add(k)
    assert len(seen) > 3
    assert algorithm.container.counts.max() <= 8


def test_extraction_prefers_the_best_and_draws_nobody_twice() -> None:
    algorithm, told = made(ExtractMe)
    told(30)
    ranks = np.empty(len(algorithm.container), np.int64)
    table = algorithm.container.table
    ranks[table[table >= 0]] = np.nonzero(table >= 0)[1]
    drawn = np.zeros(len(ranks))
    for iteration in range(1000, 1600):
        algorithm._iteration = iteration
        rows = algorithm._taken_out()
        assert len(np.unique(rows)) == len(rows) == 16
        drawn[rows] += 1
    shares = [drawn[ranks == rank].mean() for rank in range(4)]
    assert np.diff(shares).max() < 0
    assert shares[1] / shares[2] == pytest.approx(np.e, rel=0.15)  # nobody is drawn twice: not at rank 0


def test_deep_grid_s_parents_are_of_random_cells_and_fit() -> None:
    algorithm, told = made(DeepGrid, depth=4)
    told(20)
    container = algorithm.container
    rows = algorithm._parents(60_000, np.random.default_rng(1))
    _, counts = np.unique(container.cells[rows], return_counts=True)
    assert len(counts) == container.n_filled
    assert counts == pytest.approx(60_000 / container.n_filled, rel=0.35)
    places = next(row for row in container.table if (row >= 0).all())
    fitness = container.members.fitness[places]
    weights = (fitness - fitness.min()) / (fitness - fitness.min()).sum()
    found = np.array([(rows == row).sum() for row in places])
    assert found[-1] == 0  # the least fit
    assert found / found.sum() == pytest.approx(weights, abs=0.06)


def test_challengers_replace_an_elite_only_with_as_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm, told = made(AdaptiveSampling)
    container, insert = algorithm.container, algorithm.container.insert
    replaced: list[int] = []

    def checked(batch: Evaluated) -> None:
        """Who is fitter than the best of its cell has as many samples."""
        elites = container.best_of(container.geometry.cells(batch.descriptors))
        for row, elite in enumerate(elites.tolist()):
            if elite >= 0 and batch.fitness[row] > container.members.fitness[elite]:
                assert batch.samples[row] >= container.counts[elite]
                replaced.append(int(batch.samples[row]))
        insert(batch)

    monkeypatch.setattr(container, "insert", checked)
    for _ in range(60):
        told.once()
        assert len(algorithm._challengers) <= 64
    assert len(replaced) > 20
    assert max(replaced) > 2
    assert container.counts.max() > 3


def rows(fitness: list[float], spread: list[float], first: int) -> Evaluated:
    """Two samples each in one cell: these means, and this distance apart."""
    f = np.repeat(fitness, 2)
    d = np.array([[0.1 - s, 0.1] for s in spread] + [[0.1 + s, 0.1] for s in spread])
    d = d.reshape(2, len(spread), 2).transpose(1, 0, 2).reshape(-1, 2)
    numbers = np.arange(first, first + len(f))[:, None]
    solutions = np.repeat(np.arange(len(fitness)) + first, 2)[:, None].repeat(6, axis=1).astype(np.float32)
    return Evaluated(solutions, f, d, numbers, numbers.astype(np.uint64))


def test_fitness_is_traded_for_a_small_spread() -> None:
    weighted = MeWeighted(problem(), 0, batch_size=2, samples=2, weight=0.5)
    weighted.tell(rows([-0.50, -0.52], [0.08, 0.0], 0))  # bounds of fitness are 1 wide, of descriptors 2
    assert weighted.collection().fitness.tolist() == [-0.52]
    plain = MeWeighted(problem(), 0, batch_size=2, samples=2, weight=0.0)
    plain.tell(rows([-0.50, -0.52], [0.08, 0.0], 0))
    assert plain.collection().fitness.tolist() == [-0.50]
    delta = MeDelta(problem(), 0, batch_size=2, samples=2, fitness_delta=0.03, spread_delta=0.01)
    for told, kept in (
        (rows([-0.50], [0.08], 0), -0.50),
        (rows([-0.48], [0.08], 10), -0.50),  # fitter, but not by more than the threshold
        (rows([-0.52], [0.0], 20), -0.52),  # a little less fit, much steadier
        (rows([-0.56], [0.0], 30), -0.52),
        (rows([-0.48], [0.08], 40), -0.48),  # clearly fitter
    ):
        delta.tell(told)
        assert delta.collection().fitness.tolist() == [kept]


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        (
            "extract_me",
            {"samples": 9, "max_samples": 8},
            "samples is 9, more than max_samples, 8; give fewer",
        ),
        ("extract_me", {"extracted": 1.5}, "extracted is 1.5; give a share"),
        ("me_weighted", {"weight": 2.0}, "weight is 2.0; give a number from 0"),
        ("me_delta", {"samples": 1}, "samples is 1; give 2 or more"),
        ("deep_grid", {"depth": 0}, "depth is 0"),
        ("deep_grid", {"memory_gb": 1e-6}, "may need 0.0 GB, more than memory_gb=1e-06"),
    ],
)
def test_impossible_options_are_named(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence.replace("(", r"\(")):
        registry.build(name, problem(), 0, options)
