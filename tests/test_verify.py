"""verify finds every number that is not what the task gives, and every file that is not of the run."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
import unreliable
from conftest import Cli
from qdbench import InvalidInput, StoredRun
from qdbench.store.archive_file import write_archive
from qdbench.store.files import read_json
from running import command, folder, rewrite

SPHERE = "qdbench.tasks.sphere:task"


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return qdbench.run(SPHERE, evaluations=96, out=tmp_path, batch_size=32, initial=32)


def test_a_robot_s_elites_are_simulated_again(tmp_path: Path) -> None:
    task = qdbench.make("ant_omni", episode_length=30, hidden=(8,))
    run = qdbench.run(task, evaluations=64, batch_size=32, out=tmp_path)
    (found,) = qdbench.verify(run.path, elites=7)
    assert found.is_right, found.problems
    assert (found.elites, found.simulated, found.differing) == (len(run.archive), 7, 0)
    assert found.logged
    assert (found.fitness_off, found.descriptors_off, found.versions) == (0, 0, [])


def test_means_of_several_samples_are_verified(tmp_path: Path) -> None:
    task = qdbench.make(SPHERE)
    run = qdbench.run(task, unreliable.Means, evaluations=64, out=tmp_path)
    (found,) = qdbench.verify(run.path, elites=1000, task=task)
    assert found.is_right, found.problems
    assert found.simulated == len(run.archive) > 0


def _tamper(run: StoredRun, **columns: Any) -> None:
    archive = run.archive
    elites = replace(archive.elites, **columns)
    path = run.path / "archive.npz"
    steps = archive.steps
    write_archive(path, run.record.determinants, archive.n_evaluations, elites, archive.geometry, steps)


def test_a_changed_fitness_is_found_thrice(run: StoredRun) -> None:
    fitness = run.archive.fitness.copy()
    fitness[3] += 1e-6
    _tamper(run, fitness=fitness)
    (found,) = qdbench.verify(run.path, elites=1000)
    assert not found.is_right
    assert found.differing == 1
    assert found.fitness_off == pytest.approx(1e-6, rel=1e-3)
    assert found.descriptors_off == 0
    told, simulated = found.problems[-2:]
    assert told == "elite 3 differs from what the algorithm was told, by told.log"
    assert simulated.startswith(f"1 of {len(run.archive)} elites differ from what the task gives: fitness by")
    fitness[3] += 5
    _tamper(run, fitness=fitness)
    (found,) = qdbench.verify(run.path)
    assert found.problems[0].startswith("metrics.csv ends with grid_qd_score ")


def test_changed_descriptors_seeds_and_numbers_are_found(run: StoredRun) -> None:
    archive = run.archive
    for columns, sentence in (
        ({"descriptors": archive.descriptors + 1e-9}, "elite 0 differs from what the algorithm was told"),
        ({"seeds": archive.seeds + np.uint64(1)}, "the seed of an elite is not that of its evaluation"),
        ({"evaluations": archive.evaluations[::-1]}, "the seed of an elite is not that of its evaluation"),
        ({"solutions": archive.elites.solutions + np.float32(0.1)}, "differ from what the task gives"),
    ):
        _tamper(run, **columns)
        (found,) = qdbench.verify(run.path)
        assert any(sentence in problem for problem in found.problems), (sentence, found.problems)


def test_foreign_metrics_and_corrections_are_found(run: StoredRun) -> None:
    qdbench.correct(run.path, reevaluations=2)
    assert qdbench.verify(run.path)[0].is_right
    metrics = run.path / "metrics.csv"
    lines = metrics.read_text().splitlines()
    last = dict(zip(lines[0].split(","), lines[-1].split(","), strict=True))
    coverage = int(last["grid_coverage"])
    lines[-1] = ",".join((last | {"grid_coverage": str(coverage + 1)}).values())
    data = ("\n".join(lines) + "\n").encode()
    metrics.write_bytes(data)
    rewrite(run.path / "run.json", metrics={"n_bytes": len(data), "crc32": zlib.crc32(data)})
    (found,) = qdbench.verify(run.path)
    expected = f"metrics.csv ends with grid_coverage {coverage + 1}, but the archive has {coverage}"
    assert found.problems == [expected]
    _tamper(run, fitness=run.archive.fitness - 1)
    (found,) = qdbench.verify(run.path)
    assert any("corrected.npz is damaged" in problem for problem in found.problems)


def test_files_that_are_missing_or_damaged_are_told(run: StoredRun) -> None:
    (run.path / "told.log").unlink()
    (found,) = qdbench.verify(run.path)
    assert found.is_right
    assert not found.logged
    (run.path / "metrics.csv").write_text("nothing")
    (found,) = qdbench.verify(run.path)
    assert "metrics.csv is damaged" in found.problems[0]
    (run.path / "archive.npz").unlink()
    assert qdbench.verify(run.path)[0].problems == ["archive.npz is missing"]


def test_nothing_is_written(run: StoredRun) -> None:
    log = run.path / "told.log"
    log.write_bytes(log.read_bytes()[:-5])  # as a kill leaves it
    before = {file: file.read_bytes() for file in run.path.iterdir()}
    (found,) = qdbench.verify(run.path)
    assert found.is_right
    assert not found.logged
    assert {file: file.read_bytes() for file in run.path.iterdir()} == before


def test_what_cannot_be_verified_is_refused(run: StoredRun, tmp_path: Path) -> None:
    rewrite(run.path / "run.json", status="running")
    with pytest.raises(InvalidInput, match="has the status running; finish it"):
        qdbench.verify(run.path)
    for wrong in ({"elites": 0}, {"elites": "all"}, {"workers": -1}, {"trust": 1}, {"task": 3}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            qdbench.verify(run.path, **wrong)


def test_the_command_has_a_row_per_run_and_an_exit_code(bench: Cli) -> None:
    for seed in (3, 4):
        assert bench(*command("map_elites", n=96, seed=seed)).returncode == 0
    path = folder(bench, "map_elites")
    refused = bench("verify", str(path))
    assert refused.returncode == 2
    assert "--trust" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    done = bench("verify", "results", "--trust", "--elites", "5")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [line.split()[-2:] for line in done.stdout.splitlines()[1:3]] == [["compared", "yes"]] * 2
    assert done.stdout.splitlines()[-1].startswith("Next: qdbench correct ")
    run = qdbench.load(path)
    _tamper(run, fitness=run.archive.fitness + 1)
    done = bench("verify", "results", "--trust", "--json")
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert [one["is_right"] for one in facts] == [False, True]
    done = bench("verify", str(path), "--trust")
    assert done.returncode == 1
    assert f"differs: {path.relative_to(bench.folder)}" in done.stderr or "differs: " in done.stderr


def test_other_versions_are_told(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    path = folder(bench, "map_elites")
    places = read_json(path / "run.json")["environments"]
    rewrite(path / "run.json", environments=[places[0] | {"numpy": "1.0"}])
    same = bench("verify", str(path), "--trust")
    assert same.returncode == 0, same.stderr
    assert "made with other versions (numpy '1.0', here " in same.stdout
    run = qdbench.load(path)
    _tamper(run, fitness=run.archive.fitness + 1)
    done = bench("verify", str(path), "--trust")
    assert done.returncode == 1
    assert "; the run was made with other versions (numpy '1.0'" in done.stderr


def test_a_task_that_changed_is_told(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    mine = bench.folder / "mine.py"
    mine.write_text(mine.read_text().replace("version=1", "version=2"))
    done = bench("verify", "results", "--trust")
    assert done.returncode == 1
    assert "the task has changed: its fingerprint was" in done.stderr
