"""Terms: their arithmetic by hand, what they demand, what they count by, and an engine that is not MuJoCo."""

from __future__ import annotations

import pickle
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import qdbench
from qdbench import (
    BrokenTask,
    QdbenchError,
    Robot,
    RobotTask,
    make,
    stream,
    terms,
)
from qdbench.robots.anatomy import Anatomy
from qdbench.simulation import evaluate
from qdbench.tasks import contract
from qdbench.tasks.state import NotRead

Array = NDArray[np.float64]


def state(**fields: Any) -> terms.State:
    return terms.State(**{name: fields.get(name, NotRead(name)) for name in terms.State._fields})


def moment(name: str, n: int = 2, actions: Any = None, **fields: Any) -> terms.Moment:
    robot = qdbench.TASKS[name].anatomy
    given = np.zeros((n, robot.n_actions)) if actions is None else np.asarray(actions)
    return terms.Moment(state(**fields), given, np.full(n, 3), robot)


# The built-in terms by hand


def test_forward_is_weighted_displacement_per_second() -> None:
    reward = terms.forward(2.0, of="root", top_speed=3.0)
    robot = qdbench.TASKS["hopper_uni"].anatomy  # a control step of 0.02 s
    now = reward.memory(state(qpos=np.array([[1.0, 9, 9], [0.5, 9, 9]])), robot)
    assert reward(moment("hopper_uni"), np.array([0.9, 0.6]), now) == pytest.approx([10.0, -10.0])
    assert reward.bounds(robot) == (-6.0, 6.0)
    com = np.arange(2 * 6 * 3, dtype=float).reshape(2, 6, 3)
    of_com = terms.forward(1.0, of="com", top_speed=1.0)
    assert of_com.memory(state(subtree_com=com), robot).tolist() == [com[0, 1, 0], com[1, 1, 0]]


def test_survival_and_torque() -> None:
    now = moment("hopper_uni", actions=[[1.0, -0.5, 0.0], [0.0, 0.0, 0.0]])
    assert terms.survive(0.3)(now).tolist() == [0.3, 0.3]
    assert terms.torque(2.0)(now).tolist() == [-2.5, 0.0]
    assert terms.torque(2.0).bounds(now.robot) == (-6.0, 0.0)
    assert terms.torque(-2.0).bounds(now.robot) == (0.0, 6.0)
    assert terms.survive(0.3).bounds(now.robot) == (0.3, 0.3)


def test_health_is_an_open_interval_of_the_root_s_height() -> None:
    heights = [0.2, 0.2001, 0.9999, 1.0]
    free = np.column_stack([np.full((4, 2), 5.0), heights, np.zeros((4, 12))])
    ends = terms.healthy(0.2, 1.0)(moment("ant_uni", 4, qpos=free))
    assert ends.tolist() == [True, False, False, True]
    planar = np.column_stack([np.full(4, 5.0), heights, np.zeros((4, 4))])
    assert terms.healthy(0.2, 1.0)(moment("hopper_uni", 4, qpos=planar)).tolist() == ends.tolist()
    assert not terms.NEVER(moment("hopper_uni", 4, qpos=planar)).any()


def test_leaning_too_far_ends_an_episode() -> None:
    angles = np.radians([0.0, 44.0, 46.0, 180.0])
    ends = terms.healthy(0.0, 9.0, tilt=45.0)
    for axis in np.eye(3)[:2]:  # about x and about y
        turned = np.column_stack([np.cos(angles / 2), np.outer(np.sin(angles / 2), axis)])
        free = np.column_stack([np.ones((4, 3)), turned, np.zeros((4, 18))])
        assert ends(moment("hexapod_uni", 4, qpos=free)).tolist() == [False, False, True, True]
    about_z = np.column_stack([np.cos(angles / 2), np.zeros((4, 2)), np.sin(angles / 2)])
    free = np.column_stack([np.ones((4, 3)), about_z, np.zeros((4, 18))])
    assert not ends(moment("hexapod_uni", 4, qpos=free)).any()
    planar = np.column_stack([np.ones((4, 2)), angles, np.zeros((4, 3))])
    assert ends(moment("hopper_uni", 4, qpos=planar)).tolist() == [False, False, True, True]


