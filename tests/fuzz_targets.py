"""Every public callable with good arguments; the fuzz of calls replaces some of them by odd values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import qdbench
from qdbench import Archive, Evaluated, FunctionTask, Grid, Policy, Problem, Robot, RobotTask, terms
from qdbench.algorithms.map_elites import MapElites
from qdbench.robots import HOPPER

BOX = ((-1.0, 1.0), (-1.0, 1.0))
SPHERE = "qdbench.tasks.sphere:task"
Keywords = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """Something public, and arguments with which it works."""

    name: str
    call: Callable[..., Any]
    good: Keywords
    weight: int = 3
    safe: Callable[[Keywords], Keywords] = field(default=lambda keywords: keywords)
    """Keeps odd values from making a call take long."""


def evaluated(n: int = 3) -> Keywords:
    numbers = np.arange(n)[:, None]
    return {
        "solutions": np.zeros((n, 4), np.float32),
        "fitness": np.linspace(0, 1, n),
        "descriptors": np.linspace(-1, 1, 2 * n).reshape(n, 2),
        "evaluations": numbers,
        "seeds": numbers.astype(np.uint64),
    }


def two_halves(solutions: Any, *seeds: Any) -> Any:
    return -np.square(solutions).sum(axis=1), solutions[:, :2]


def nothing(*_: Any, **__: Any) -> None:
    """Fits wherever a function is asked for, and returns what nobody expects."""


FUNCTION_TASK: Keywords = {
    "name": "halves",
    "function": two_halves,
    "n_parameters": 4,
    "descriptor_bounds": BOX,
    "cells": (3, 3),
    "fitness_bounds": (-10, 1),
    "version": 1,
    "initial_bounds": (-1, 1),
    "noisy": False,
    "solution_bounds": (-2, 2),
    "score_interval": (0, 1),
    "descriptor_names": ("a", "b"),
}
ROBOT: Keywords = {
    "name": "hopper",
    "mjcf": HOPPER.mjcf,
    "control_step": 0.02,
    "physics_steps": 4,
    "exact_contacts": False,
    "root": "torso",
    "feet": ("foot",),
    "floor": "floor",
    "start": "start",
}
ROBOT_TASK: Keywords = {
    "name": "hop",
    "version": 1,
    "robot": HOPPER,
    "observation": (terms.HEIGHT, terms.JOINT_ANGLES),
    "rewards": (terms.survive(1.0), terms.torque(0.1)),
    "descriptor": terms.FEET_CONTACTS,
    "ending": terms.healthy(0.7, 9),
    "reset": terms.JOINT_NOISE,
    "reach": None,
    "descriptor_bounds": ((0, 1),),
    "cells": (5,),
    "mean_over": "lived",
    "fitness_per_step": (0, 1),
    "reset_noise": 0.01,
    "episode_length": 5,
    "hidden": (4,),
    "remark_on_max_fitness": "",
}
PROBLEM: Keywords = {
    "n_parameters": 4,
    "descriptor_bounds": BOX,
    "cells": (3, 3),
    "fitness_bounds": (-1, 1),
    "random_solutions": nothing,
}
TERM: Keywords = {"name": "mine", "function": nothing, "parameters": {"a": 1}, "demands": (), "version": 1}


def _robot(**given: Any) -> None:
    _ = Robot(**given).anatomy


def _robot_task(**given: Any) -> None:
    task = RobotTask(**given)
    _ = task.fingerprint, task.fitness_bounds, task.policy, task.options()


def _function_task(**given: Any) -> None:
    task = FunctionTask(**given)
    solutions = task.random_solutions(2, qdbench.stream(0))
    _ = task.fingerprint, task.evaluate(solutions, [1, 2])


def _term(kind: Any) -> Callable[..., None]:
    return lambda **given: kind(**given).identity()


def _archive(**given: Any) -> None:
    Archive(**given).insert(Evaluated(**evaluated()))


def _insert(**columns: Any) -> None:
    archive = Archive(Grid(BOX, (3, 3)), 4)
    archive.insert(Evaluated(**columns))
    assert np.isfinite(archive.elites.fitness).all()


def _restore(**state: Any) -> None:
    archive = Archive(Grid(BOX, (3, 3)), 4)
    archive.insert(Evaluated(**evaluated()))
    archive.restore({**archive.state(), **state} if "cells" in state else state["state"])


def plain_targets() -> list[Target]:
    """Return what needs no files."""
    hop, halves = RobotTask(**ROBOT_TASK), FunctionTask(**FUNCTION_TASK)
    rng, policy = qdbench.stream(0), Policy((3, 4, 2))
    solutions = hop.random_solutions(2, rng)
    batch: Keywords = {"seeds": [1, 2], "workers": 1, "progress": None}
    draw: Keywords = {"n": 2, "generator": rng}
    act = {"parameters": policy.lecun_uniform(2, rng), "observations": np.zeros((2, 3), np.float32)}
    state = {"cells": np.arange(3), **evaluated()}

    class Local(MapElites):  # nobody else can import it, so it is checked in this process alone
        pass

    return [
        Target("Archive", _archive, {"geometry": Grid(BOX, (3, 3)), "n_parameters": 4, "samples": 1}),
        Target("Archive.insert", Archive(Grid(BOX, (3, 3)), 4).insert, {"batch": Evaluated(**evaluated())}),
        Target("Archive.restore", _restore, state),
        Target("Archive.restore(state)", _restore, {"state": state}),
        Target("Evaluated", _insert, evaluated(), 8),
        Target("Evaluated[]", Evaluated(**evaluated()).__getitem__, {"rows": slice(2)}),
        Target(
            "Evaluations",
            qdbench.Evaluations,
            {
                "fitness": np.zeros(2),
                "descriptors": np.zeros((2, 2)),
                "steps": np.ones(2, np.int64),
                "valid": np.ones(2, bool),
                "terms": {"a": np.zeros(2)},
            },
        ),
        Target("FunctionTask", _function_task, FUNCTION_TASK, 8),
        Target("FunctionTask.random_solutions", halves.random_solutions, draw),
        Target("FunctionTask.evaluate", halves.evaluate, {"solutions": np.ones((2, 4), np.float32), **batch}),
        Target("Grid", Grid, {"bounds": BOX, "shape": (3, 4)}, 5),
        Target("Grid.cells", Grid(BOX, (3, 4)).cells, {"descriptors": np.zeros((2, 2))}),
        Target("Policy", Policy, {"sizes": (3, 4, 2)}),
        Target("Policy.act", policy.act, act),
        Target("Policy.lecun_uniform", policy.lecun_uniform, draw),
        Target("Problem", Problem, PROBLEM, 5),
        Target("Reach", qdbench.Reach, {"speed": 1.0, "cell": 0.5}),
        Target("Robot", _robot, ROBOT, 5),
        Target("RobotTask", _robot_task, ROBOT_TASK, 8),
        Target("RobotTask.random_solutions", hop.random_solutions, draw),
        Target(
            "RobotTask.evaluate",
            hop.evaluate,
            {"solutions": solutions, **batch, "slots": 1, "recorder": None},
        ),
        Target("RobotTask.rollout", hop.rollout, {"solution": solutions[0], "seed": 1}),
        Target("stream", lambda seed, name: qdbench.stream(seed, name), {"seed": 1, "name": "x"}),
        Target("evaluation_seeds", qdbench.evaluation_seeds, {"seed": 1, "n": 3}),
        Target("make", qdbench.make, {"name": "ant_omni", "episode_length": 5, "cells": (3, 3)}, 5),
        Target("make(hidden)", qdbench.make, {"name": SPHERE, "descriptor_bounds": BOX, "cells": (2, 2)}),
        Target("terms.forward", terms.forward, {"weight": 1.0, "of": "com", "top_speed": 3}),
        Target("terms.healthy", terms.healthy, {"low": 0, "high": 1, "tilt": 45}),
        Target("terms.survive", terms.survive, {"bonus": 1}),
        Target("terms.torque", terms.torque, {"weight": 1}),
        Target("terms.Block", _term(terms.Block), {**TERM, "size": 3}),
        Target("terms.Reset", _term(terms.Reset), {**TERM, "size": 3}),
        Target("terms.Ending", _term(terms.Ending), TERM),
        Target("terms.Reward", _term(terms.Reward), {**TERM, "limits": (0, 1), "remembers": None}),
        Target(
            "terms.Descriptor",
            _term(terms.Descriptor),
            {**TERM, "axes": ("a", "b"), "each_step": None, "counts_steps": False},
        ),
        Target(
            "check_algorithm",
            qdbench.check_algorithm,
            {"algorithm": Local, "batch_size": 4, "initial": 8, "iso_sigma": 0.1},
            1,
        ),
    ]


def file_targets(folder: Path) -> list[Target]:
    """Return what reads and writes files, with runs in a folder to work on."""
    sphere = qdbench.run(SPHERE, evaluations=16, batch_size=8, initial=8, out=folder / "results")
    task = qdbench.make("ant_omni", episode_length=5, hidden=(4,))
    robot = qdbench.run(task, evaluations=16, batch_size=8, initial=8, out=folder / "results")
    qdbench.correct(sphere.path, reevaluations=2)
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "file.txt").write_text("a file")
    (folder / "robot.xml").write_text(HOPPER.mjcf)
    policy = qdbench.export(robot, out=folder / "policy.npz")
    measuring: Keywords = {"tasks": (), "interval": "fixed", "on": "own", "progress": nothing}
    a_run: Keywords = {
        "task": SPHERE, "algorithm": "map_elites", "seed": 1, "evaluations": 16, "seconds": None,
        "corrections": 1, "reevaluations": 2, "out": folder / "runs", "name": "a", "workers": 1,
        "elsewhere": False, "changed_code": False, "on_iteration": None, "batch_size": 8,
        "initial": 8, "iso_sigma": 0.1,
    }  # fmt: skip
    replayed: Keywords = {"elite": 0, "cell": None, "sample": 0, "task": None, "trust": False}
    again: Keywords = {"workers": 1, "trust": False}
    shown: Keywords = {"port": 0, "browser": False, "task": None, "trust": False, "draw": None}
    scaled: Keywords = {
        "scale": "smoke", "workers": 1, "checkpoint_every": 1.0, "say": nothing, "progress": nothing,
    }  # fmt: skip
    a_suite: Keywords = {
        "algorithms": ["map_elites"], "scale": "quick", "tasks": ("ant_omni",), "seeds": [100], "name": "a",
        "references": folder / "empty", "workers": 1, "say": nothing, "progress": nothing,
        "on_iteration": None, "iso_sigma": 0.1,
    }  # fmt: skip
    exported: Keywords = {
        "elite": 0, "cell": None, "to": "npz", "out": folder / "out/policy.npz", "task": None, "trust": False,
        "mjcf": folder / "out/ant.xml",
    }  # fmt: skip
    observed = {"observations": np.zeros((2, task.policy.sizes[0]), np.float32), "elite": 0}
    frame = sphere.archive.to_pandas(solutions=True)
    empty, out, a_file = folder / "empty", folder / "out", folder / "file.txt"
    out.mkdir(exist_ok=True)
    paged: dict[str, object] = {"title": "", "replays": True, "trust": False}
    filmed: dict[str, object] = {
        "elite": "best",
        "ghosts": 0,
        "rate": 5.0,
        "size": (64, 64),
        "theme": "light",
        "trust": False,
    }
    return [
        Target("run", qdbench.run, a_run, 12, lambda given: _ends(given)),
        Target("load", qdbench.load, {"path": sphere.path}),
        Target("StoredRun.make_task", sphere.make_task, {"trust": False}, 1),
        Target("replay", qdbench.replay, {"run": robot.path, **replayed}, 6),
        Target("export", qdbench.export, {"run": robot.path, **exported}, 6),
        Target("load_policy", qdbench.load_policy, {"path": policy}),
        Target("ExportedPolicy.act", qdbench.load_policy(policy).act, observed),
        Target("ExportedPolicy.make_task", qdbench.load_policy(policy).make_task, {"trust": False}, 1),
        Target("StoredArchive.to_pandas", sphere.archive.to_pandas, {"solutions": True}),
        Target("from_pandas", qdbench.from_pandas, {"frame": frame}),
        Target("from_ribs", qdbench.from_ribs, {"archive": sphere.archive.to_ribs()}),
        Target("film", qdbench.film, {"run": robot.path, **filmed, "out": out / "a.png"}, 4),
        Target("correct", qdbench.correct, {"runs": sphere.path, "reevaluations": 2, **again}),
        Target("verify", qdbench.verify, {"runs": sphere.path, "elites": 2, "task": None, **again}),
        Target("measure", qdbench.measure, {"results": sphere.path, **measuring}, 4),
        Target("compare", qdbench.compare, {"results": sphere.path, **measuring, "out": out}, 4),
        Target("compare(references)", qdbench.compare, {"results": sphere.path, "references": ()}, 4),
        # an empty folder ends these three, after all other arguments were checked
        Target("plot", qdbench.plot, {"results": empty, **measuring, "out": out}),
        Target("explore", qdbench.explore, {"run": empty, **shown}),
        Target("report", qdbench.report, {"results": empty, **measuring, **paged, "out": out / "r.html"}),
        # and so does a file in the place of a folder
        Target("reproduce", qdbench.reproduce, scaled, safe=lambda given: given | {"out": a_file}),
        Target("reproduce(out)", qdbench.reproduce, {"scale": "smock", "out": out}),
        Target("suite", qdbench.suite, a_suite, safe=lambda given: given | {"out": a_file}),
        Target("suite(out)", qdbench.suite, {"algorithms": "map_elites", "scale": "quack", "out": out}),
        Target("references", qdbench.references, {"folder": empty}, 1),
        Target("leaderboard", qdbench.leaderboard, {"scale": "quick", "references": empty}),
        Target("read_mjcf", qdbench.read_mjcf, {"path": folder / "robot.xml"}, 1),
    ]


def _ends(given: Keywords) -> Keywords:
    """Without evaluations, seconds end a run: too late for a test."""
    return given if given["evaluations"] is not None else given | {"seconds": -1}
