"""The benchmark's raw limit is the same physics, and falling early is cheap."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import qdbench
from qdbench import RobotTask, simulation
from qdbench.simulation.bench import benchmark, replay, start_states
from qdbench.terms import FINAL_POSITION, NEVER


def test_the_replay_goes_where_the_policies_went(any_task: RobotTask) -> None:
    whole = replace(
        any_task,
        episode_length=40,
        ending=NEVER,
        descriptor=FINAL_POSITION,
        cells=(2, 2),
        descriptor_bounds=((0.0, 1.0),) * 2,
    )
    solutions, seeds = whole.random_solutions(6, qdbench.stream(0, "x")), qdbench.evaluation_seeds(0, 6)
    recorder = simulation.ControlRecorder()
    expected = whole.evaluate(solutions, seeds, workers=2, recorder=recorder)
    _, batches = replay(whole, start_states(whole, seeds), recorder.controls, workers=2)
    ended = []
    for batch in batches:
        centre_of_mass = batch.bind("subtree_com")
        batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS.value)
        ended.append(centre_of_mass[:, whole.anatomy.root_body, :2].copy())
    assert np.array_equal(np.concatenate(ended), expected.descriptors)


@pytest.mark.alone
def test_a_falling_robot_costs_only_its_steps() -> None:
    result = benchmark(qdbench.TASKS["hopper_uni"], workers=2, repeats=1)
    assert result.terminating.evaluations > 5 * result.full_length.evaluations
    assert result.ratio > 0.5  # about 0.9 on a quiet machine
