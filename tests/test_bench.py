"""The benchmark's raw limit is the same physics, and falling early is cheap."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import qdbench
from qdbench import RobotTask, simulation
from qdbench.simulation.bench import benchmark, replay, start_states


def test_the_replay_goes_where_the_policies_went(any_task: RobotTask) -> None:
    whole = replace(
        any_task,
        episode_length=40,
        healthy=(-np.inf, np.inf),
        descriptor="position",
        cells=(2, 2),
        descriptor_bounds=((0.0, 1.0),) * 2,
    )
    solutions, seeds = whole.random_solutions(6, qdbench.stream(0, "x")), qdbench.evaluation_seeds(0, 6)
    controls = np.zeros((6, 40, whole.policy.sizes[-1]), np.float32)
    expected = simulation.evaluate(whole, solutions, seeds, workers=2, record_controls=controls)
    _, batches = replay(whole, start_states(whole, seeds), controls, workers=2)
    ended = []
    for batch in batches:
        centre_of_mass = batch.bind("subtree_com")
        batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS.value)
        ended.append(centre_of_mass[:, whole.robot.anatomy.root_body, :2].copy())
    assert np.array_equal(np.concatenate(ended), expected.descriptors)


@pytest.mark.alone
def test_a_falling_robot_costs_what_it_lived() -> None:
    result = benchmark(qdbench.TASKS["hopper_uni"], workers=2, repeats=1)
    assert result.as_lived.evaluations > 5 * result.whole.evaluations
    assert result.ratio > 0.5  # about 0.9 on a quiet machine
