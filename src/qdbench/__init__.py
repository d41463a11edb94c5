"""A benchmark suite for Quality-Diversity algorithms that evolve neural robot controllers.

    import qdbench
    task = qdbench.make("ant_omni")
    solutions = task.random_solutions(256, qdbench.stream(0, "solutions"))
    evaluations = task.evaluate(solutions, seeds=range(256))

The names in `__all__` are the public interface. Each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qdbench import terms
    from qdbench.algorithms.conformance import check_algorithm
    from qdbench.algorithms.contract import Algorithm, Problem
    from qdbench.analysis.compare import compare
    from qdbench.analysis.measuring import measure
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
    from qdbench.experiments.correcting import correct
    from qdbench.experiments.replaying import replay
    from qdbench.experiments.runs import run
    from qdbench.experiments.verifying import verify
    from qdbench.explorer.server import Explorer, explore
    from qdbench.exports.exporting import export, load_policy
    from qdbench.exports.policies import ExportedPolicy
    from qdbench.exports.ribs_archives import from_ribs
    from qdbench.exports.tables import from_pandas
    from qdbench.paper.leaderboard import leaderboard
    from qdbench.paper.references import references
    from qdbench.paper.reproduce import reproduce
    from qdbench.paper.suite import suite
    from qdbench.policy import Policy
    from qdbench.reports.film import film
    from qdbench.reports.page import report
    from qdbench.reports.plot import plot
    from qdbench.robots import Robot, read_mjcf
    from qdbench.seeds import evaluation_seeds, stream
    from qdbench.simulation import Episode
    from qdbench.store.archive_file import StoredArchive
    from qdbench.store.loading import StoredRun, load
    from qdbench.tasks.contract import Evaluations, Task
    from qdbench.tasks.function_task import FunctionTask
    from qdbench.tasks.reach import Reach
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
    "Evaluations": "qdbench.tasks.contract",
    "ExportedPolicy": "qdbench.exports.policies",
    "Explorer": "qdbench.explorer.server",
    "FunctionTask": "qdbench.tasks.function_task",
    "Grid": "qdbench.archives.geometry",
    "InvalidInput": "qdbench.errors",
    "Policy": "qdbench.policy",
    "Problem": "qdbench.algorithms.contract",
    "QdbenchError": "qdbench.errors",
    "Reach": "qdbench.tasks.reach",
    "Robot": "qdbench.robots",
    "RobotTask": "qdbench.tasks.robot_task",
    "StoredArchive": "qdbench.store.archive_file",
    "StoredRun": "qdbench.store.loading",
    "TASKS": "qdbench.tasks.registry",
    "Task": "qdbench.tasks.contract",
    "UnknownName": "qdbench.errors",
    "check_algorithm": "qdbench.algorithms.conformance",
    "compare": "qdbench.analysis.compare",
    "correct": "qdbench.experiments.correcting",
    "evaluation_seeds": "qdbench.seeds",
    "export": "qdbench.exports.exporting",
    "from_pandas": "qdbench.exports.tables",
    "from_ribs": "qdbench.exports.ribs_archives",
    "leaderboard": "qdbench.paper.leaderboard",
    "film": "qdbench.reports.film",
    "explore": "qdbench.explorer.server",
    "load": "qdbench.store.loading",
    "load_policy": "qdbench.exports.exporting",
    "make": "qdbench.tasks.registry",
    "measure": "qdbench.analysis.measuring",
    "plot": "qdbench.reports.plot",
    "read_mjcf": "qdbench.robots",
    "references": "qdbench.paper.references",
    "replay": "qdbench.experiments.replaying",
    "report": "qdbench.reports.page",
    "reproduce": "qdbench.paper.reproduce",
    "run": "qdbench.experiments.runs",
    "stream": "qdbench.seeds",
    "suite": "qdbench.paper.suite",
    "terms": "qdbench",  # a module of its own
    "verify": "qdbench.experiments.verifying",
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
    "Evaluations",
    "Explorer",
    "ExportedPolicy",
    "FunctionTask",
    "Grid",
    "InvalidInput",
    "Policy",
    "Problem",
    "QdbenchError",
    "Reach",
    "Robot",
    "RobotTask",
    "StoredArchive",
    "StoredRun",
    "Task",
    "UnknownName",
    "check_algorithm",
    "compare",
    "correct",
    "evaluation_seeds",
    "explore",
    "export",
    "film",
    "from_pandas",
    "from_ribs",
    "leaderboard",
    "load",
    "load_policy",
    "make",
    "measure",
    "plot",
    "read_mjcf",
    "references",
    "replay",
    "report",
    "reproduce",
    "run",
    "stream",
    "suite",
    "terms",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'qdbench' has no attribute {name!r}")
    if _HOME[name] == "qdbench":
        return import_module(f"qdbench.{name}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
