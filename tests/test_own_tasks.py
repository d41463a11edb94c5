"""A user's own task: a Python function, or a robot of their own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import qdbench
from conftest import ROOT, Cli
from qdbench import (
    BrokenTask,
    Evaluations,
    FunctionTask,
    InvalidInput,
    QdbenchError,
    Robot,
    RobotTask,
    UnknownName,
    make,
    terms,
)
from qdbench.tasks import contract

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def sphere(solutions: NDArray[np.float32]) -> Pair:
    return -np.sum(np.square(solutions, dtype=np.float64), axis=1), solutions[:, :2].astype(np.float64)


def function_task(**changes: Any) -> FunctionTask:
    facts: dict[str, Any] = {
        "name": "sphere",
        "function": sphere,
        "n_parameters": 5,
        "descriptor_bounds": ((-1, 1), (-1, 1)),
        "cells": (10, 10),
        "fitness_bounds": (-5.0, 0.0),
    }
    return FunctionTask(**{**facts, **changes})


def test_a_function_is_a_task_like_the_nine() -> None:
    task = function_task()
    assert isinstance(task, qdbench.Task)
    solutions = task.random_solutions(20, qdbench.stream(0, "x"))
    assert solutions.dtype == np.float32
    assert solutions.shape == (20, 5)
    seen: list[tuple[int, int]] = []
    result = task.evaluate(solutions, range(20), workers=2, progress=lambda *p: seen.append(p))
    assert np.array_equal(result.fitness, sphere(solutions)[0])
    assert np.array_equal(result.descriptors, solutions[:, :2])
    assert result.valid.all()
    assert seen == [(20, 20)]


def test_a_noisy_function_gets_the_seeds() -> None:
    def noisy(solutions: NDArray[np.float32], seeds: NDArray[np.uint64]) -> Pair:
        fitness, descriptors = sphere(solutions)
        return fitness - seeds, descriptors

    task = function_task(function=noisy, noisy=True)
    result = task.evaluate(np.zeros((3, 5), np.float32), [0, 1, 2])
    assert list(result.fitness) == [0, -1, -2]


def test_values_that_are_not_finite_make_a_row_invalid() -> None:
    def broken(solutions: NDArray[np.float32]) -> Pair:
        return np.array([1, np.nan, 2, 3]), np.array([[0, 0], [0, 0], [np.inf, 0], [0, 0]])

    result = function_task(function=broken).evaluate(np.zeros((4, 5), np.float32), range(4))
    assert list(result.valid) == [True, False, False, True]
    assert np.isnan(result.fitness[1:3]).all()
    assert np.isnan(result.descriptors[1:3]).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"function": lambda x: (x, x)}, "returned shapes (3, 5) and (3, 5)"),
        ({"function": lambda x: 3}, "must return (fitness, descriptors)"),
        ({"function": lambda x: ("a", "b")}, "must return (fitness, descriptors)"),
        ({"fitness_bounds": (1.0, 0.0)}, "fitness_bounds: (1.0, 0.0) must be"),
        ({"fitness_bounds": 5}, "fitness_bounds: 5 is not an interval"),
        ({"n_parameters": 0}, "n_parameters is 0"),
        ({"cells": (10,)}, "for 1 dimensions"),
    ],
)
def test_a_broken_function_task_gets_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises((BrokenTask, InvalidInput)) as caught:
        function_task(**changes).evaluate(np.zeros((3, 5), np.float32), range(3))
    assert sentence in str(caught.value)


def test_fingerprints_of_functions_follow_their_version_and_options() -> None:
    tasks = [
        function_task(),
        function_task(version=1),
        function_task(version=2),
        function_task(cells=(10, 11)),
        function_task(noisy=True),
        function_task(solution_bounds=(-1, 1)),
        LoudTask(**{name: getattr(function_task(), name) for name in FunctionTask.__dataclass_fields__}),
    ]
    assert len({task.fingerprint for task in tasks}) == 7
    assert function_task().fingerprint == tasks[0].fingerprint
    assert function_task(descriptor_names=("a", "b")).fingerprint == tasks[0].fingerprint


class LoudTask(FunctionTask):
    def random_solutions(self, n: int, generator: np.random.Generator) -> NDArray[np.float32]:
        return 2 * super().random_solutions(n, generator)


def test_an_edited_function_changes_the_fingerprint_unless_its_version_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    functions = []
    for factor in (1, 2):
        (tmp_path / f"edited_{factor}.py").write_text(f"def f(x): return {factor} * x[:, 0], x[:, :2]")
        functions.append(import_module(f"edited_{factor}").f)
    one, two = (function_task(function=function) for function in functions)
    assert one.fingerprint != two.fingerprint
    one, two = (function_task(function=function, version=1) for function in functions)
    assert one.fingerprint == two.fingerprint


def test_solution_bounds_clip_what_the_function_sees() -> None:
    bounded = function_task(solution_bounds=(-0.5, 0.25))
    solutions = 2 * bounded.random_solutions(20, qdbench.stream(0, "x"))
    before = solutions.copy()
    result = bounded.evaluate(solutions, range(20))
    assert np.array_equal(result.fitness, sphere(np.clip(before, np.float32(-0.5), np.float32(0.25)))[0])
    assert np.abs(result.descriptors).max() == 0.5
    assert np.array_equal(solutions, before)
    free = function_task().evaluate(solutions, range(20))
    assert np.array_equal(free.fitness, sphere(solutions)[0])
    with pytest.raises(InvalidInput, match=r"solution_bounds: .* ascending"):
        function_task(solution_bounds=(1, 0))


def test_descriptors_have_names() -> None:
    assert contract.descriptor_names(function_task()) == ("descriptor 1", "descriptor 2")
    assert contract.descriptor_names(function_task(descriptor_names=["a", "b"])) == ("a", "b")
    with pytest.raises(InvalidInput, match="for 2 dimensions; give one each"):
        function_task(descriptor_names=("a",))


class Slope:
    """A task that is nothing but the members of `qdbench.Task`."""

    name = "slope"
    version = 1
    n_parameters = 2
    descriptor_bounds = ((0.0, 1.0),)
    cells = (10,)
    fitness_bounds = (0.0, 1.0)
    fingerprint = "slope 1"

    def random_solutions(self, n: int, generator: np.random.Generator) -> NDArray[np.float32]:
        return generator.random((n, 2), np.float32)

    def evaluate(
        self,
        solutions: NDArray[np.float32],
        seeds: ArrayLike,
        *,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Evaluations:
        values, n = solutions.clip(0, 1).astype(np.float64), len(solutions)
        return Evaluations(values[:, 0], values[:, 1:], np.ones(n, np.int64), np.ones(n, np.bool_))


slope = Slope()


def test_any_object_with_the_members_of_a_task_is_one(tmp_path: Path) -> None:
    assert isinstance(slope, qdbench.Task)
    assert contract.descriptor_names(slope) == ("descriptor 1",)
    assert contract.remark_on_max_fitness(slope) == ""
    assert contract.task_options(slope) == {}
    with pytest.raises(UnknownName, match="slope takes none"):
        make("test_own_tasks:slope", cells=(5,))
    run = qdbench.run("test_own_tasks:slope", "map_elites", evaluations=600, seed=1, out=tmp_path)
    assert len(run.archive) == 10


OWN_ROBOT = """
<mujoco model="tripod">
  <option integrator="implicitfast"/>
  <default>
    <geom type="capsule" size="0.02" contype="1" conaffinity="0" density="500"/>
    <joint type="hinge" axis="0 1 0" range="-60 60" damping="0.2" armature="0.01"/>
    <motor ctrlrange="-1 1" gear="3"/>
  </default>
  <worldbody>
    <geom name="ground" type="plane" size="0 0 1" contype="0" conaffinity="1"/>
    <body name="hull" pos="0 0 0.3">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.03"/>
      <body name="a" pos="0.2 0.1 0"><joint name="a"/><geom name="toe a" fromto="0 0 0 0.05 0 -0.25"/></body>
      <body name="b" pos="0.2 -0.1 0"><joint name="b"/><geom name="toe b" fromto="0 0 0 0.05 0 -0.25"/></body>
      <body name="c" pos="-0.2 0 0"><joint name="c"/><geom name="toe c" fromto="0 0 0 -0.05 0 -0.25"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="a"/><motor joint="b"/><motor joint="c"/></actuator>
  <keyframe><key name="home" qpos="0 0 0.3 1 0 0 0 0 0 0"/></keyframe>
