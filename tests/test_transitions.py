"""Recorders: transitions are the same in any arrangement and agree with rewards, rollouts and endings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qdbench
from qdbench import Evaluations, InvalidInput, RobotTask, make, stream
from qdbench.simulation import ControlRecorder, TransitionRecorder, Transitions

N, LENGTH = 14, 40
ARRAYS = ("solutions", "observations", "actions", "rewards", "next_observations", "ended", "truncated")


@cache
def recorded(name: str, workers: int = 1, slots: int = N, n: int = N) -> tuple[Evaluations, Transitions]:
    task, recorder = replace(qdbench.TASKS[name], episode_length=LENGTH), TransitionRecorder(n)
    evaluation = task.evaluate(solutions(task), range(N), workers=workers, slots=slots, recorder=recorder)
    return evaluation, recorder.transitions()


def solutions(task: RobotTask) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    some: np.ndarray[tuple[int, int], np.dtype[np.float32]] = task.random_solutions(N, stream(1, "x"))
    some[::3] *= 3  # bold ones that fall early
    return some


@pytest.mark.parametrize("name", ["hopper_uni", "ant_omni"])
@given(workers=st.integers(1, 4), slots=st.integers(1, 9))
def test_order_and_content_do_not_depend_on_workers_and_slots(name: str, workers: int, slots: int) -> None:
    (_, expected), (_, found) = recorded(name), recorded(name, workers, slots)
    for array in ARRAYS:
        assert np.array_equal(getattr(expected, array), getattr(found, array)), array


def test_transitions_are_ordered_and_complete(any_task: RobotTask) -> None:
    evaluation, found = recorded(any_task.name)
    assert np.array_equal(found.solutions, np.repeat(np.arange(N), evaluation.steps))
    assert len(found) == evaluation.steps.sum()
    totals = np.bincount(found.solutions, found.rewards, minlength=N)
    assert totals == pytest.approx(evaluation.fitness, rel=1e-12)
    last = np.cumsum(evaluation.steps) - 1
    inner = np.setdiff1d(np.arange(len(found)), last)
    assert np.array_equal(found.next_observations[inner], found.observations[inner + 1])
    assert not (found.ended | found.truncated)[inner].any()
    assert np.array_equal(found.truncated[last], ~found.ended[last])  # one of the two, never both
    assert np.array_equal(np.flatnonzero(found.ended | found.truncated), last)
    assert (evaluation.steps[found.truncated[last]] == LENGTH).all()


def test_transitions_are_what_a_rollout_shows(any_task: RobotTask) -> None:
    _, found = recorded(any_task.name)
    task = replace(any_task, episode_length=LENGTH)
    for i in range(3):
        episode, rows = task.rollout(solutions(task)[i], i), found.solutions == i
        assert np.array_equal(episode.observations, found.observations[rows])
        assert np.array_equal(episode.actions, found.actions[rows])
        assert np.array_equal(sum(episode.terms.values()), found.rewards[rows])
        height = episode.qpos[-1, 1 if task.anatomy.planar else 2]
        low, high = task.ending.parameters.get("low", -np.inf), task.ending.parameters.get("high", np.inf)
        upright = True
        if "tilt" in task.ending.parameters:
            _, x, y, _ = episode.qpos[-1, 3:7]
            upright = np.degrees(np.arccos(1 - 2 * (x * x + y * y))) <= task.ending.parameters["tilt"]
        assert found.ended[rows][-1] == (not (low < height < high and upright))


def test_a_fall_in_the_last_step_is_an_end_and_no_truncation() -> None:
    evaluation, _ = recorded("hopper_uni")
    early = int(np.argmin(evaluation.steps))
    task, recorder = make("hopper_uni", episode_length=int(evaluation.steps[early])), TransitionRecorder(N)
    task.evaluate(solutions(task), range(N), recorder=recorder)
    found = recorder.transitions()
    assert found.ended[found.solutions == early][-1]
    assert not found.truncated[found.solutions == early].any()
    assert found.truncated.any()


def test_only_what_was_asked_for_is_kept() -> None:
    (_, everything), (evaluation, few) = recorded("hopper_uni"), recorded("hopper_uni", 2, 3, 4)
    assert set(few.solutions) == {0, 1, 2, 3}
    assert np.array_equal(few.observations, everything.observations[everything.solutions < 4])
    assert len(few) == evaluation.steps[:4].sum()


def test_invalid_episodes_are_left_out() -> None:
    task = make("ant_uni", episode_length=30)
    wild = replace(task, robot=replace(task.robot, mjcf=task.robot.mjcf.replace('gear="150"', "gear='1e9'")))
    mixed = np.zeros((3, task.n_parameters), np.float32)
    mixed[1] = task.random_solutions(1, stream(0, "x"))
    recorder = TransitionRecorder(3)
    evaluation = wild.evaluate(mixed, range(3), recorder=recorder)
    assert evaluation.valid.tolist() == [True, False, True]
    found = recorder.transitions()
    assert set(found.solutions) == {0, 2}
    assert np.isfinite(found.observations).all()


def test_a_recorder_must_have_seen_something() -> None:
    with pytest.raises(InvalidInput, match="nothing has been recorded"):
        TransitionRecorder(3).transitions()
    with pytest.raises(InvalidInput, match="episodes is 0"):
        TransitionRecorder(0)


def test_controls_are_the_actions() -> None:
    task, recorder = make("hopper_uni", episode_length=LENGTH), ControlRecorder()
    evaluation = task.evaluate(solutions(task), range(N), workers=2, slots=3, recorder=recorder)
    _, found = recorded("hopper_uni")
    lived = np.arange(LENGTH) < evaluation.steps[:, None]
    assert np.array_equal(recorder.controls[lived], found.actions)
    assert not recorder.controls[~lived].any()


def test_recording_changes_nothing() -> None:
    task = qdbench.make("humanoid_omni", episode_length=LENGTH)
    plain = task.evaluate(solutions(task), range(N))
    watched, _ = recorded("humanoid_omni")
    assert np.array_equal(plain.fitness, watched.fitness)
    assert np.array_equal(plain.descriptors, watched.descriptors)
