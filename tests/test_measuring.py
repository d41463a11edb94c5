"""On which geometry runs are measured, with which budgets, and what is told about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import qdbench
from noisy_runs import noisy, run
from qdbench import InvalidInput, load
from qdbench.analysis.compare import compare
from qdbench.analysis.measured import MeasuredTask
from qdbench.analysis.measures import On, PlacedRun, curves, final, fixed_interval
from qdbench.analysis.measuring import measure
from qdbench.analysis.warnings_of_runs import warnings_of
from qdbench.metrics.deviations import deviations
from qdbench.metrics.profile import profile
from qdbench.metrics.robustness import Reevaluations
from qdbench.metrics.scores import self_normalised_from_sums, self_normalised_qd_score
from toy_runs import edited, make, toy

SQUARE = replace(noisy(2), cells=(8, 8))


def measured(*paths: Path) -> MeasuredTask:
    found = measure(paths)
    assert found.skipped == ()
    (task,) = found.tasks
    return task


# Geometries


@pytest.mark.parametrize("on", ["own", "grid"])
@pytest.mark.parametrize(
    "algorithm",
    ["cvt_map_elites", "noisy_runs:SmallGrid", "noisy_runs:KeepsAll", "map_elites_unstructured"],
)
def test_before_and_after_are_on_one_geometry(algorithm: str, on: On, tmp_path: Path) -> None:
    done = load(run(tmp_path, SQUARE, algorithm, 0))
    interval = low, high = fixed_interval(done)
    placed, point = PlacedRun(done, on), done.final_point
    assert placed.geometry.kind == ("cvt" if (algorithm, on) == ("cvt_map_elites", "own") else "grid")
    assert placed.geometry.n_cells == 64
    assert point is not None
    found, fitness = final(done, interval, on), placed.fitness
    assert len(fitness) == found["coverage"] == len(placed.stored)
    assert len(placed.corrected(point)) == found["corrected_coverage"]
    assert profile(fitness).area(low, high) == pytest.approx((high - low) * found["qd_score"])
    own_range = curves(done, interval, on).values["self_normalised_qd_score"]
    assert found["self_normalised_qd_score"] == pytest.approx(own_range[-1])


def test_the_tasks_grid_has_the_tasks_bounds(tmp_path: Path) -> None:
    done = load(run(tmp_path, SQUARE, "noisy_runs:WideGrid", 0))
    np.testing.assert_array_equal(PlacedRun(done, "grid").geometry.bounds, [[-1, 1], [-1, 1]])
    assert len(PlacedRun(done, "grid").fitness) == done.metrics["grid_coverage"][-1]
    assert len(PlacedRun(done).fitness) == done.metrics["coverage"][-1]


# Scores


def test_the_self_normalised_score_of_sums_is_that_of_the_elites() -> None:
    archives = [np.array(values) for values in ([], [2.0], [3.0, 3.0], [1.0, 2.0, 5.0], [-1.0, -4.0])]
    least, most = ([f(values) if len(values) else np.nan for values in archives] for f in (np.min, np.max))
    sums = [len(values) for values in archives], [values.sum() for values in archives], least, most
    expected = [self_normalised_qd_score(values) for values in archives]
    np.testing.assert_allclose(self_normalised_from_sums(*map(np.array, sums)), expected)
    assert expected[3] == 1.25


def test_deviations_by_hand() -> None:
    fitness = np.array([[1.0, 3.0], [0.1, 0.1], [np.nan, 5.0], [0.0, 8.0]])
    descriptors = np.zeros((4, 2, 2))
    descriptors[0, 1] = 3.0, 4.0
    descriptors[2] = np.nan
    together = deviations(Reevaluations(fitness, descriptors))
    assert together == pytest.approx((2**0.5, 0.0))  # of √2, 0 and √32; of 5/√2, 0 and 0
    alone = deviations(Reevaluations(fitness[:1], descriptors[:1]))
    assert alone == pytest.approx((2**0.5, 5 / 2**0.5))
    for none in (Reevaluations(fitness, descriptors)[:1], Reevaluations(fitness[2:3], descriptors[2:3])):
        assert np.isnan(deviations(none)).all()


def test_a_deviation_that_is_undefined_has_its_reason(tmp_path: Path) -> None:
    make(tmp_path / "one", toy("toy_a"), reevaluations=1)
    (entry,) = (e for e in compare([tmp_path]).tasks[0].entries if e.metric == "fitness_deviation")
    assert entry.undefined == {"Undefined with one re-evaluation per elite; use at least two.": 1}


# Budgets


def test_a_target_that_was_passed_before_it_was_given_is_refused(tmp_path: Path) -> None:
    short = make(tmp_path / "short", toy("toy_a"), evaluations=100)
    long = make(tmp_path / "long", toy("toy_a"), seed=1)
    edited(long, target__evaluations=100)  # as by a kill before the record knew how far it was
    assert load(short).record.target == load(long).record.target
    with pytest.raises(
        InvalidInput, match=r"long was given its target of 100 evaluations when it had made 200"
    ):
        compare([tmp_path])
    seconds = load(short).metrics["seconds"]
    for target, refused in ((float(seconds[-2]), True), (float(seconds[-1]), False)):
        edited(short, target={"evaluations": None, "seconds": target})
        if refused:
            with pytest.raises(
                InvalidInput, match=r"different budgets: .*short was given its target of .* sec"
            ):
                compare([short])
        else:
            assert compare([short]).tasks


# Warnings


def test_corrected_means_outside_the_interval_are_told(tmp_path: Path) -> None:
    def better_again(solutions: NDArray[np.float32], seeds: NDArray[np.uint64]) -> tuple[Any, Any]:
        first = np.isin(seeds, used) if used else np.zeros(len(seeds), bool)
        if not used:
            used.extend(seeds.tolist())
            first[:] = True
        return np.where(first, 1.0, 3.0), solutions[:, :2].astype(np.float64)

    used: list[int] = []
    task = replace(noisy(2), function=better_again, fitness_bounds=(0.0, 4.0), score_interval=(0.5, 2.0))
    path = run(tmp_path, task, "map_elites", 0, batch_size=200)
    assert load(path).record.totals.lowest_fitness == 1.0
    assert not warnings_of([load(path)], (1.5, 4.0))  # below the interval is ordinary
    n = len(load(path).archive)
    (sentence,) = warnings_of([load(path)], (0.5, 2.0))
    assert sentence == (
        f"{path}: {n:,} elites have a corrected fitness above the interval of the QD score (up to 3). Each "
        "counts as 1."
    )
    (other,) = warnings_of([load(path)], (-1.0, 0.5))[:1]
    assert f"{n:,} elites have a fitness above the interval of the QD score (up to 1)" in other
    other_path = path.with_name("seed-1")
    copytree(path, other_path)
    (both,) = warnings_of([load(path), load(other_path)], (0.5, 2.0))
    assert both.startswith(f"{task.name} (2 runs): {2 * n:,} elites have a corrected fitness above")
    rmtree(other_path)
    assert compare([path]).tasks[0].warnings == (sentence,)
    assert measured(path).warnings == [sentence]


def test_every_replication_is_looked_at_for_its_resolution(tmp_path: Path) -> None:
    hopper = qdbench.make("hopper_uni", episode_length=60, cells=(20,))
    paths = [run(tmp_path, hopper, "random_search", seed, corrections=0, batch_size=200) for seed in range(3)]
    for path, lived in zip(paths, (50, 10, 11), strict=True):
        edited(path, totals__steps=lived * load(path).record.totals.evaluations)
    (sentence,) = warnings_of([load(path) for path in paths], fixed_interval(load(paths[0])))
    assert f"10 steps (the mean in {paths[1]}) give at most 11 values for 20 cells" in sentence
    assert sentence.endswith(" This is so in 2 runs.")
    assert compare(paths).tasks[0].warnings == (sentence,)
    assert measured(*paths).warnings == [sentence]


def test_a_run_that_was_extended_and_not_corrected_again_is_said_to_be(tmp_path: Path) -> None:
    for seed in range(2):
        make(tmp_path / f"a{seed}", toy("toy_a"), seed=seed, corrections=1, evaluations=100)
        make(tmp_path / f"a{seed}", toy("toy_a"), seed=seed, corrections=0)
    found = measured(tmp_path)
    assert [one.n_reevaluations for one in found.variants[0].runs] == [6, 6]
    assert found.variants[0].corrected == []
    make(tmp_path / "a2", toy("toy_a"), seed=2, corrections=1, reevaluations=3)
    with pytest.raises(
        InvalidInput, match=r"different numbers of times: 6 \(.*a0, .*a1\), 3 \(.*a2\); .*one N"
    ):
        measured(tmp_path)
