"""Several processes with the same command share the runs, and a user's function is told every iteration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import InvalidInput, QdbenchError
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.iterations import NUMBERS, Iteration
from qdbench.experiments.job import Job, Settings
from qdbench.experiments.plan import plan_for
from qdbench.experiments.runs import check_jobs
from qdbench.store.locks import in_use, locked
from qdbench.store.record import Target
from running import TASKS, finished, results, rewrite, wait_for_rows

SEEDS = range(6)


def test_two_processes_split_the_runs(bench: Cli) -> None:
    command = ["run", "mine:task", "--seeds", "0-5", "--evaluations", "9600", "--batch-size", "48"]
    alone = bench(*command, "--out", "alone")
    assert alone.returncode == 0, alone.stderr
    first = bench.start(*command, "--workers", "1")
    wait_for_rows(first, bench.folder / "results/sphere/map_elites/seed-0/metrics.csv", 3)
    second = bench.start(*command, "--workers", "1")
    told = [process.communicate(timeout=300) for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [0, 0], told
    made = [set(re.findall(r"map_elites/seed-(\d): finished", err)) for _, err in told]
    assert made[0] | made[1] == set(map(str, SEEDS))
    assert not made[0] & made[1]
    assert made[0]
    assert made[1]  # each has its part
    assert "in progress elsewhere" in told[1][0]
    assert "in progress elsewhere: " in told[1][1]
    assert "failed" not in told[0][1] + told[1][1]
    for seed in SEEDS:
        path = f"sphere/map_elites/seed-{seed}"
        assert results(bench.folder / "results" / path) == results(bench.folder / "alone" / path)
    assert bench(*command).stdout.count("skipped") == len(SEEDS)


def test_a_run_in_progress_on_another_cpu_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = finished(tmp_path)
    record = qdbench.load(path).record
    other = [vars(where) | {"cpu": "another"} for where in record.environments]
    rewrite(path / "run.json", environments=other, status="running")
    plan = plan_for(_task(), "sphere", "map_elites", {"batch_size": 16}, seed=0)
    job = Job(plan, path, Target(960))
    settings = Settings(evaluators=Threads(1))
    with pytest.raises(InvalidInput, match="started on another CPU"):
        check_jobs([job], settings)
    assert not in_use(path)
    monkeypatch.setattr("qdbench.experiments.runs.in_use", lambda folder: True)
    check_jobs([job], settings)  # the other process sees to it


def _task() -> Any:
    namespace: dict[str, Any] = {}
    exec(TASKS, namespace)
    return namespace["task"]


def test_python_refuses_a_run_that_is_in_use(tmp_path: Path) -> None:
    path = finished(tmp_path)
    with locked(path):
        assert in_use(path)
        with pytest.raises(QdbenchError, match="in use by another process"):
            finished(tmp_path)
    assert not in_use(tmp_path / "nothing")


def test_every_iteration_is_told_once_also_after_an_error(tmp_path: Path) -> None:
    told: list[Iteration] = []
    path = finished(tmp_path / "whole", on_iteration=told.append)
    metrics = qdbench.load(path).metrics
    assert [one.numbers["iteration"] for one in told] == [1, 2, 3, 4, 5, 6]
    for name in NUMBERS:
        np.testing.assert_array_equal([one.numbers[name] for one in told], metrics[name])
    assert {one.run for one in told} == {"sphere/map_elites/seed-0"}
    assert all(type(value) is float for value in told[0].numbers.values())

    def broken(one: Iteration) -> None:
        if one.numbers["iteration"] == 3:
            raise ZeroDivisionError("no disk")

    with pytest.raises(QdbenchError, match="on_iteration raised ZeroDivisionError: no disk"):
        finished(tmp_path / "broken", on_iteration=broken)
    again = finished(tmp_path / "broken")
    assert results(again) == results(path)


def test_on_iteration_must_be_a_function(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="on_iteration is 3; give a function"):
        finished(tmp_path, on_iteration=3)