def test_descriptors_by_hand() -> None:
    task = qdbench.TASKS["ant_uni"]
    sensors = np.zeros((1, task.anatomy.model.nsensordata))
    sensors[0, task.anatomy.foot_sensors] = [0.0, 1e-9, -1.0, 3.0]
    loaded = terms.FEET_CONTACTS.of_step(moment("ant_uni", 1, sensordata=sensors))
    assert loaded.tolist() == [[False, True, False, True]]
    com = np.zeros((1, 10, 3))
    com[0, 1] = [1.0, 2.0, 3.0]
    ended = terms.Ended(state(subtree_com=com), np.array([[1.0, 2, 0, 4]]), np.array([4]), 8, task.anatomy)
    assert terms.FEET_CONTACTS(ended, 4).tolist() == [[0.125, 0.25, 0.0, 0.5]]
    lived = make("ant_uni", mean_over="lived").descriptor
    assert lived(ended, 4).tolist() == [[0.25, 0.5, 0.0, 1.0]]
    assert terms.FINAL_POSITION(ended, 2).tolist() == [[1.0, 2.0]]
    assert task.descriptor_names[0] == "foot 1 on the ground"
    assert make("ant_omni").descriptor_names == ("x (m)", "y (m)")


def test_fitness_is_the_sum_of_the_terms_in_their_order(any_task: RobotTask) -> None:
    evaluation = any_task.evaluate(any_task.random_solutions(8, stream(0, "x")), range(8))
    assert list(evaluation.terms) == [reward.name for reward in any_task.rewards]
    total = np.zeros(8)
    for values in evaluation.terms.values():
        total += values
    assert np.array_equal(total, evaluation.fitness)
    assert (evaluation.terms["torque"] <= 0).all()


# Demands


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"observation": (terms.HEIGHT,)},
            "'height' needs floating root, which robot 'arm' does not have; give",
        ),
        ({"observation": (terms.CONTACT_WRENCHES,)}, "'contact wrenches' needs floating root"),
        (
            {"observation": (terms.COM_VELOCITY,)},
            "needs root, which robot 'arm' does not have; name the root",
        ),
        ({"rewards": (terms.forward(1, top_speed=1),)}, "reward 'forward' needs root"),
        ({"rewards": (terms.forward(1, of="root", top_speed=1),)}, "reward 'forward' needs floating root"),
        ({"descriptor": terms.FEET_CONTACTS}, "descriptor 'feet contacts' needs feet, which robot 'arm'"),
        ({"ending": terms.healthy(0, 1)}, "ending 'healthy' needs floating root"),
    ],
)
def test_a_demand_that_is_not_met_gets_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BrokenTask) as caught:
        replace(arm_task(), **change).policy  # noqa: B018
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("reach: ")


def _reads_too_much(now: terms.Moment) -> Array:
    return now.state.cvel[:, 1, 0]


def _two_columns(now: terms.Moment) -> Array:
    return np.zeros((len(now.steps), 2))


def _one_number(ended: terms.Ended) -> Array:
    return ended.steps.astype(float)


