"""The nine tasks: the paper's Table 1, options, versions and fingerprints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import qdbench
from qdbench import InvalidInput, QdbenchError, RobotTask, UnknownName, make, terms
from qdbench.terms import FINAL_POSITION

# Table 1 as docs/differences.md corrects it: observations, actions, parameters, cells
TABLE_1 = {
    "hopper_uni": (14, 3, 5_315, (900,)),
    "walker_uni": (20, 6, 5_894, (30, 30)),
    "halfcheetah_uni": (26, 6, 6_278, (30, 30)),
    "ant_uni": (87, 8, 10_312, (5,) * 4),
    "humanoid_uni": (299, 17, 24_465, (30, 30)),
    "hexapod_uni": (169, 18, 16_210, (5,) * 6),
    "ant_omni": (87, 8, 10_312, (100, 100)),
    "humanoid_omni": (299, 17, 24_465, (100, 100)),
    "hexapod_omni": (169, 18, 16_210, (100, 100)),
}


def test_table_1_to_the_digit() -> None:
    assert list(qdbench.TASKS) == list(TABLE_1)
    for name, (observations, actions, parameters, cells) in TABLE_1.items():
        task = qdbench.TASKS[name]
        assert task.policy.sizes == (observations, 64, 64, actions), name
        assert (task.n_parameters, task.cells, task.episode_length) == (parameters, cells, 1000), name
        assert task.random_solutions(2, qdbench.stream(0, "x")).shape == (2, parameters)


def test_every_task_is_a_task(any_task: RobotTask) -> None:
    assert isinstance(any_task, qdbench.Task)


def test_fitness_bounds_hold_and_are_exact_without_a_forward_term(any_task: RobotTask) -> None:
    low, high = any_task.fitness_bounds
    evaluation = any_task.evaluate(any_task.random_solutions(32, qdbench.stream(0, "x")), range(32))
    assert (evaluation.fitness >= low).all()
    assert (evaluation.fitness <= high).all()
    if any_task.descriptor is FINAL_POSITION:
        steps, actions = any_task.episode_length, any_task.policy.sizes[-1]
        survival, cost = (reward.parameters for reward in any_task.rewards)
        worst_step = survival["bonus"] - cost["weight"] * actions
        assert high == survival["bonus"] * steps
        assert low == (worst_step * steps if worst_step < 0 else worst_step)


@pytest.mark.parametrize("weights", [(-1.0, 0.5), (1.0, -0.5), (-1.0, -0.5)])
def test_bounds_hold_with_negative_weights_too(weights: tuple[float, float]) -> None:
    forward, torque = weights
    rewards = (terms.forward(forward, of="root", top_speed=15), terms.survive(1), terms.torque(torque))
    task = replace(make("ant_uni", episode_length=30), rewards=rewards)
    fitness = task.evaluate(task.random_solutions(20, qdbench.stream(0, "x")), range(20)).fitness
    low, high = task.fitness_bounds
    assert low <= fitness.min() < fitness.max() <= high


def test_the_exact_bounds_are_reached() -> None:
    """Full torque everywhere is the ant's worst, none its best."""
    task = make("ant_omni", episode_length=20)
    solutions = np.zeros((2, task.n_parameters), np.float32)
    solutions[0, -8:] = 100  # the last biases: tanh saturates
    evaluation = replace(task, ending=terms.NEVER).evaluate(solutions, [1, 1])
    assert tuple(evaluation.fitness) == task.fitness_bounds


@pytest.mark.parametrize(
    "option",
    [
        {"episode_length": 61},
        {"reset_noise": 0.0},
        {"hidden": (32,)},
        {"cells": True},
        {"descriptor_bounds": True},
    ],
)
def test_every_option_is_part_of_the_identity(any_task: RobotTask, option: dict[str, object]) -> None:
    if "cells" in option:
        option = {"cells": [n + 1 for n in any_task.cells]}
    if "descriptor_bounds" in option:
        option = {"descriptor_bounds": [[low, high + 1] for low, high in any_task.descriptor_bounds]}
    changed = make(any_task.name, **{"episode_length": any_task.episode_length, **option})
    same = make(any_task.name, episode_length=any_task.episode_length)
    assert same.fingerprint == any_task.fingerprint
    assert changed.fingerprint != any_task.fingerprint


