"""Simulation: the same bits in any arrangement, the same numbers as a plain loop, failures contained."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import qdbench
from plain import Plain, live_episode, perceptron
from qdbench import Evaluations, RobotTask, evaluation_seeds, make, stream
from qdbench.terms import CONTACT_WRENCHES, FEET_CONTACTS, NEVER

N = 12


def short(name: str) -> RobotTask:
    return replace(qdbench.TASKS[name], episode_length=40)


@pytest.fixture(scope="module")
def reference() -> dict[str, tuple[NDArray[np.float32], NDArray[np.uint64], Evaluations]]:
    """For every task: solutions, seeds, and their evaluation in one arrangement."""
    evaluated = {}
    for name in qdbench.TASKS:
        task = short(name)
        solutions, seeds = task.random_solutions(N, stream(5, name)), evaluation_seeds(5, N)
        solutions[::3] *= 3  # some bold ones that fall early
        evaluated[name] = solutions, seeds, task.evaluate(solutions, seeds, workers=1, slots=N)
    return evaluated


def assert_same(a: Evaluations, b: Evaluations, rows: list[int]) -> None:
    for name in ("fitness", "descriptors", "steps", "valid"):
        assert np.array_equal(getattr(a, name)[rows], getattr(b, name), equal_nan=True), name
    assert list(a.terms) == list(b.terms)
    for name in a.terms:
        assert np.array_equal(a.terms[name][rows], b.terms[name], equal_nan=True), name


@pytest.mark.parametrize("name", list(qdbench.TASKS))
@given(data=st.data())
@settings(max_examples=8)
def test_an_evaluation_depends_on_task_solution_and_seed_alone(
    name: str,
    data: st.DataObject,
    reference: dict[str, tuple[NDArray[np.float32], NDArray[np.uint64], Evaluations]],
) -> None:
    solutions, seeds, expected = reference[name]
    rows = data.draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=2 * N), "rows")
    workers = data.draw(st.integers(1, 4), "workers")
    slots = data.draw(st.integers(1, 9), "slots")
    got = short(name).evaluate(solutions[rows], seeds[rows], workers=workers, slots=slots)
    assert_same(expected, got, rows)


@pytest.mark.parametrize("name", list(qdbench.TASKS))
def test_the_plain_loop_agrees_exactly(
    name: str, reference: dict[str, tuple[NDArray[np.float32], NDArray[np.uint64], Evaluations]]
) -> None:
    solutions, seeds, got = reference[name]
    task = short(name)
    for i in range(N):
        robot = live_episode(task, perceptron(task, solutions[i]), int(seeds[i]))
        assert robot.steps == got.steps[i]
        assert robot.fitness == got.fitness[i]
        assert np.array_equal(robot.descriptor, got.descriptors[i])
        plain = {"forward": robot.forward, "survive": robot.survive, "torque": robot.torque}
        assert got.terms.keys() <= plain.keys()
        assert {name: values[i] for name, values in got.terms.items()} == {k: plain[k] for k in got.terms}
        assert all(value == 0 for name, value in plain.items() if name not in got.terms)


def test_some_episodes_end_early_and_some_do_not(
    reference: dict[str, tuple[NDArray[np.float32], NDArray[np.uint64], Evaluations]],
) -> None:
    """Otherwise the tests above would not see slots change hands."""
    lived = np.concatenate([evaluation.steps for _, _, evaluation in reference.values()])
    assert (lived < 40).sum() > 10
    assert (lived == 40).sum() > 10


def test_a_seed_is_all_the_noise_there_is(any_task: RobotTask) -> None:
    solutions = np.repeat(any_task.random_solutions(1, stream(0, "x")), 3, axis=0)
    noisy = any_task.evaluate(solutions, [4, 4, 2**64 - 1])
    assert noisy.fitness[0] == noisy.fitness[1] != noisy.fitness[2]
    still = replace(any_task, reset_noise=0.0).evaluate(solutions, [4, 5, 6])
    assert still.fitness[0] == still.fitness[1] == still.fitness[2]


def test_reset_noise_is_within_bounds_and_spares_the_root(any_task: RobotTask) -> None:
    robot = any_task.anatomy
    start = robot.model.key_qpos[robot.start_keyframe]
    policy = np.zeros(any_task.n_parameters, np.float32)
    starts = [any_task.rollout(policy, seed) for seed in range(20)]
    angles = np.array([episode.qpos[0] - start for episode in starts])
    speeds = np.array([episode.qvel[0] for episode in starts])
    assert not angles[:, : robot.root_q].any()
    assert not speeds[:, : robot.root_v].any()
    for noise in (angles[:, robot.root_q :], speeds[:, robot.root_v :]):
        assert 0.8 * any_task.reset_noise < np.abs(noise).max() <= any_task.reset_noise * (1 + 1e-9)


def test_a_rollout_is_its_evaluation_step_by_step(any_task: RobotTask) -> None:
    solutions, seeds = any_task.random_solutions(2, stream(8, "x")), [3, 2**63]
    evaluation = any_task.evaluate(solutions, seeds)
    for i in range(2):
        episode = any_task.rollout(solutions[i], seeds[i])
        assert (episode.fitness, episode.steps) == (evaluation.fitness[i], evaluation.steps[i])
        assert np.array_equal(episode.descriptor, evaluation.descriptors[i])
        for name, values in episode.terms.items():
            assert np.cumsum(values)[-1] == evaluation.terms[name][i]  # cumsum adds in order
        if any_task.descriptor is FEET_CONTACTS:
            assert np.array_equal(episode.contacts.sum(axis=0) / 60, episode.descriptor)
        else:
            assert np.array_equal(episode.centre_of_mass[-1, :2], episode.descriptor)
        n, model = episode.steps, any_task.anatomy.model
        assert episode.body_positions.shape == (n + 1, model.nbody - 1, 3)
        assert episode.actions.shape == (n, model.nu)
        assert len(episode.body_names) == model.nbody - 1
        assert np.abs(episode.actions).max() <= 1
        assert np.array_equal(
            any_task.policy.act(np.repeat(solutions[i : i + 1], n, axis=0), episode.observations),
            episode.actions,
        )


def test_observations_are_finite_and_contacts_rarely_saturate(any_task: RobotTask) -> None:
    """A wrench entry at ±1 tells the policy nothing more than a switch would."""
    policy = any_task.random_solutions(1, stream(2, "x"))[0] * np.float32(0.5)
    seen = np.concatenate([any_task.rollout(policy, seed).observations for seed in range(5)])
    assert np.isfinite(seen).all()
    if CONTACT_WRENCHES in any_task.observation:
        wrenches = seen[:, -6 * (any_task.anatomy.n_bodies + 1) :]
        assert np.abs(wrenches).max() <= 1
        touched = wrenches[wrenches != 0]
        assert len(touched) > 0
        assert (np.abs(touched) == 1).mean() < 0.05


WILD = "gear='1e9'"


def wild_ant() -> RobotTask:
    """An ant whose motors are so strong that only a policy without torque survives."""
    task = make("ant_uni", episode_length=30)
    mjcf = task.robot.mjcf.replace('gear="150"', WILD)
    assert WILD in mjcf
    return replace(task, name="wild_ant", robot=replace(task.robot, mjcf=mjcf))


def test_a_diverging_simulation_is_caught_and_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(str(tmp_path))
    task = wild_ant()
    calm = np.zeros((6, task.n_parameters), np.float32)
    alone = task.evaluate(calm, range(6))
    assert alone.valid.all()
    mixed = calm.copy()
    mixed[[1, 4]] = task.random_solutions(2, stream(0, "x"))
    result = task.evaluate(mixed, range(6), workers=2, slots=2)
    released = task.evaluate(mixed, range(6), workers=1, slots=6)  # freed slots, no solution to take them
    assert np.array_equal(released.fitness, result.fitness, equal_nan=True)
    assert list(result.valid) == [True, False, True, True, False, True]
    for values in (result.fitness, *result.terms.values(), *result.descriptors.T):
        assert np.isnan(values[[1, 4]]).all()
    others = result.valid
    assert np.array_equal(result.fitness[others], alone.fitness[others])
    assert np.array_equal(result.descriptors[others], alone.descriptors[others])
    assert np.array_equal(result.steps[others], alone.steps[others])
    episode = task.rollout(mixed[1], 1)
    assert not episode.valid
    assert np.isnan([episode.fitness, *episode.descriptor]).all()
    assert all(np.isnan(np.sum(values)) for values in episode.terms.values())
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_policies_that_overflow_to_nan_are_invalid(any_task: RobotTask) -> None:
    """Infinite activations of both signs meet in the last layer: the actions are NaN."""
    *_, second, actions = any_task.policy.sizes
    solution = np.full(any_task.n_parameters, np.float32(3e38))
    last = solution[-(second + 1) * actions :]
    last[: second * actions // 2] = -3e38
    evaluation = any_task.evaluate(np.stack([solution, 0 * solution]), [0, 1])
    assert list(evaluation.valid) == [False, True]
    assert np.isnan(evaluation.fitness[0])


def test_feet_are_loaded_when_mujoco_says_so() -> None:
    """The contact sensor against MuJoCo's own list of contacts, over many steps and all feet."""
    counts: Counter[bool] = Counter()
    for name in ("walker_uni", "ant_uni", "humanoid_uni", "hexapod_uni"):
        task = short(name)
        solution = task.random_solutions(1, stream(1, name))[0]
        episode = task.rollout(solution, 1)
        robot = Plain(task, 1)
        for action, contacts in zip(episode.actions, episode.contacts, strict=True):
            robot.live(action)
            expected = [robot.foot_is_loaded(foot) for foot in task.robot.feet]
            assert list(contacts) == expected
            counts.update(expected)
    assert min(counts[True], counts[False]) > 50


