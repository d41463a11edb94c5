"""Tasks with known truth: the exact means are those of many evaluations, and of independent integrals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

import qdbench
from conftest import Cli
from qdbench import InvalidInput
from qdbench.policy import Parameters
from qdbench.seeds import normal_of, uniform_of
from qdbench.store.loading import FAMILIES
from qdbench.tasks.known_truth import JOINT_NOISE, KNOWN_TRUTH, Noisy, arm

N = 40_000


def _arms(rows: list[list[float]]) -> Parameters:
    return np.array(rows, np.float32)


def test_results_of_other_tasks_are_read_without_importing_these() -> None:
    assert {name.partition("_")[0] for name in KNOWN_TRUTH} == set(FAMILIES)


CROOKED = _arms([[0.0, 1.0] * 4])


@pytest.mark.parametrize("name", KNOWN_TRUTH)
def test_the_truth_is_the_mean_of_many_evaluations(name: str) -> None:
    task = KNOWN_TRUTH[name]
    solutions = task.random_solutions(3, qdbench.stream(1, name))
    fitness, descriptors = task.expected(solutions)
    for i in range(len(solutions)):
        seeds = qdbench.evaluation_seeds(i, N)
        found = task.evaluate(np.repeat(solutions[i : i + 1], N, axis=0), seeds)
        spread = found.fitness.std() / np.sqrt(N)
        assert found.fitness.mean() == pytest.approx(fitness[i], abs=4.5 * spread + 1e-9)
        spreads = found.descriptors.std(axis=0) / np.sqrt(N)
        assert (np.abs(found.descriptors.mean(axis=0) - descriptors[i]) <= 4.5 * spreads + 1e-9).all()
        assert found.valid.all()


@pytest.mark.parametrize(
    ("name", "of_fitness", "of_descriptor"),
    [
        ("arm", 0, 0), ("arm_noisy_fitness", 0.1, 0), ("arm_noisy_descriptor_1", 0, 0.01),
        ("arm_noisy_descriptor_3", 0, 0.03), ("arm_noisy_both", 0.1, 0.01), ("sphere_noisy_both", 0.1, 0.01),
        ("sphere_noisy_descriptor_3", 0, 0.03),
    ],
)  # fmt: skip
def test_noise_has_the_stated_size(name: str, of_fitness: float, of_descriptor: float) -> None:
    task = KNOWN_TRUTH[name]
    solutions = np.repeat(task.random_solutions(1, qdbench.stream(1, name)), N, axis=0)
    found = task.evaluate(solutions, qdbench.evaluation_seeds(0, N))
    width = task.fitness_bounds[1] - task.fitness_bounds[0]
    box = np.diff(task.descriptor_bounds, axis=1)[:, 0]
    assert found.fitness.std() / width == pytest.approx(of_fitness, rel=0.02)
    assert found.descriptors.std(axis=0) / box == pytest.approx(of_descriptor, rel=0.02)


def test_fitter_arms_are_noisier() -> None:
    task = KNOWN_TRUTH["arm_fitter_is_noisier"]
    straight, crooked = np.full((N, 8), 0.5, np.float32), np.tile(CROOKED, (N, 1))
    seeds = qdbench.evaluation_seeds(0, N)
    assert task.evaluate(straight, seeds).descriptors.std(axis=0) == pytest.approx(0.03, rel=0.02)
    assert task.evaluate(crooked, seeds).descriptors.std(axis=0) == pytest.approx(0, abs=1e-12)


def test_outliers_are_rare_and_the_median_is_the_function_s() -> None:
    task = KNOWN_TRUTH["arm_outliers"]
    one = task.random_solutions(1, qdbench.stream(2, "one"))
    found = task.evaluate(np.repeat(one, N, axis=0), qdbench.evaluation_seeds(0, N)).descriptors
    where = arm(one)[1][0]
    assert (found != where).any(axis=1).mean() == pytest.approx(0.15, abs=0.008)
    assert isinstance(task.function, Noisy)
    assert np.array_equal(np.median(found, axis=0), task.function.median(one)[1][0])


def test_the_noisy_joint_s_fitness_is_the_integral() -> None:
    task = KNOWN_TRUTH["arm_noisy_joint"]
    solutions = np.concatenate(
        [
            task.random_solutions(6, qdbench.stream(3, "arms")),
            np.full((1, 8), 0.5, np.float32),  # no spread at all: a kink in the middle
            _arms([[0.51] + [0.5] * 7]),  # the kink beside
            _arms([[0.5] * 7 + [0.500001]]),  # almost a kink
            CROOKED,
        ]
    )
    found, _ = task.expected(solutions)
    for one, value in zip(solutions, found, strict=True):
        angles = (one.astype(float) - 0.5) * 2 * np.pi

        def weighed(x: float, angles: NDArray[np.float64] = angles) -> float:
            moved = angles + np.eye(8)[0] * x
            density = np.exp(-0.5 * (x / JOINT_NOISE) ** 2) / JOINT_NOISE / np.sqrt(2 * np.pi)
            return float(-moved.std() * density)

        kink = float(np.clip(-(angles[0] - angles[1:].mean()), -0.4, 0.4))
        parts = [
            integrate.quad(weighed, *ends, epsabs=1e-13, limit=200)[0]
            for ends in ((-0.45, kink), (kink, 0.45))
        ]
        assert value == pytest.approx(sum(parts), abs=1e-9)


def test_the_arm_reaches_a_disc() -> None:
    task = KNOWN_TRUTH["arm"]
    solutions = task.random_solutions(20_000, qdbench.stream(0, "arms"))
    solutions[::2] = (
        solutions[::2, :1] * 0.2 + 0.4 + 0.02 * solutions[::2]
    )  # and some that are almost straight
    found = task.evaluate(solutions, range(20_000))
    radius = np.hypot(*(found.descriptors - 0.5).T)
    assert radius.max() <= 0.5
    assert radius.max() > 0.49
    straight = task.evaluate(np.full((1, 8), 0.5, np.float32), [0])
    assert straight.fitness[0] == 0
    assert straight.descriptors[0] == pytest.approx([1, 0.5])
    low, high = task.fitness_bounds
    assert ((found.fitness >= low) & (found.fitness <= high)).all()
    assert task.evaluate(CROOKED, [0]).fitness[0] == pytest.approx(low)


def test_random_numbers_depend_on_the_seed_alone() -> None:
    seeds = qdbench.evaluation_seeds(0, 50_000)
    uniform, normal = uniform_of(seeds, 3), normal_of(seeds, 2)
    assert np.array_equal(uniform[100:200], uniform_of(seeds[100:200], 3))
    assert np.array_equal(normal[7:8], normal_of(seeds[7:8], 2))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert uniform.mean(axis=0) == pytest.approx(0.5, abs=0.006)
    related = np.atleast_2d(np.corrcoef(np.hstack([uniform, uniform_of(~seeds, 3)]).T))
    assert related == pytest.approx(np.eye(6), abs=0.02)
    assert normal.mean(axis=0) == pytest.approx(0, abs=0.02)
    assert normal.std(axis=0) == pytest.approx(1, abs=0.02)
    # SplitMix64 from 1234567, as published with the algorithm
    assert int(uniform_of(np.array([1234567], np.uint64), 1)[0, 0] * 2**53) == 6457827717110365317 >> 11


def test_they_are_named_beside_the_nine(cli: Cli) -> None:
    assert not set(KNOWN_TRUTH) & set(qdbench.TASKS)
    assert len({task.fingerprint for task in KNOWN_TRUTH.values()}) == len(KNOWN_TRUTH) == 15
    done = cli("tasks")
    assert all(name in done.stdout for name in KNOWN_TRUTH)
    rows = json.loads(cli("tasks", "--json").stdout)
    assert rows[9]["task"] == "arm"
    assert rows[9]["reachable"] == pytest.approx(np.pi / 4)
    coarse = qdbench.make("arm_noisy_joint", cells=(10, 10))
    assert coarse.cells == (10, 10)
    with pytest.raises(InvalidInput, match="the truth of plain is not known"):
        qdbench.FunctionTask(
            name="plain", function=arm, n_parameters=8, descriptor_bounds=((0, 1), (0, 1)), cells=(2, 2),
            fitness_bounds=(-4, 0),
        ).expected(np.zeros((1, 8), np.float32))  # fmt: skip