def test_the_spelling_of_a_number_is_not() -> None:
    spellings = [
        {"reset_noise": 0, "episode_length": 5, "cells": (10, 10)},
        {"reset_noise": 0.0, "episode_length": np.int64(5), "cells": [10, 10]},
        {"reset_noise": np.float32(0), "episode_length": 5, "cells": np.array([10, 10])},
    ]
    tasks = [make("ant_omni", **options) for options in spellings]
    assert len({task.fingerprint for task in tasks}) == 1
    assert tasks[0] == tasks[1] == tasks[2]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"descriptor": "feet"}, "descriptor has 'feet'; give descriptors from qdbench.terms"),
        ({"ending": terms.JOINT_NOISE}, "give endings from qdbench.terms, or your own qdbench.terms.Ending"),
        ({"observation": ("height",)}, "observation has 'height'; give observation blocks"),
        ({"observation": terms.HEIGHT}, "give a tuple of records"),
        ({"rewards": terms.survive(1)}, "give a tuple of records"),
        (
            {"rewards": (terms.survive(1), terms.survive(2))},
            "(survive, survive); give at least one, with different names",
        ),
        ({"rewards": ()}, "the rewards are (); give at least one"),
        ({"version": 0}, "version is 0"),
    ],
)
def test_a_wrong_record_gets_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(QdbenchError) as caught:
        replace(make("ant_uni"), **change)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("make_term", "sentence"),
    [
        (lambda: terms.forward(1, of="torso", top_speed=1), "no of 'torso'; use 'com' or 'root'"),  # type: ignore[arg-type]
        (lambda: terms.forward(1, top_speed=-1), "top_speed is -1"),
        (lambda: terms.healthy(1.0, 0.2), "healthy: (1.0, 0.2) must be ascending"),
        (lambda: terms.survive(float("nan")), "bonus is nan"),
        (lambda: terms.torque("much"), "weight is 'much'"),  # type: ignore[arg-type]
        (lambda: terms.Ending("x", len, {"to": {}}), "the parameter to is {}; give numbers, text or tuples"),
        (lambda: terms.Ending("x", len, demands=("foot",)), "no demand 'foot'; did you mean 'root'"),
        (lambda: terms.Ending("x", len, version=0), "ending 'x': version is 0"),
    ],
)
def test_a_wrong_term_gets_a_sentence(make_term: Callable[[], terms.Ending], sentence: str) -> None:
    with pytest.raises(QdbenchError) as caught:
        make_term()
    assert sentence in str(caught.value)


def test_version_and_mjcf_are_part_of_the_identity(any_task: RobotTask) -> None:
    other_mjcf = replace(any_task.robot, mjcf=any_task.robot.mjcf.replace("</mujoco>", "<!-- x --></mujoco>"))
    other_physics = (
        replace(any_task.robot, physics_steps=7),
        replace(any_task.robot, exact_contacts=not any_task.robot.exact_contacts),
    )
    others = [replace(any_task, robot=robot) for robot in (other_mjcf, *other_physics)]
    others.append(replace(any_task, version=any_task.version + 1))
    assert len({any_task.fingerprint, *(task.fingerprint for task in others)}) == 5


def test_fingerprints_of_the_nine_differ() -> None:
    assert len({task.fingerprint for task in qdbench.TASKS.values()}) == 9


def test_random_solutions_are_lecun_uniform(any_task: RobotTask) -> None:
    inputs, first, *_ = any_task.policy.sizes
    solutions = any_task.random_solutions(8, qdbench.stream(3, "x"))
    weights = solutions[:, : inputs * first]
    limit = (3 / inputs) ** 0.5
    assert 0.99 * limit < np.abs(weights).max() <= limit * (1 + 1e-6)
    assert abs(weights.std() - inputs**-0.5) < 0.05 * inputs**-0.5  # variance 1 / inputs
    assert not solutions[:, inputs * first : inputs * first + first].any()  # biases
    assert np.array_equal(solutions[:3], any_task.random_solutions(3, qdbench.stream(3, "x")))


BAD_OPTIONS = [
    ("ant_omny", {}, "did you mean 'ant_omni'"),
    ("ant_omni", {"episode_lenght": 3}, "did you mean 'episode_length'"),
    ("ant_omni", {"version": 3}, "ant_omni takes episode_length"),
    ("ant_omni", {"episode_length": 0}, "episode_length is 0"),
    ("ant_omni", {"episode_length": 2.5}, "episode_length is 2.5"),
    ("ant_omni", {"reset_noise": -1.0}, "reset_noise is -1.0"),
    ("ant_omni", {"reset_noise": float("nan")}, "reset_noise is nan"),
    ("ant_omni", {"cells": (3,)}, "for 1 dimensions"),
    ("ant_omni", {"cells": 3}, "cells is 3"),
    ("ant_omni", {"cells": (3, 0)}, "cells is 0"),
    ("ant_omni", {"cells": (3, 3, 3), "descriptor_bounds": [(0, 1)] * 3}, "2 descriptor dimensions"),
    ("ant_omni", {"descriptor_bounds": (1, 2)}, "is not an interval; give (low, high)"),
    ("ant_omni", {"descriptor_bounds": ((1, 1), (0, 2))}, "ascending"),
    ("ant_omni", {"hidden": 64}, "hidden is 64"),
    ("ant_omni", {"hidden": (64, 0)}, "hidden is 0"),
    (3, {}, "no task '3'"),
    (".x:task", {}, "cannot load the task"),
    ("nowhere:task", {}, "cannot load the task 'nowhere:task'"),
    ("math:pi", {}, "is not a task but float"),
]


