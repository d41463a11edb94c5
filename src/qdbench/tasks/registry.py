"""The nine tasks of the paper, one record each, and `make`.

Weights, healthy heights and reset noise come from the simulators of the paper's time (docs/tasks.md); the
hexapod's are ours.
"""

from __future__ import annotations

import importlib
from dataclasses import is_dataclass, replace
from typing import Any, Literal, overload

from qdbench import robots
from qdbench.errors import InvalidInput, UnknownName, require_known_options
from qdbench.sources import import_problem
from qdbench.tasks.contract import Task, task_options
from qdbench.tasks.descriptors import FEET_CONTACTS, FINAL_POSITION
from qdbench.tasks.endings import healthy
from qdbench.tasks.function_task import FunctionTask
from qdbench.tasks.known_truth import KNOWN_TRUTH
from qdbench.tasks.observation import (
    ACTUATOR_FORCES,
    ANGULAR_VELOCITY,
    BODY_INERTIAS,
    BODY_VELOCITIES,
    COM_VELOCITY,
    CONTACT_WRENCHES,
    HEIGHT,
    JOINT_ANGLES,
    JOINT_VELOCITIES,
    ORIENTATION,
    POSITION,
    VELOCITY,
)
from qdbench.tasks.reach import Reach
from qdbench.tasks.rewards import forward, survive, torque
from qdbench.tasks.robot_task import RobotTask

_INFINITE = float("inf")
_SHARE = (0.0, 1.0)

# The factors bring each block to the order of 1: docs/tasks.md has the measurement.
_HOPPER = (HEIGHT, ORIENTATION, JOINT_ANGLES, VELOCITY, JOINT_VELOCITIES.times(0.5))
_WALKER = (HEIGHT, ORIENTATION, JOINT_ANGLES, VELOCITY, JOINT_VELOCITIES.times(0.1))
_HALFCHEETAH = (
    HEIGHT,
    ORIENTATION,
    JOINT_ANGLES.times(2),
    VELOCITY,
    ANGULAR_VELOCITY,
    JOINT_VELOCITIES.times(0.2),
    COM_VELOCITY,
)
_ANT = (
    HEIGHT,
    ORIENTATION,
    JOINT_ANGLES,
    VELOCITY.times(5),
    ANGULAR_VELOCITY.times(2),
    JOINT_VELOCITIES,
    CONTACT_WRENCHES.times(5),
)
_HUMANOID = (
    HEIGHT,
    ORIENTATION,
    JOINT_ANGLES,
    VELOCITY,
    ANGULAR_VELOCITY,
    JOINT_VELOCITIES.times(0.5),
    BODY_INERTIAS,
    BODY_VELOCITIES,
    ACTUATOR_FORCES,
    CONTACT_WRENCHES.times(10),
)
_HEXAPOD = (
    POSITION.times(5),
    ORIENTATION,
    JOINT_ANGLES,
    VELOCITY.times(20),
    ANGULAR_VELOCITY.times(5),
    JOINT_VELOCITIES.times(5),
    CONTACT_WRENCHES.times(20),
)

