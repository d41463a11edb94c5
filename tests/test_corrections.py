"""Corrected metrics: the profile, the losses, and re-evaluations that disturb nothing and are never lost."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import qdbench
from conftest import Cli
from qdbench import DamagedFile, FunctionTask, InvalidInput, stream
from qdbench.algorithms import registry
from qdbench.analysis.measures import curves, final, fixed_interval, pooled_interval
from qdbench.archives.geometry import Grid
from qdbench.experiments import correcting
from qdbench.experiments.correcting import correct_run
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.plan import Plan
from qdbench.metrics.metric import CURVES
from qdbench.metrics.profile import profile
from qdbench.metrics.robustness import (
    Reevaluations,
    by_samples,
    corrected_archive,
    extrapolated,
    losses,
)
from qdbench.metrics.scores import Scores, scores
from qdbench.store.corrections_file import Corrections
from qdbench.store.loading import StoredRun, load
from running import TASKS, carry_out, results, wait_for_rows

FITNESS = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 1))  # ties happen
GRID = Grid([[0.0, 1.0]], [10])


def noisy_task(**options: Any) -> FunctionTask:
    namespace: dict[str, Any] = {}
    exec(TASKS, namespace)
    task: FunctionTask = namespace["task"]
    return task


def run_of(task: Any, path: Path, algorithm: str = "map_elites", seed: int = 0, **settings: Any) -> StoredRun:
    chosen = {"reevaluations": 6} | settings
    return load(
        carry_out(
            task, algorithm, seed, path=path, source="mine:task", evaluations=640,
            options={"batch_size": "32"}, **chosen,
        )
    )  # fmt: skip


def same(a: Corrections | None, b: Corrections | None) -> bool:
    assert a is not None
    assert b is not None
    return len(a.points) == len(b.points) and all(
        x.evaluations == y.evaluations
        and np.array_equal(a.reevaluations(x).fitness, b.reevaluations(y).fitness, equal_nan=True)
        and np.array_equal(a.reevaluations(x).descriptors, b.reevaluations(y).descriptors, equal_nan=True)
        and np.array_equal(x.fitness, y.fitness)
        and np.array_equal(x.cells, y.cells)
        for x, y in zip(a.points, b.points, strict=True)
    )


@given(fitness=arrays(float, st.integers(0, 30), elements=FITNESS), threshold=FITNESS)
def test_the_profile_is_exact_and_its_area_is_the_qd_score(fitness: Any, threshold: float) -> None:
    found = profile(fitness)
    assert found(threshold) == (fitness >= threshold).sum()
    assert found(np.nextafter(fitness.max(initial=-99.0), np.inf)) == 0
    assert found(-1e9) == len(fitness)
    low, high = -60.0, 55.0
    area = (high - low) * scores(fitness, (low, high)).qd_score
    assert found.area(low, high) == pytest.approx(area, rel=1e-12, abs=1e-9)
    middle = np.clip(fitness, -10, 20)  # also where the interval does not hold every fitness
    assert found.area(-10, 20) == pytest.approx((middle + 10).sum(), abs=1e-9)


@given(
    fitness=arrays(float, st.integers(1, 30), elements=FITNESS),
    low=FITNESS,
    width=st.floats(0.1, 60),
    better=st.floats(0, 40),
    data=st.data(),
)
def test_the_qd_score_is_the_area_under_the_profile_and_never_falls(
    fitness: Any, low: float, width: float, better: float, data: Any
) -> None:
    interval = (low, low + width)
    score = scores(fitness, interval).qd_score
    assert score == pytest.approx(profile(fitness).area(*interval) / (interval[1] - interval[0]), abs=1e-9)
    assert 0 <= score <= len(fitness) * (1 + 1e-12)
    filled = np.append(fitness, data.draw(FITNESS))
    improved = fitness.copy()
    improved[data.draw(st.integers(0, len(fitness) - 1))] += better
    for after in (filled, improved):
        assert scores(after, interval).qd_score >= score - 1e-9


def test_losses_are_undefined_where_there_is_nothing_to_lose() -> None:
    before, after = Scores(10, 5.0, -3.0, 0.0, 0.0), Scores(12, 4.0, -6.0, 0.0, 0.0)
    found = losses(before, after)
    assert found.coverage == pytest.approx(-0.2)  # a gain stays negative
    assert found.qd_score == pytest.approx(0.2)
    assert np.isnan(found.max_fitness)  # never a sign-flipped number


@given(
    value=st.floats(-1e6, 1e6),
    n=st.integers(1, 60),
    samples=arrays(float, (4, 7), elements=st.floats(-1e3, 1e3)),
)
def test_means_of_equal_numbers_are_those_numbers(value: float, n: int, samples: Any) -> None:
    equal = Reevaluations(np.full((3, n), value), np.full((3, n, 2), value))
    assert all((mean == value).all() for mean in equal.means())
    mixed = Reevaluations(samples, samples[..., None])
    np.testing.assert_allclose(mixed.means()[0], samples.mean(axis=1), rtol=1e-9, atol=1e-9)


def test_a_corrected_archive_is_filled_by_the_usual_rule() -> None:
    places = np.array([[0.05, 0.15], [0.08, 0.12], [0.5, 0.52], [0.9, 0.9], [0.7, 0.7]])
    fitness = np.array([[1.0, 3.0], [2.0, 2.0], [0.0, 1.0], [5.0, np.nan], [4.0, 4.0]])
    again = Reevaluations(fitness, places[..., None])
    archive = corrected_archive(GRID, again)
    # the first two meet in cell 1 (means 0.1) with equal means: the earlier stays; the fourth is lost
    assert archive.elites.evaluations[:, 0].tolist() == [0, 2, 4]
    assert archive.elites.fitness.tolist() == [2.0, 0.5, 4.0]
    assert again.lost == 1
    assert [s.coverage for s in by_samples(GRID, again, (0.0, 5.0))] == [3, 3]  # lost from the first on


@pytest.mark.parametrize("n", [4, 5])
def test_scores_are_extrapolated_from_half_and_all_of_the_samples(n: int) -> None:
    rng = stream(0, "extrapolated", n)
    fitness = rng.uniform(0, 10, (30, n))
    places = 0.4 + rng.normal(0, 0.2, (30, n, 1))
    fitness[3, 1] = np.nan

    def plain(samples: list[int]) -> NDArray[np.float64]:
        best: dict[int, float] = {}
        for i in range(30):
            if i != 3:  # it is lost, whatever is looked at
                cell = min(max(int(places[i, samples, 0].mean() * 10), 0), 9)
                best[cell] = max(best.get(cell, 0.0), fitness[i, samples].mean() / 10)
        return np.array([len(best), sum(best.values())])

    halves = [[*range(0, n, 2)], [*range(1, n, 2)]]
    half, inverse = np.mean([plain(s) for s in halves], axis=0), np.mean([1 / len(s) for s in halves])
    slope = (half - plain([*range(n)])) / (inverse - 1 / n)  # over 1/N
    coverage, score = plain([*range(n)]) - slope / n
    found = extrapolated(GRID, Reevaluations(fitness, places), (0.0, 10.0))
    assert (found.coverage, found.qd_score) == pytest.approx((max(coverage, 0), max(score, 0)))
    assert np.isnan(extrapolated(GRID, Reevaluations(fitness, places)[:1], (0.0, 10.0)).qd_score)


def test_the_extrapolation_is_nearer_to_the_truth_than_the_corrected_coverage() -> None:
    rng, n, errors = stream(0, "limit"), 16, []
    places = 0.35 + 0.1 * rng.random((300, 1, 1))  # the true means are in two cells
    for _ in range(20):
        again = Reevaluations(rng.random((300, n)), places + rng.normal(0, 0.3, (300, n, 1)))
        plain = by_samples(GRID, again, (0.0, 1.0), [n])[0].coverage
        errors.append((plain - 2, extrapolated(GRID, again, (0.0, 1.0)).coverage - 2))
    plain_error, error = np.sqrt(np.mean(np.square(errors), axis=0))
    assert error < 0.8 * plain_error


@pytest.mark.parametrize("algorithm", registry.BUILT_IN)
def test_corrections_leave_the_run_as_it_is(algorithm: str, tmp_path: Path) -> None:
    task = noisy_task()
    plain = run_of(task, tmp_path / "plain", algorithm)
    corrected = run_of(task, tmp_path / "corrected", algorithm, corrections=4)
    assert results(plain.path) == results(corrected.path)
    assert corrected.corrections is not None
    points = corrected.corrections.points
    ends = corrected.metrics["evaluations"]  # an iteration need not end where a point is due
    due = [int(ends[np.searchsorted(ends, share * 640 / 4)]) for share in (1, 2, 3, 4)]
    assert [point.evaluations for point in points] == due
    assert np.array_equal(points[-1].fitness, plain.archive.fitness)
    options = registry.configure(algorithm, {"batch_size": "32"})
    plan = Plan(task=task, task_source="mine:task", algorithm=algorithm, options=options, seed=0)
    correct_run(plain.path, 6, Threads(2), Interrupt(), plan=plan)
    afterwards = load(plain.path).corrections
    assert afterwards is not None
    last = corrected.corrections.reevaluations(points[-1])
    again = afterwards.reevaluations(afterwards.points[0])
    assert np.array_equal(again.fitness, last.fitness, equal_nan=True)
    interval = fixed_interval(corrected)
    assert (
        final(load(plain.path), interval)["corrected_qd_score"]
        == final(corrected, interval)["corrected_qd_score"]
    )


@pytest.mark.parametrize("algorithm", ["map_elites", "cvt_map_elites", "map_elites_unstructured"])
def test_without_noise_nothing_is_lost(algorithm: str, tmp_path: Path) -> None:
    quiet = FunctionTask(
        name="quiet",
        function=lambda x: (np.sin(x).sum(axis=1) + 9, x[:, :2] / 3),
        n_parameters=5,
        descriptor_bounds=((-1, 1),) * 2,
        cells=(9, 9),
        fitness_bounds=(0, 20),
    )
    ant = qdbench.make("ant_omni", reset_noise=0.0, episode_length=15)
    for task in (quiet, ant):
        run = run_of(task, tmp_path / task.name, algorithm, corrections=1, reevaluations=5)
        assert run.corrections is not None
        again = run.corrections.reevaluations(run.corrections.points[0])
        archive = corrected_archive(run.corrections.geometry, again)
        assert np.array_equal(archive.elites.fitness, run.archive.fitness)
        assert np.array_equal(archive.elites.descriptors, run.archive.descriptors)
        assert np.array_equal(archive.cells, run.archive.cells)
        found = final(run, fixed_interval(run))
        assert [found[f"{name}_loss"] for name in CURVES] == [0, 0, 0]


def test_reevaluation_seeds_are_fresh_and_survivors_are_not_evaluated_again(tmp_path: Path) -> None:
    task = noisy_task()
    used: list[int] = []

    def counted(solutions: Any, seeds: Any) -> Any:
        used.extend(seeds.tolist())
        return task.function(solutions, seeds)

    counting = FunctionTask(**{**vars(task), "function": counted})
    run = run_of(counting, tmp_path / "run", corrections=4)
    assert len(set(used)) == len(used)  # no seed twice, neither in the run nor in the re-evaluations
    assert run.corrections is not None
    with np.load(tmp_path / "run/corrected.npz") as file:
        assert len(used) == 640 + 6 * len(file["keys"])
        assert len(np.unique(file["keys"])) == len(file["keys"])
    in_all = sum(len(point.fitness) for point in run.corrections.points)
    assert len(used) < 640 + 6 * in_all
    plan = Plan(task=task, task_source="", algorithm="map_elites", options={}, seed=0)
    key = int(run.archive.evaluations[0, 0])
    row = run.corrections.reevaluations(run.corrections.points[-1]).fitness[0]
    solutions = np.repeat(run.archive.elites.solutions[:1], 6, axis=0)
    again = task.evaluate(solutions, plan.reevaluation_seeds(key, 6))
    assert np.array_equal(again.fitness, row, equal_nan=True)


def test_small_chunks_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_of(noisy_task(), tmp_path / "whole", corrections=2)
    monkeypatch.setattr(correcting, "CHUNK_BYTES", 1)
    monkeypatch.setattr(correcting, "SAVE_EVERY", 0.0)
    pieces = run_of(noisy_task(), tmp_path / "pieces", corrections=2)
    assert same(whole.corrections, pieces.corrections)


def test_invalid_reevaluations_are_counted(tmp_path: Path) -> None:
    run = run_of(noisy_task(), tmp_path / "run", corrections=1, reevaluations=30)
    assert run.corrections is not None
    again = run.corrections.reevaluations(run.corrections.points[0])
    found = final(run, fixed_interval(run))
    assert found["lost_elites"] == np.isnan(again.fitness).any(axis=1).sum() > 0
    assert found["corrected_coverage"] <= found["coverage"] - found["lost_elites"]


def test_curves_and_intervals(tmp_path: Path) -> None:
    run = run_of(noisy_task(), tmp_path / "run", corrections=4)
    interval = fixed_interval(run)
    found = curves(run, interval)
    np.testing.assert_allclose(found.values["qd_score"], run.metrics["qd_score"], rtol=1e-12)
    assert found.corrected_evaluations.tolist() == [160, 320, 480, 640]
    for moment, seconds in zip(found.corrected_evaluations, found.corrected_seconds, strict=True):
        assert seconds == run.metrics["seconds"][run.metrics["evaluations"] == moment]
    assert found.corrected["qd_score"][-1] == final(run, interval)["corrected_qd_score"]
    low, high = pooled_interval([run])
    assert low == run.metrics["lowest_fitness"][-1]
    assert high == run.metrics["highest_fitness"][-1]
    pooled = final(run, (low, high))
    fitness = run.archive.fitness
    assert pooled["qd_score"] == pytest.approx(((fitness - low) / (high - low)).sum(), rel=1e-9)
    assert pooled["mean_fitness"] == pytest.approx(pooled["qd_score"] / len(fitness))


@pytest.mark.parametrize("afterwards", [False, True])
def test_killed_corrections_continue_to_the_same_bits(afterwards: bool, cli: Cli) -> None:
    (cli.folder / "mine.py").write_text(TASKS)
    start = ["run", "mine:task", "--batch-size", "48", "--evaluations", "960", "--checkpoint-every", "0"]
    wanted = ["--corrections", "3", "--reevaluations", "50"]
    path = cli.folder / "results/sphere/map_elites/seed-0"
    whole = cli.folder / "whole/sphere/map_elites/seed-0"
    if afterwards:
        for out in ("results", "whole"):
            assert cli(*start, "--out", out).returncode == 0
        command = ["correct", "--trust", str(path), "--reevaluations", "50"]
        assert cli("correct", "--trust", str(whole), "--reevaluations", "50").returncode == 0
    else:
        command = [*start, *wanted]
        assert cli(*start, *wanted, "--out", "whole").returncode == 0
    rng = stream(0, "kills", str(afterwards))
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        process = cli.start(*command)
        wait_for_rows(process, path / "metrics.csv", 6)
        time.sleep(0.7 + rng.random())
        process.send_signal(number)
        process.communicate(timeout=60)
    done = cli(*command)
    assert done.returncode == 0, done.stderr
    assert results(path) == results(whole)
    assert same(load(path).corrections, load(whole).corrections)


def test_other_numbers_of_reevaluations_and_damage_are_refused(tmp_path: Path) -> None:
    path = run_of(noisy_task(), tmp_path / "run", corrections=1).path
    options = registry.configure("map_elites", {"batch_size": "32"})
    plan = Plan(task=noisy_task(), task_source="mine:task", algorithm="map_elites", options=options, seed=0)
    with pytest.raises(InvalidInput, match="has 6 re-evaluations per elite, not 7"):
        correct_run(path, 7, Threads(1), Interrupt(), plan=plan)
    data = (path / "corrected.npz").read_bytes()
    (path / "corrected.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(DamagedFile, match=r"corrected\.npz is damaged and was not used"):
        load(path).corrections  # noqa: B018