def _nan(now: terms.Moment) -> Array:
    return np.where(now.actions[:, 0] > 0, np.nan, 1.0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"rewards": (terms.Reward("r", _reads_too_much, limits=(0, 1)),)},
            "a term reads state.cvel without demanding it; add demands=('cvel',)",
        ),
        (
            {"rewards": (terms.Reward("r", _two_columns, limits=(0, 1)),)},
            "reward 'r' returned shape (3, 2) for 3 episodes, not (3,)",
        ),
        ({"ending": terms.Ending("e", _two_columns)}, "ending 'e' returned shape (3, 2)"),
        (
            {"descriptor": terms.Descriptor("d", _one_number, axes=("a", "b"))},
            "descriptor 'd' returned shape (3,) for 3 episodes, not (3, 2)",
        ),
        (
            {"observation": (replace(terms.JOINT_ANGLES, size=7),)},
            "observation block 'joint angles' returned shape (3, 2), not (3, 7)",
        ),
    ],
)
def test_a_broken_term_gets_a_sentence(change: dict[str, Any], sentence: str) -> None:
    task = replace(arm_task(), **change)
    with pytest.raises(QdbenchError) as caught:
        task.evaluate(np.zeros((3, task.n_parameters), np.float32), range(3), workers=1)
    assert sentence in str(caught.value)


def test_a_reward_that_is_not_finite_makes_an_episode_invalid() -> None:
    task = replace(arm_task(), rewards=(terms.Reward("r", _nan, limits=(0, 1)),))
    solutions = np.zeros((2, task.n_parameters), np.float32)
    solutions[1, -2:] = 1
    evaluation = task.evaluate(solutions, [0, 1])
    assert evaluation.valid.tolist() == [True, False]
    assert np.isnan(evaluation.fitness[1])


# An arm bolted to a table: no feet, no floor, no root, no keyframe

ARM = """
<mujoco>
  <option integrator="implicitfast"/>
  <default><motor ctrlrange="-1 1" gear="2"/><joint damping="0.5"/></default>
  <worldbody>
    <geom name="table" type="box" size="0.6 0.6 0.02"/>
    <body name="upper" pos="0 0 0.1">
      <joint name="turn" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="bend" axis="0 0 1" range="-150 150"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
        <site name="hand" pos="0.2 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="turn"/><motor joint="bend"/></actuator>
</mujoco>
"""


def _hand(now: terms.State, robot: Anatomy) -> Array:
    return now.site_xpos[:, 0]


def _hand_at_the_end(ended: terms.Ended) -> Array:
    return ended.state.site_xpos[:, 0, :2]


def _nearness(now: terms.Moment, *, target: tuple[float, float]) -> Array:
    near: Array = -np.linalg.norm(now.state.site_xpos[:, 0, :2] - target, axis=1)
    return near


def arm_task() -> RobotTask:
    return RobotTask(
        name="reach",
        version=1,
        robot=Robot(name="arm", mjcf=ARM, control_step=0.05, physics_steps=5),
        observation=(
            terms.JOINT_ANGLES,
            terms.JOINT_VELOCITIES,
            terms.Block("hand", _hand, size=3, demands=("site_xpos",)),
        ),
        rewards=(
            terms.Reward("near", _nearness, {"target": (0.1, 0.4)}, limits=(-1, 0), demands=("site_xpos",)),
            terms.torque(0.01),
        ),
        descriptor=terms.Descriptor(
            "hand", _hand_at_the_end, axes=("hand x (m)", "hand y (m)"), demands=("site_xpos",)
        ),
        descriptor_bounds=((-0.5, 0.5),) * 2,
        cells=(10, 10),
        reset_noise=0.1,
        episode_length=30,
    )


def test_an_arm_bolted_to_a_table_is_a_robot() -> None:
    task = arm_task()
    assert task.policy.sizes == (2 + 2 + 3, 64, 64, 2)
    solutions = task.random_solutions(5, stream(0, "x"))
    evaluation = task.evaluate(solutions, range(5))
    assert evaluation.valid.all()
    assert (evaluation.steps == 30).all()
    low, high = task.fitness_bounds
    assert ((low < evaluation.fitness) & (evaluation.fitness < high)).all()
    model = mujoco.MjModel.from_xml_string(ARM)
    model.opt.timestep = 0.01
    for i in range(5):
        episode = task.rollout(solutions[i], i)
        assert episode.contacts.shape == (30, 0)
        data, near = mujoco.MjData(model), 0.0
        data.qpos[:], data.qvel[:] = episode.qpos[0], episode.qvel[0]
        for action in episode.actions:
            data.ctrl[:] = action
            mujoco.mj_step(model, data, 5)
            near -= float(np.linalg.norm(data.site_xpos[0, :2] - (0.1, 0.4)))
        assert evaluation.terms["near"][i] == pytest.approx(near, rel=1e-12)
        mujoco.mj_kinematics(model, data)
        assert np.array_equal(evaluation.descriptors[i], data.site_xpos[0, :2])


