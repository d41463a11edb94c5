"""What the tests of runs share: a task that can be killed in the middle, and how two runs are compared."""

from __future__ import annotations

import subprocess
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import qdbench
from qdbench.algorithms.registry import configure
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.job import Job, Settings
from qdbench.experiments.one_run import execute
from qdbench.experiments.plan import Plan
from qdbench.store.files import read_json, write_json
from qdbench.store.record import CorrectionPlan, Target

if TYPE_CHECKING:
    from conftest import Cli


# a noisy task that fails now and then, slow enough to be killed in the middle
TASKS = """
import numpy as np
from qdbench import FunctionTask

def sphere(solutions, seeds):
    x = solutions.astype(np.float64)
    for _ in range(6):
        x = np.sin(np.arcsin(np.clip(x, -1, 1)))
    noise = (seeds % np.uint64(1000)).astype(np.float64) / 1e4
    fitness = -np.square(x).sum(axis=1) + noise
    fitness[seeds % np.uint64(50) == 0] = np.nan
    return fitness, x[:, :2] + noise[:, None]

def limits(**others):
    return dict(n_parameters=400, descriptor_bounds=((-1, 1), (-1, 1)), fitness_bounds=(-400, 1), **others)

task = FunctionTask(name="sphere", function=sphere, noisy=True, cells=(12, 12), version=1, **limits())
"""


TIMES = ("seconds", "simulation_seconds", "algorithm_seconds")


def command(algorithm: str, *more: str, n: int = 9600, seed: int = 3) -> list[str]:
    return [
        "run", "mine:task", "--algorithm", algorithm, "--seed", str(seed), "--evaluations", str(n),
        "--batch-size", "48", "--checkpoint-every", "0", *more,
    ]  # fmt: skip


def folder(cli: Cli, algorithm: str, seed: int = 3, out: str = "results") -> Path:
    return cli.folder / out / "sphere" / algorithm / f"seed-{seed}"


def results(path: Path) -> dict[str, Any]:
    """Everything that must not depend on interruptions."""
    run = qdbench.load(path)
    assert run.status == "finished"
    archive = run.archive
    elites = {field.name: getattr(archive.elites, field.name) for field in fields(archive.elites)}
    arrays = {
        **elites,
        "cells": archive.cells,
        "steps": archive.steps,
        **archive.geometry.arrays(),
        **run.metrics,
    }
    exact = {name: array.tobytes() for name, array in arrays.items() if name not in TIMES}
    about = {"kind": archive.geometry.kind, "n_evaluations": archive.n_evaluations}
    return {**about, "determinants": run.record.determinants, **exact}


def rows(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_rows(process: subprocess.Popen[str], path: Path, n: int) -> None:
    deadline = time.monotonic() + 60
    while rows(path) < n and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


SLOW = ["--seeds", "3-5", "--evaluations", "10000000", "--batch-size", "48"]


def finished(tmp_path: Path, **options: Any) -> Path:
    namespace: dict[str, Any] = {}
    exec(TASKS, namespace)
    options = {"evaluations": 96, "batch_size": 16} | options
    return qdbench.run(namespace["task"], out=tmp_path, **options).path


def rewrite(path: Path, **changes: Any) -> None:
    """Change entries of run.json, with a checksum that fits."""
    write_json(path, read_json(path) | changes)


def carry_out(
    task: Any,
    algorithm: str,
    seed: int,
    *,
    path: Path | None = None,
    out: Path | None = None,
    evaluations: int = 200,
    options: dict[str, str],
    name: str = "",
    source: str = "",
    corrections: int = 0,
    reevaluations: int = 50,
    **settings: Any,
) -> Path:
    """Run in this process what `qdbench run` would, with settings that `qdbench.run` does not have."""
    plan = Plan(
        task=task,
        task_source=source or task.name,
        algorithm=algorithm,
        options=configure(algorithm, options),
        seed=seed,
        name=name,
    )
    path = path or plan.folder(out or Path("results"))
    target = Target(evaluations, corrections=CorrectionPlan(corrections, reevaluations))
    chosen = Settings(evaluators=Threads(1), **settings)
    outcome = execute(Job(plan, path, target), chosen, Interrupt(), lambda news: None)
    assert outcome.status == "finished", outcome.reason
    return path
