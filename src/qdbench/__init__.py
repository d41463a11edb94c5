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
    from qdbench.algorithms.conformance import check_algorithm
    from qdbench.algorithms.contract import Algorithm, Problem
    from qdbench.archives.archive import Archive
    from qdbench.archives.evaluated import Evaluated
    from qdbench.archives.geometry import Grid
    from qdbench.errors import (
        BrokenAlgorithm,
        BrokenTask,
        DamagedFile,
        InvalidInput,
        QdbenchError,
        UnknownName,
    )
    from qdbench.experiments.loading import load
    from qdbench.experiments.runs import run
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
    "Algorithm": "qdbench.algorithms.contract",
    "Archive": "qdbench.archives.archive",
    "BrokenAlgorithm": "qdbench.errors",
    "BrokenTask": "qdbench.errors",
    "DamagedFile": "qdbench.errors",
    "Episode": "qdbench.simulation",
    "Evaluated": "qdbench.archives.evaluated",
    "Evaluation": "qdbench.tasks.contract",
    "FunctionTask": "qdbench.tasks.function_task",
    "Grid": "qdbench.archives.geometry",
    "InvalidInput": "qdbench.errors",
    "Policy": "qdbench.policy",
    "Problem": "qdbench.algorithms.contract",
    "QdbenchError": "qdbench.errors",
    "Robot": "qdbench.robots",
    "RobotTask": "qdbench.tasks.robot_task",
    "TASKS": "qdbench.tasks.registry",
    "Task": "qdbench.tasks.contract",
    "UnknownName": "qdbench.errors",
    "check_algorithm": "qdbench.algorithms.conformance",
    "evaluation_seeds": "qdbench.seeds",
    "load": "qdbench.experiments.loading",
    "make": "qdbench.tasks.registry",
    "read_mjcf": "qdbench.robots",
    "run": "qdbench.experiments.runs",
    "stream": "qdbench.seeds",
}

__all__ = [
    "TASKS",
    "Algorithm",
    "Archive",
    "BrokenAlgorithm",
    "BrokenTask",
    "DamagedFile",
    "Episode",
    "Evaluated",
    "Evaluation",
    "FunctionTask",
    "Grid",
    "InvalidInput",
    "Policy",
    "Problem",
    "QdbenchError",
    "Robot",
    "RobotTask",
    "Task",
    "UnknownName",
    "check_algorithm",
    "evaluation_seeds",
    "load",
    "make",
    "read_mjcf",
    "run",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'qdbench' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
