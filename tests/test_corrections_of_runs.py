"""Which runs' elites are re-evaluated when, and whose re-evaluations are refused."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import DamagedFile
from qdbench.algorithms.registry import configure
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Grid
from qdbench.experiments.correcting import Corrector
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.plan import Plan
from qdbench.store.corrections_file import read_corrections
from qdbench.store.files import read_json, write_json
from qdbench.store.folder import RunFolder
from running import SLOW, TASKS, carry_out, command, finished, folder, rewrite, wait_for_rows

FEW = ("--reevaluations", "3")


def points(path: Path) -> list[int]:
    found = qdbench.load(path).corrections
    return [] if found is None else [point.evaluations for point in found.points]


def test_resume_corrects_as_the_run_was_begun(bench: Cli) -> None:
    process = bench.start("run", "mine:task", *SLOW, "--corrections", "10000", *FEW)
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 30)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    end = (qdbench.load(path).record.totals.evaluations // 96 + 2) * 96
    done = bench("resume", "--trust", str(path), "--evaluations", str(end))
    assert done.returncode == 0, done.stderr
    assert points(path)[-1] == end
    found = qdbench.load(path).corrections
    assert found is not None
    assert found.n_reevaluations == 3


def test_a_finished_run_is_corrected_when_asked_to(bench: Cli) -> None:
    assert bench(*command("map_elites", n=480)).returncode == 0
    path = folder(bench, "map_elites")
    again = bench(*command("map_elites", "--corrections", "2", *FEW, n=480))
    assert again.returncode == 0, again.stderr
    assert points(path) == [480]
    assert "corrected at 1 of 2 points. Correction points already passed cannot be added" in again.stderr
    assert "skipped" in bench(*command("map_elites", "--corrections", "2", *FEW, n=480)).stdout


def test_the_next_step_is_told_from_any_folder(bench: Cli) -> None:
    assert bench(*command("map_elites", n=480)).returncode == 0
    path = folder(bench, "map_elites")
    for where, run, results in (
        (path.parent, path.name, ".."),
        (path, ".", "../.."),
        (bench.folder, str(path.relative_to(bench.folder)), str(path.parents[1].relative_to(bench.folder))),
    ):
        here = Cli(where)
        if where != bench.folder:
            shutil.copy(bench.folder / "mine.py", where)
        done = here("correct", "--trust", run, *FEW)
        assert done.returncode == 0, done.stderr
        assert f"Next: qdbench compare {results}\n" in done.stdout


def test_a_number_of_reevaluations_alone_is_refused(bench: Cli) -> None:
    done = bench("resume", "--trust", "results", *FEW)
    assert done.returncode == 2
    assert "--reevaluations needs --corrections K" in done.stderr


def test_a_run_ended_by_its_seconds_is_corrected_at_its_end(bench: Cli) -> None:
    done = bench(*command("map_elites", "--seconds", "0.05", "--corrections", "2", *FEW, n=10**7))
    assert done.returncode == 0, done.stderr
    path = folder(bench, "map_elites")
    assert points(path) == [qdbench.load(path).record.totals.evaluations]


def test_other_reevaluations_than_before_are_refused_and_nothing_is_touched(bench: Cli) -> None:
    assert bench(*command("map_elites", "--corrections", "1", *FEW, n=480)).returncode == 0
    path = folder(bench, "map_elites")
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    done = bench(*command("map_elites", "--corrections", "1", "--reevaluations", "4", n=960))
    assert done.returncode == 2
    assert "has 3 re-evaluations per elite, not 4" in done.stderr
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_reevaluations_of_another_run_are_refused(bench: Cli) -> None:
    for seed in (3, 4):
        done = bench(*command("map_elites", "--corrections", "1", *FEW, n=480, seed=seed))
        assert done.returncode == 0, done.stderr
    mine, other = (folder(bench, "map_elites", seed) for seed in (3, 4))
    shutil.copy(other / "corrected.npz", mine)
    with pytest.raises(DamagedFile, match="it is of another run"):
        points(mine)
    done = bench(*command("map_elites", "--corrections", "1", *FEW, n=960))
    assert done.returncode == 2
    assert "corrected.npz is of another run (seed 4, here 3); delete it to start again" in done.stderr
    left = bench.folder / "results/sphere/random_search/seed-3"
    left.mkdir(parents=True)
    shutil.copy(other / "corrected.npz", left)
    assert "belongs to no run in this folder" in bench(*command("random_search", n=480)).stderr


def test_a_correction_of_other_elites_is_refused(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    exec(TASKS, namespace)
    task = namespace["task"]
    one, two = (
        carry_out(
            task, "map_elites", 0, path=tmp_path / name, evaluations=480, corrections=1, reevaluations=2,
            options={"batch_size": "48", "iso_sigma": sigma},
        )
        for name, sigma in (("one", "0.01"), ("two", "0.02"))
    )  # fmt: skip
    shutil.copy(one / "corrected.npz", two)
    with pytest.raises(DamagedFile, match=r"it is of another run \(algorithm options iso_sigma"):
        points(two)


def corrector(path: Path) -> Corrector:
    namespace: dict[str, Any] = {}
    exec(TASKS, namespace)
    options = configure("map_elites", {})
    plan = Plan(
        task=namespace["task"], task_source="mine:task", algorithm="map_elites", options=options, seed=0
    )
    path.mkdir(exist_ok=True)
    grid = Grid(plan.task.descriptor_bounds, plan.task.cells)
    return Corrector(plan, RunFolder(path), grid, 3, Threads(1)(plan.task))


def elites(keys: list[int], fitness: list[float]) -> Evaluated:
    numbers = np.array(keys)[:, None]
    solutions = (numbers / 100 * np.ones((1, 400))).astype(np.float32)
    return Evaluated(
        solutions, np.array(fitness), np.zeros((len(keys), 2)), numbers, numbers.astype(np.uint64)
    )


def test_an_elite_is_reevaluated_once_and_anew_only_if_it_is_another(tmp_path: Path) -> None:
    made: list[int] = []

    def correct(after: int, keys: list[int], fitness: list[float]) -> None:
        made.clear()
        corrector(tmp_path).correct(
            after,
            elites(keys, fitness),
            np.arange(len(keys)),
            Interrupt(),
            lambda done, all_: made.append(all_),
        )

    correct(10, [7, 5, 7], [1.0, 2.0, 1.0])  # one evaluation twice
    assert set(made) == {6}
    correct(20, [5, 9], [2.0, 3.0])
    assert set(made) == {3}
    correct(30, [5, 9], [2.5, 3.0])  # evaluation 5 made elsewhere, with another outcome
    assert set(made) == {3}
    determinants = corrector(tmp_path).plan.determinants()
    made_of = read_corrections(RunFolder(tmp_path).corrected_path, determinants)
    first, second, third = (made_of.reevaluations(point).fitness for point in made_of.points)
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[1], second[0])
    assert np.array_equal(second[1], third[1])


def test_a_run_that_has_come_farther_than_asked_is_refused(bench: Cli) -> None:
    process = bench.start("run", "mine:task", *SLOW)
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 20)
    process.terminate()
    process.communicate(timeout=30)
    done = bench("resume", "--trust", str(path), "--evaluations", "96")
    assert done.returncode == 2
    assert "evaluations already, more than 96; give a larger --evaluations" in done.stderr
    assert qdbench.load(path).status == "stopped"


RAISES = """
import mine
from dataclasses import replace

