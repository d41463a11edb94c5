"""The nine tasks of the paper, one record each, and the way to get one.

Weights, healthy heights and reset noise are those of the simulators of the paper's time
(docs/tasks.md); the hexapod's are ours.
"""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, overload

from qdbench import robots
from qdbench.errors import InvalidInput, UnknownName
from qdbench.tasks.contract import Task
from qdbench.tasks.robot_task import RobotTask

_ALWAYS = (float("-inf"), float("inf"))
_SHARE = (0.0, 1.0)

_NINE = (
    RobotTask(
        name="hopper_uni",
        version=1,
        robot=robots.HOPPER,
        descriptor="feet",
        forward=1.0,
        forward_of="com",
        survive=1.0,
        torque=0.001,
        healthy=(0.7, float("inf")),
        top_speed=10.0,
        descriptor_bounds=(_SHARE,),
        cells=(900,),
        reset_noise=0.005,
    ),
    RobotTask(
        name="walker_uni",
        version=1,
        robot=robots.WALKER,
        descriptor="feet",
        forward=1.0,
        forward_of="com",
        survive=1.0,
        torque=0.001,
        healthy=(0.7, 2.0),
        top_speed=10.0,
        descriptor_bounds=(_SHARE,) * 2,
        cells=(30, 30),
        reset_noise=0.005,
    ),
    RobotTask(
        name="halfcheetah_uni",
        version=1,
        robot=robots.HALFCHEETAH,
        descriptor="feet",
        forward=1.0,
        forward_of="root",
        survive=0.0,
        torque=0.1,
        healthy=_ALWAYS,
        top_speed=25.0,
        descriptor_bounds=(_SHARE,) * 2,
        cells=(30, 30),
        reset_noise=0.1,
    ),
    RobotTask(
        name="ant_uni",
        version=2,
        robot=robots.ANT,
        descriptor="feet",
        forward=1.0,
        forward_of="root",
        survive=1.0,
        torque=0.5,
        healthy=(0.2, 1.0),
        top_speed=15.0,
        descriptor_bounds=(_SHARE,) * 4,
        cells=(5,) * 4,
        reset_noise=0.1,
    ),
    RobotTask(
        name="humanoid_uni",
        version=1,
        robot=robots.HUMANOID,
        descriptor="feet",
        forward=1.25,
        forward_of="com",
        survive=5.0,
        torque=0.01,
        healthy=(0.8, 2.1),
        top_speed=10.0,
        descriptor_bounds=(_SHARE,) * 2,
        cells=(30, 30),
        reset_noise=0.01,
    ),
    RobotTask(
        name="hexapod_uni",
        version=1,
        robot=robots.HEXAPOD,
        descriptor="feet",
        forward=5.0,
        forward_of="root",
        survive=1.0,
        torque=0.05,
        healthy=(0.05, 1.0),
        top_speed=2.0,
        descriptor_bounds=(_SHARE,) * 6,
        cells=(5,) * 6,
        reset_noise=0.1,
    ),
    RobotTask(
        name="ant_omni",
        version=2,
        robot=robots.ANT,
        descriptor="position",
        forward=0.0,
        forward_of="root",
        survive=1.0,
        torque=0.5,
        healthy=(0.2, 1.0),
        top_speed=15.0,
        descriptor_bounds=((-30.0, 30.0),) * 2,
        cells=(100, 100),
        reset_noise=0.1,
    ),
    RobotTask(
        name="humanoid_omni",
        version=1,
        robot=robots.HUMANOID,
        descriptor="position",
        forward=0.0,
        forward_of="com",
        survive=5.0,
        torque=0.01,
        healthy=(0.8, 2.1),
        top_speed=10.0,
        descriptor_bounds=((-30.0, 30.0),) * 2,
        cells=(100, 100),
        reset_noise=0.01,
    ),
    RobotTask(
        name="hexapod_omni",
        version=1,
        robot=robots.HEXAPOD,
        descriptor="position",
        forward=0.0,
        forward_of="root",
        survive=1.0,
        torque=0.05,
        healthy=(0.05, 1.0),
        top_speed=2.0,
        descriptor_bounds=((-10.0, 10.0),) * 2,
        cells=(100, 100),
        reset_noise=0.1,
    ),
)

TASKS = {task.name: task for task in _NINE}

OPTIONS = ("episode_length", "descriptor_bounds", "cells", "reset_noise", "hidden")
"""What `make` lets a user change; each is part of the task's fingerprint."""


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
    """Return a task by name, with options changed if given.

    The name is one of the nine, or `package.module:attribute` for a task of your own. Options are
    `episode_length`, `descriptor_bounds`, `cells`, `reset_noise` and `hidden`.
    """
    task = _imported(name) if ":" in str(name) else TASKS.get(name)
    if task is None:
        raise UnknownName("task", str(name), TASKS, '"qdbench tasks" lists all nine')
    if not options:
        return task
    names: set[str] = {field.name for field in fields(task)} if is_dataclass(task) else set()
    known = [option for option in OPTIONS if option in names]
    for option in options:
        if option not in known:
            raise UnknownName("option", option, known, f"{task.name} takes {', '.join(known) or 'none'}")
    changed: Task = replace(task, **options)  # type: ignore[type-var]  # only dataclasses have options
    return changed


def _imported(name: str) -> Task:
    module_name, _, attribute = name.partition(":")
    try:
        task = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        kind = type(error).__name__
        raise InvalidInput(
            f"cannot load the task {name!r}: {kind}: {error}; is its folder on PYTHONPATH?"
        ) from error
    if not isinstance(task, Task):
        raise InvalidInput(
            f"{name!r} is not a task but {type(task).__name__}; it needs the members of qdbench.Task"
        )
    return task