@pytest.mark.parametrize(("name", "options", "sentence"), BAD_OPTIONS)
def test_bad_names_and_options_get_a_sentence(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(QdbenchError) as caught:
        make(name, **options)
    assert sentence in str(caught.value)
    assert isinstance(caught.value, InvalidInput | UnknownName)


def _bad_inputs(n: int) -> list[tuple[Any, Any, Any, str]]:
    good = np.zeros((2, n), np.float32)
    broken = good.copy()
    broken[1, 3] = np.nan
    infinite = good.copy()
    infinite[0, 0] = np.inf
    return [
        (good[:, 1:], [0, 1], 1, f"takes (n, {n})"),
        (good[0], [0], 1, "have shape"),
        (good.astype(np.float64), [0, 1], 1, "float32 NumPy array, not float64"),
        (good.tolist(), [0, 1], 1, "not list"),
        (broken, [0, 1], 1, "solution 1 has NaN"),
        (infinite, [0, 1], 1, "solution 0 has NaN or infinity"),
        (good, [0], 1, "seeds have shape (1,) for 2 solutions"),
        (good, 0, 1, "seeds have shape ()"),
        (good, [0.0, 1.0], 1, "seeds are not all integers: [0.0, 1.0]"),
        (good, [0, -1], 1, "seeds reach from -1"),
        (good, [0, 2**64], 1, "to 18446744073709551616"),
        (good, np.array([0.5, 1]), 1, "seeds are not all integers: [0.5, 1.0]"),
        (good, np.ma.masked_array([1, 2], [False, True]), 1, "seeds is a masked array; give one without"),
        (np.ma.masked_array(good), [0, 1], 1, "solutions is a masked array; give one without"),
        (good, [0, 1], 0, "workers is 0"),
        (good, [0, 1], 1.5, "workers is 1.5"),
        (good, [0, 1], True, "workers is True"),
    ]


@pytest.mark.parametrize("case", range(len(_bad_inputs(5))))
def test_bad_input_to_evaluate_gets_a_sentence(case: int) -> None:
    task = make("hopper_uni")
    solutions, seeds, workers, sentence = _bad_inputs(task.n_parameters)[case]
    with pytest.raises(InvalidInput) as caught:
        task.evaluate(solutions, seeds, workers=workers)
    assert sentence in str(caught.value)


def test_nothing_to_evaluate_is_fine(any_task: RobotTask) -> None:
    evaluation = any_task.evaluate(np.zeros((0, any_task.n_parameters), np.float32), [])
    assert evaluation.fitness.shape == (0,)
    assert evaluation.descriptors.shape == (0, len(any_task.cells))


def test_streams_follow_their_seed_and_name_alone() -> None:
    def first(*key: Any) -> float:
        return float(qdbench.stream(*key).random())

    assert first(3, "x", 1) == first(np.int64(3), "x", np.uint8(1))
    assert len({first(3, "x"), first(3, "y"), first(4, "x"), first(3, "x", 0), first(3)}) == 5
    assert np.array_equal(qdbench.evaluation_seeds(1, 5)[:3], qdbench.evaluation_seeds(1, 3))


@pytest.mark.parametrize("key", [(-1,), (1.5,), ("a",), (True,), (0, 2.5)])
def test_a_bad_seed_gets_a_sentence(key: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput, match="whole number of 0 or more"):
        qdbench.stream(*key)


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_a_bad_number_of_random_solutions_gets_a_sentence(n: int) -> None:
    with pytest.raises(InvalidInput, match="n is "):
        make("hopper_uni").random_solutions(n, qdbench.stream(0, "x"))


def test_a_rollout_takes_one_solution() -> None:
    task = make("hopper_uni", episode_length=3)
    with pytest.raises(InvalidInput, match="one solution, not 2"):
        task.rollout(np.zeros((2, task.n_parameters), np.float32), 0)