def function(solutions, seeds):
    raise ZeroDivisionError("not\\ntoday")

task = replace(mine.task, name="raises", function=function)
"""


def test_correct_goes_on_after_whatever_goes_wrong(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    good = folder(bench, "map_elites")
    (bench.folder / "raising.py").write_text(
        RAISES.replace("raise Zero", "return mine.sphere(solutions, seeds)  # ")
    )
    raises = bench.folder / "results/raises/map_elites/seed-0"
    assert bench("run", "raising:task", "--evaluations", "48", "--batch-size", "48").returncode == 0
    (bench.folder / "raising.py").write_text(RAISES)
    foreign = bench.folder / "results/sphere/map_elites/seed-8"
    shutil.copytree(good, foreign)
    totals = read_json(good / "run.json")["totals"]
    rewrite(foreign / "run.json", totals=totals | {"evaluations": 0})
    other = bench.folder / "results/sphere/map_elites/seed-9"
    shutil.copytree(good, other)
    (other / "metrics.csv").unlink()
    done = bench("correct", "--trust", "results", *FEW)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{raises.relative_to(bench.folder)}: ZeroDivisionError: not today" in done.stderr
    assert "map_elites/seed-8" in done.stderr
    assert (
        "failed: [Errno 2] No such file or directory: 'results/sphere/map_elites/seed-9/metrics.csv"
        in done.stderr
    )
    assert "seed-3" in done.stdout


def test_a_record_of_something_else_is_one_sentence(tmp_path: Path) -> None:
    path = finished(tmp_path)
    write_json(path / "run.json", {"some": "thing"})
    with pytest.raises(DamagedFile, match=r"run.json is damaged and was not used: the record has no task"):
        qdbench.load(path)