def test_progress_is_reported_and_reaches_the_end() -> None:
    seen: list[tuple[int, int]] = []
    task = make("ant_uni", episode_length=50)
    task.evaluate(task.random_solutions(400, stream(0, "x")), range(400), progress=lambda *p: seen.append(p))
    assert seen[-1] == (400, 400)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


class Stop(Exception):
    pass


@pytest.mark.alone
def test_an_exception_in_the_main_thread_stops_the_workers_within_a_second() -> None:
    """Ctrl-C arrives in the same place as an error in the progress callback does."""

    def stop(done: int, total: int) -> None:
        raise Stop

    task = make("humanoid_uni")
    whole = replace(task, ending=NEVER)
    solutions = whole.random_solutions(256, stream(0, "x"))
    start = time.monotonic()
    with pytest.raises(Stop):
        whole.evaluate(solutions, range(256), progress=stop)
    assert time.monotonic() - start < 1
    assert threading.active_count() == 1


def test_native_settings_are_put_back() -> None:
    import mujoco
    from threadpoolctl import threadpool_info

    from qdbench.simulation.native import _blas

    # NumPy's, which runs the policies; other tests may have loaded other libraries with pools of their own
    ours = {pool["filepath"] for pool in _blas.info() if pool["user_api"] == "blas"}

    def settings_now() -> tuple[Any, ...]:
        log = mujoco.MjLogConfig.get()
        pools = [pool["num_threads"] for pool in threadpool_info() if pool["filepath"] in ours]
        return log.logto_console, log.logto_file, pools

    before = settings_now()
    task = short("hopper_uni")
    during: list[tuple[Any, ...]] = []
    task.evaluate(
        np.zeros((4, task.n_parameters), np.float32),
        range(4),
        progress=lambda *_: during.append(settings_now()),
    )
    assert during[-1][:2] == (False, False)
    assert set(during[-1][2]) == {1}
    threads = [
        threading.Thread(target=task.evaluate, args=(task.random_solutions(n, stream(0, "x")), range(n)))
        for n in (1, 50, 200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert settings_now() == before


@pytest.mark.skipif(sys.platform == "win32", reason="MuJoCo's clock is not found there")
def test_mujoco_reads_no_clock_while_it_steps() -> None:
    """Its timers cost about 5 % of a step."""
    code = """
        import mujoco
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
        def timed():
            mujoco.mj_step(model, data := mujoco.MjData(model))
            return data.timer[0].duration > 0
        before = timed()
        import qdbench.simulation.native
        print(before, timed())
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