</mujoco>
"""


def own_robot(**changes: Any) -> Robot:
    facts: dict[str, Any] = {
        "name": "tripod",
        "mjcf": OWN_ROBOT,
        "feet": ("toe a", "toe b", "toe c"),
        "control_step": 0.02,
        "physics_steps": 4,
        "root": "hull",
        "floor": "ground",
        "start": "home",
    }
    return Robot(**{**facts, **changes})


def own_task(robot: Robot) -> RobotTask:
    return RobotTask(
        name="tripod_uni",
        version=1,
        robot=robot,
        observation=(
            terms.HEIGHT,
            terms.ORIENTATION,
            terms.JOINT_ANGLES,
            terms.JOINT_VELOCITIES,
            terms.CONTACT_WRENCHES,
        ),
        rewards=(terms.forward(1.0, of="com", top_speed=5.0), terms.survive(0.1), terms.torque(0.01)),
        descriptor=terms.FEET_CONTACTS,
        ending=terms.healthy(0.1, 1.0),
        descriptor_bounds=((0, 1),) * 3,
        cells=(8, 8, 8),
        reset_noise=0.05,
        episode_length=50,
    )


def test_a_robot_of_ones_own_walks_like_the_six() -> None:
    task = own_task(own_robot())
    assert task.policy.sizes == (1 + 4 + 3 + 3 + 6 * 5, 64, 64, 3)
    solutions = task.random_solutions(10, qdbench.stream(0, "x"))
    together, apart = task.evaluate(solutions, range(10)), task.evaluate(solutions[4:5], [4])
    assert together.valid.all()
    assert together.fitness[4] == apart.fitness[0]
    assert len(set(together.fitness)) == 10
    assert task.rollout(solutions[4], 4).fitness == together.fitness[4]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"feet": ("toe a", "toe b", "toe d")}, "no geom or body 'toe d'; did you mean 'toe c'"),
        ({"root": "torso"}, "no body 'torso'; robot 'tripod' has"),
        ({"start": "start"}, "no keyframe 'start'"),
        ({"mjcf": "<mujoco"}, "MuJoCo cannot read its MJCF"),
        ({"mjcf": OWN_ROBOT.replace("<freejoint/>", "<joint type='ball'/>")}, "tripod"),
        ({"mjcf": OWN_ROBOT.replace('<joint name="c"/>', '<joint name="c" type="ball"/>')}, "tripod"),
        ({"physics_steps": 0}, "physics_steps is 0"),
        ({"physics_steps": 2.5}, "physics_steps is 2.5"),
        ({"exact_contacts": "yes"}, "exact_contacts is 'yes'"),
        ({"control_step": 0.0}, "control_step is 0.0"),
        ({"control_step": "1"}, "control_step is '1'"),
        ({"feet": ("toe a", "toe b", "toe b")}, "a foot is named twice"),
        (
            {"mjcf": OWN_ROBOT.replace("<option", '<option gravity="0 0 0"')},
            "'contact wrenches' needs weight, which robot 'tripod' does not have",
        ),
        ({"root": "a"}, "only the first may be free, if it belongs to the body that root= names"),
        ({"mjcf": OWN_ROBOT.replace('ctrlrange="-1 1"', "")}, 'ctrlrange="-1 1"'),
    ],
)
def test_a_broken_robot_gets_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(QdbenchError) as caught:
        own_task(own_robot(**changes)).policy  # noqa: B018
    assert sentence in str(caught.value)
    assert isinstance(caught.value, BrokenTask | InvalidInput | UnknownName)


def test_own_tasks_are_found_by_module_and_name(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = """
import numpy as np
from qdbench import FunctionTask
plane = FunctionTask(name="plane", function=lambda x: (x[:, 0], x[:, 1:2]), n_parameters=3,
                     descriptor_bounds=((-1, 1),), cells=(20,), fitness_bounds=(-1.0, 1.0))
"""
    (tmp_path / "my_tasks.py").write_text(source)
    done = cli("evaluate", "my_tasks:plane", "--random", "50")
    assert done.returncode == 0, done.stderr
    assert "50 evaluations of plane" in done.stdout
    monkeypatch.syspath_prepend(str(tmp_path))
    assert make("my_tasks:plane").name == "plane"
    with pytest.raises(UnknownName, match="takes descriptor_bounds, cells"):
        make("my_tasks:plane", episode_length=3)
    assert cli("bench", "my_tasks:plane").returncode == 2
    assert cli("rollout", "my_tasks:plane", "--random", "1").returncode == 2


def test_mjcf_files_are_read_or_refused(tmp_path: Path) -> None:
    path = ROOT / "src/qdbench/robots/ant.xml"
    assert qdbench.read_mjcf(path) == qdbench.TASKS["ant_uni"].robot.mjcf
    with pytest.raises(InvalidInput, match="cannot read the MJCF file"):
        qdbench.read_mjcf(tmp_path / "none.xml")