def test_the_episode_of_an_arm_can_be_drawn(tmp_path: Path) -> None:
    from qdbench.reports.episodes import draw_episode

    task = arm_task()
    draw_episode(task, task.rollout(task.random_solutions(1, stream(0, "x"))[0], 0), tmp_path / "arm.png")
    assert (tmp_path / "arm.png").stat().st_size > 5_000


@pytest.mark.parametrize("name", [*qdbench.TASKS, "arm"])
def test_tasks_can_be_sent_to_other_processes(name: str) -> None:
    task = arm_task() if name == "arm" else make(name, episode_length=5)
    solutions = task.random_solutions(2, stream(0, "x"))
    sent = pickle.dumps(task)
    assert len(sent) < 50_000  # no compiled model
    copy = pickle.loads(sent)
    assert copy == task
    assert hash(copy) == hash(task)
    assert copy.fingerprint == task.fingerprint
    assert np.array_equal(copy.evaluate(solutions, [0, 1]).fitness, task.evaluate(solutions, [0, 1]).fitness)


# Facts about tasks


def test_options_are_what_make_takes(any_task: RobotTask) -> None:
    options = contract.task_options(any_task)
    assert options["episode_length"] == 60
    assert make(any_task.name, **options).fingerprint == any_task.fingerprint


def test_only_standing_ants_reach_the_maximum() -> None:
    remarks = {task.name: contract.remark_on_max_fitness(task) for task in qdbench.TASKS.values()}
    assert [name for name, remark in remarks.items() if remark] == ["ant_omni"]


# The interface of an engine


class Sliding:
    """A world without physics: every robot slides along x by 1 cm per control step, wherever it is put."""

    def __init__(self, robot: Anatomy, fields: Collection[str], n_slots: int) -> None:
        shapes = {"qpos": robot.model.nq, "qvel": robot.model.nv, "sensordata": robot.model.nsensordata}
        self.state = state(**{name: np.zeros((n_slots, n)) for name, n in shapes.items()})

    def load(self, slots: NDArray[np.intp], qpos: Array, qvel: Array) -> terms.State:
        self.state.qpos[slots], self.state.qvel[slots] = qpos, qvel
        return self.state.rows(slots)

    def step(self, actions: NDArray[np.floating]) -> tuple[terms.State, Array]:
        self.state.qpos[: len(actions), 0] += 0.01
        return self.state.rows(slice(len(actions))), actions.astype(np.float64)

    def diverged(self, n: int) -> NDArray[np.bool_]:
        return np.zeros(n, np.bool_)

    def with_current_positions(self, slots: NDArray[np.intp]) -> terms.State:
        return self.state.rows(slots)

    def move(self, source: int, target: int) -> None:
        for array in (self.state.qpos, self.state.qvel):
            array[target] = array[source]


def test_any_engine_can_step_a_task() -> None:
    task = replace(
        make("hopper_uni", episode_length=10),
        rewards=(terms.forward(1.0, of="root", top_speed=1.0), terms.survive(1.0)),
    )
    solutions, seeds = task.random_solutions(7, stream(0, "x")), np.arange(7, dtype=np.uint64)
    evaluation = evaluate(task, solutions, seeds, workers=2, slots=2, engine=Sliding)
    assert evaluation.fitness == pytest.approx(np.full(7, 10 * 0.01 / 0.02 + 10))
    assert not evaluation.descriptors.any()  # no foot is ever loaded