_NINE = (
    RobotTask(
        name="hopper_uni",
        version=2,
        robot=robots.HOPPER,
        observation=_HOPPER,
        rewards=(forward(1.0, of="com", top_speed=10.0), survive(1.0), torque(0.001)),
        descriptor=FEET_CONTACTS,
        ending=healthy(0.7, _INFINITE),
        descriptor_bounds=(_SHARE,),
        cells=(900,),
        reset_noise=0.005,
        fitness_per_step=(0.086, 3.2),
    ),
    RobotTask(
        name="walker_uni",
        version=2,
        robot=robots.WALKER,
        observation=_WALKER,
        rewards=(forward(1.0, of="com", top_speed=10.0), survive(1.0), torque(0.001)),
        descriptor=FEET_CONTACTS,
        ending=healthy(0.7, 2.0),
        descriptor_bounds=(_SHARE,) * 2,
        cells=(30, 30),
        reset_noise=0.005,
        fitness_per_step=(0.27, 2.8),
    ),
    RobotTask(
        name="halfcheetah_uni",
        version=2,
        robot=robots.HALFCHEETAH,
        observation=_HALFCHEETAH,
        rewards=(forward(1.0, of="root", top_speed=25.0), torque(0.1)),
        descriptor=FEET_CONTACTS,
        descriptor_bounds=(_SHARE,) * 2,
        cells=(30, 30),
        reset_noise=0.1,
        fitness_per_step=(-0.6, 3.5),
    ),
    RobotTask(
        name="ant_uni",
        version=3,
        robot=robots.ANT,
        observation=_ANT,
        rewards=(forward(1.0, of="root", top_speed=15.0), survive(1.0), torque(0.5)),
        descriptor=FEET_CONTACTS,
        ending=healthy(0.2, 1.0),
        descriptor_bounds=(_SHARE,) * 4,
        cells=(5,) * 4,
        reset_noise=0.1,
        fitness_per_step=(0.084, 1.8),
    ),
    RobotTask(
        name="humanoid_uni",
        version=2,
        robot=robots.HUMANOID,
        observation=_HUMANOID,
        rewards=(forward(1.25, of="com", top_speed=10.0), survive(5.0), torque(0.01)),
        descriptor=FEET_CONTACTS,
        ending=healthy(0.8, 2.1),
        descriptor_bounds=(_SHARE,) * 2,
        cells=(30, 30),
        reset_noise=0.01,
        fitness_per_step=(0.93, 5.7),
    ),
    RobotTask(
        name="hexapod_uni",
        version=3,
        robot=robots.HEXAPOD,
        observation=_HEXAPOD,
        rewards=(forward(5.0, of="root", top_speed=2.0), survive(1.0), torque(0.05)),
        descriptor=FEET_CONTACTS,
        ending=healthy(0.05, 1.0, tilt=45.0),
        descriptor_bounds=(_SHARE,) * 6,
        cells=(5,) * 6,
        reset_noise=0.1,
        fitness_per_step=(0.26, 3.0),
    ),
    RobotTask(
        name="ant_omni",
        version=3,
        robot=robots.ANT,
        observation=_ANT,
        rewards=(survive(1.0), torque(0.5)),
        descriptor=FINAL_POSITION,
        ending=healthy(0.2, 1.0),
        reach=Reach(speed=0.6, cell=0.6),
        reset_noise=0.1,
        fitness_per_step=(-0.78, 1.0),
        remark_on_max_fitness="Standing still without torque reaches the maximum fitness of ant_omni: "
        "max fitness says little here.",
    ),
    RobotTask(
        name="humanoid_omni",
        version=2,
        robot=robots.HUMANOID,
        observation=_HUMANOID,
        rewards=(survive(5.0), torque(0.01)),
        descriptor=FINAL_POSITION,
        ending=healthy(0.8, 2.1),
        reach=Reach(speed=0.5, cell=0.15),
        reset_noise=0.01,
        fitness_per_step=(1.3, 5.0),
    ),
    RobotTask(
        name="hexapod_omni",
        version=3,
        robot=robots.HEXAPOD,
        observation=_HEXAPOD,
        rewards=(survive(1.0), torque(0.05)),
        descriptor=FINAL_POSITION,
        ending=healthy(0.05, 1.0, tilt=45.0),
        reach=Reach(speed=0.25, cell=0.1),
        reset_noise=0.1,
        fitness_per_step=(0.22, 1.0),
    ),
)

TASKS = {task.name: task for task in _NINE}
"""The nine tasks by name."""
NAMED: dict[str, RobotTask | FunctionTask] = {**TASKS, **KNOWN_TRUTH}
"""All tasks that have a name of their own: the nine, and those with known truth."""

TaskName = Literal[
    "hopper_uni",
    "walker_uni",
    "halfcheetah_uni",
    "ant_uni",
    "humanoid_uni",
    "hexapod_uni",
    "ant_omni",
    "humanoid_omni",
    "hexapod_omni",
]


@overload
def make(name: TaskName, **options: Any) -> RobotTask: ...
@overload
def make(name: str, **options: Any) -> Task: ...
def make(name: str, **options: Any) -> Task:
    """Return a task by name, with the given options.

    The name is one of `qdbench tasks`, or `package.module:attribute` for your own task. Options of a robot
    task are `episode_length`, `descriptor_bounds`, `cells`, `reset_noise`, `hidden` and, for means over
    steps, `mean_over`; those of a function task are `descriptor_bounds` and `cells`.
    """
    if not isinstance(name, str):
        raise UnknownName("task", str(name), NAMED, 'give a name; "qdbench tasks" lists all')
    task: Task | None = _imported(name) if ":" in name else NAMED.get(name)
    if task is None:
        raise UnknownName("task", name, NAMED, '"qdbench tasks" lists all')
    if not options:
        return task
    known: list[str] = list(task_options(task)) if is_dataclass(task) else []
    require_known_options(options, known, task.name)
    changed: Task = replace(task, **options)  # type: ignore[type-var]  # only dataclasses have options
    return changed


def _imported(name: str) -> Task:
    module_name, _, attribute = name.partition(":")
    try:
        task = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise InvalidInput(f"cannot load the task {name!r}: {import_problem(error, module_name)}") from error
    if not isinstance(task, Task):
        raise InvalidInput(
            f"{name!r} is not a task but {type(task).__name__}; it needs the members of qdbench.Task"
        )
    return task
