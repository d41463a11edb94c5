"""A benchmark suite for Quality-Diversity algorithms that evolve neural robot controllers.

    import qdbench
    task = qdbench.make("ant_omni")
    solutions = task.random_solutions(256, qdbench.stream(0, "solutions"))
    evaluation = task.evaluate(solutions, seeds=range(256))

The names in `__all__` are the public interface; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qdbench.errors import BrokenTask, InvalidInput, QdbenchError, UnknownName
    from qdbench.policy import Policy
    from qdbench.robots import Robot, read_mjcf
    from qdbench.seeds import evaluation_seeds, stream
    from qdbench.simulation import Episode
    from qdbench.tasks.contract import Evaluation, Task
    from qdbench.tasks.function_task import FunctionTask
    from qdbench.tasks.registry import TASKS, make
    from qdbench.tasks.robot_task import RobotTask

__version__ = "0.1.0"

_HOME = {
    "BrokenTask": "qdbench.errors",
    "Episode": "qdbench.simulation",
    "Evaluation": "qdbench.tasks.contract",
    "FunctionTask": "qdbench.tasks.function_task",
    "InvalidInput": "qdbench.errors",
    "Policy": "qdbench.policy",
    "QdbenchError": "qdbench.errors",
    "Robot": "qdbench.robots",
    "RobotTask": "qdbench.tasks.robot_task",
    "TASKS": "qdbench.tasks.registry",
    "Task": "qdbench.tasks.contract",
    "UnknownName": "qdbench.errors",
    "evaluation_seeds": "qdbench.seeds",
    "make": "qdbench.tasks.registry",
    "read_mjcf": "qdbench.robots",
    "stream": "qdbench.seeds",
}

__all__ = [
    "TASKS",
    "BrokenTask",
    "Episode",
    "Evaluation",
    "FunctionTask",
    "InvalidInput",
    "Policy",
    "QdbenchError",
    "Robot",
    "RobotTask",
    "Task",
    "UnknownName",
    "evaluation_seeds",
    "make",
    "read_mjcf",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'qdbench' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
