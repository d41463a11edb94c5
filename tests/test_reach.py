"""Bounds that fit the episode: the width of a cell stays, and the start is the middle of a cell."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import qdbench
from qdbench import InvalidInput, Reach, RobotTask, UnknownName
from qdbench.archives.geometry import Grid
from qdbench.tasks.options import changed_options, remade
from qdbench.terms import FINAL_POSITION

OMNI = [name for name in qdbench.TASKS if name.endswith("_omni")]
WIDTHS = {"ant_omni": 0.6, "humanoid_omni": 0.15, "hexapod_omni": 0.1}


@pytest.mark.parametrize("name", OMNI)
@pytest.mark.parametrize("length", [1, 7, 60, 250, 999, 1000])
def test_cells_keep_their_width_and_the_start_is_the_middle_of_one(name: str, length: int) -> None:
    task = qdbench.make(name, episode_length=length)
    for (low, high), n in zip(task.descriptor_bounds, task.cells, strict=True):
        assert (high - low) / n == pytest.approx(WIDTHS[name])
        middle = -low / (high - low) * n  # of the start, in cells
        assert middle - int(middle) == pytest.approx(0.5)
        assert abs(high + low) <= WIDTHS[name] * 1.001
    grid = Grid(task.descriptor_bounds, task.cells)
    around = np.array([[0.0, 0.0], *(0.49 * WIDTHS[name] * np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]))])
    assert len(set(grid.cells(around).tolist())) == 1


@pytest.mark.parametrize("name", OMNI)
def test_the_papers_cells_at_full_length(name: str) -> None:
    assert qdbench.TASKS[name].cells == (100, 100)
    assert qdbench.make(name, episode_length=250).cells == (25, 25)


def test_every_way_to_change_the_length_changes_the_bounds() -> None:
    task = qdbench.TASKS["ant_omni"]
    made = qdbench.make("ant_omni", episode_length=250)
    changed = replace(task, episode_length=250)
    again = replace(pickle.loads(pickle.dumps(made)), episode_length=1000)
    assert made.fingerprint == changed.fingerprint
    assert again.fingerprint == task.fingerprint
    assert again.cells == (100, 100)


def test_given_bounds_and_cells_stay() -> None:
    given = qdbench.make("ant_omni", descriptor_bounds=((-5.0, 5.0),) * 2, cells=(10, 10))
    assert isinstance(given, RobotTask)
    longer = replace(given, episode_length=2000)
    assert (longer.descriptor_bounds, longer.cells) == (((-5.0, 5.0),) * 2, (10, 10))
    coarse = qdbench.make("ant_omni", cells=(10, 10))
    assert coarse.descriptor_bounds == qdbench.TASKS["ant_omni"].descriptor_bounds


def test_a_run_records_what_makes_its_task_again() -> None:
    task = qdbench.make("hexapod_omni", episode_length=100)
    assert isinstance(task, RobotTask)
    again = remade("hexapod_omni", task.options())
    assert again.fingerprint == task.fingerprint
    assert changed_options(again, "hexapod_omni") == {"episode_length": 1000}
    given = qdbench.make("hexapod_omni", episode_length=100, cells=(100, 100))  # those of 1,000 steps
    assert isinstance(given, RobotTask)
    assert remade("hexapod_omni", given.options()).fingerprint == given.fingerprint
    assert list(changed_options(given, "hexapod_omni")) == ["episode_length", "cells"]


@pytest.mark.parametrize("values", [{"speed": 0, "cell": 1}, {"speed": 1, "cell": "wide"}])
def test_an_impossible_reach_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="reach: "):
        Reach(**values)


def test_the_mean_is_an_option_of_tasks_that_have_one() -> None:
    lived = qdbench.make("walker_uni", mean_over="lived")
    own = qdbench.TASKS["walker_uni"]
    assert isinstance(lived, RobotTask)
    assert (own.options()["mean_over"], lived.options()["mean_over"]) == ("episode", "lived")
    other = replace(own, descriptor=FINAL_POSITION)  # it has no such mean
    assert "mean_over" not in other.options()
    assert lived.fingerprint != own.fingerprint
    assert qdbench.make("walker_uni", mean_over="episode").fingerprint == own.fingerprint
    assert "mean_over" not in qdbench.TASKS["ant_omni"].options()
    with pytest.raises(UnknownName, match="no option 'mean_over'"):
        qdbench.make("ant_omni", mean_over="lived")
    with pytest.raises(InvalidInput, match="mean_over is 'half'; use episode or lived"):
        qdbench.make("walker_uni", mean_over="half")
    with pytest.raises(InvalidInput, match="mean_over is array"):
        qdbench.make("walker_uni", mean_over=np.empty(0))


def test_a_robot_that_falls_divides_by_the_whole_episode() -> None:
    task = qdbench.make("humanoid_uni", episode_length=200)
    lived = qdbench.make("humanoid_uni", episode_length=200, mean_over="lived")
    solutions = task.random_solutions(8, qdbench.stream(3, "falls"))
    a, b = task.evaluate(solutions, range(8)), lived.evaluate(solutions, range(8))
    assert (a.steps < 200).any()
    assert np.array_equal(a.fitness, b.fitness)
    assert np.allclose(a.descriptors * 200, b.descriptors * b.steps[:, None])


def test_scales_multiply_what_a_policy_observes() -> None:
    task = qdbench.TASKS["ant_uni"]
    plain = replace(task, observation=tuple(replace(block, scale=1.0) for block in task.observation))
    sizes = [block.n_values(task.anatomy) for block in task.observation]
    expected = np.repeat([block.scale for block in task.observation], sizes)
    assert np.array_equal(task.observation_scales, expected.astype(np.float32))
    assert plain.fingerprint != task.fingerprint
    zeros = np.zeros(task.n_parameters, np.float32)
    first = [t.rollout(zeros, 0).observations for t in (task, plain)]
    assert np.allclose(first[0], first[1] * task.observation_scales, rtol=1e-6)
