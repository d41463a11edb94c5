"""What the command line offers, Python offers too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import InvalidInput
from qdbench.algorithms.map_elites import MapElites
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.one_run import warm_up
from qdbench.experiments.plan import plan_for
from qdbench.experiments.replaying import ghosts
from running import finished


class Mine(MapElites):
    """An algorithm that was defined in Python, with an option of its own."""

    def __init__(self, problem: Any, seed: int, *, batch_size: int = 64, boldness: float = 0.1) -> None:
        super().__init__(problem, seed, batch_size=batch_size, iso_sigma=boldness)


def test_a_class_can_be_run_by_itself(tmp_path: Path) -> None:
    task = "qdbench.tasks.sphere:task"
    run = qdbench.run(task, Mine, evaluations=256, out=tmp_path, boldness=0.3)
    assert run.record.algorithm.name == "test_python_api:Mine"
    assert run.record.algorithm.options == {"batch_size": 64, "boldness": 0.3}
    assert run.path.parent.name == "test_python_api.Mine"
    by_name = qdbench.run(task, "test_python_api:Mine", evaluations=256, out=tmp_path / "b", boldness=0.3)
    assert np.array_equal(run.archive.elites.solutions, by_name.archive.elites.solutions)
    with pytest.raises(qdbench.UnknownName, match="did you mean 'boldness'"):
        qdbench.run(task, Mine, evaluations=256, out=tmp_path, bolness=0.3)
    with pytest.raises(InvalidInput, match="is no algorithm"):
        qdbench.run(task, 7, evaluations=256, out=tmp_path)  # type: ignore[arg-type]  # that is the point


def test_run_corrects_like_the_command_line(bench: Cli, tmp_path: Path) -> None:
    path = finished(tmp_path / "python", corrections=2, reevaluations=3)
    run = qdbench.load(path)
    assert run.corrections is not None
    assert [point.evaluations for point in run.corrections.points] == [48, 96]
    assert run.record.target.corrections.points == 2
    options = ["--evaluations", "96", "--batch-size", "16", "--corrections", "2", "--reevaluations", "3"]
    assert bench("run", "mine:task", *options).returncode == 0
    other = qdbench.load(bench.folder / "results/sphere/map_elites/seed-0").corrections
    assert other is not None
    assert np.array_equal(run.corrections.fitness, other.fitness, equal_nan=True)


def test_correct_returns_the_corrected_runs(tmp_path: Path) -> None:
    for seed in (0, 1):
        qdbench.run("qdbench.tasks.sphere:task", seed=seed, evaluations=256, out=tmp_path)
    runs = qdbench.correct(tmp_path, reevaluations=2)
    assert [run.record.seed for run in runs] == [0, 1]
    for run in runs:
        assert run.corrections is not None
        assert run.corrections.n_reevaluations == 2
        assert len(repr(run.corrections)) < 200
    with pytest.raises(InvalidInput, match="reevaluations is 0"):
        qdbench.correct(tmp_path, reevaluations=0)


def ant_run(out: Path) -> qdbench.StoredRun:
    box = ((-30.0, 30.0),) * 2
    task = qdbench.make("ant_omni", episode_length=30, hidden=(8,), descriptor_bounds=box, cells=(100, 100))
    return qdbench.run(task, evaluations=64, batch_size=32, out=out)


def test_an_elite_is_replayed_exactly(tmp_path: Path) -> None:
    run = ant_run(tmp_path)
    assert run.task.fingerprint == run.record.task.fingerprint
    archive = run.archive
    best = int(archive.fitness.argmax())
    for elite in (0, best):
        episode = qdbench.replay(run, elite)
        assert episode.fitness == archive.fitness[elite]
        assert np.array_equal(episode.descriptor, archive.descriptors[elite])
    assert qdbench.replay(run.path).fitness == archive.fitness[best]
    place = np.unravel_index(archive.cells[0], (100, 100))
    assert qdbench.replay(run, cell=[int(i) for i in place]).fitness == archive.fitness[0]
    assert qdbench.replay(run, cell=int(archive.cells[0])).fitness == archive.fitness[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"elite": 10**6}, "numbered from 0; or give 'best'"),
        ({"elite": "worst"}, "or give 'best'"),
        ({"cell": (0, 0)}, r"no elite is in the cell \(0, 0\)"),
        ({"cell": (0, 100)}, "is not in a grid of 100x100 cells"),
        ({"cell": (1, 2, 3)}, "is not in a grid of 100x100 cells"),
        ({"sample": 1}, "the sample is 1, but elite"),
    ],
)
def test_no_such_elite_is_one_sentence(tmp_path: Path, arguments: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        qdbench.replay(ant_run(tmp_path), **arguments)


def test_the_ghosts_of_an_elite_are_its_re_evaluations(tmp_path: Path) -> None:
    task = qdbench.make("hopper_uni", episode_length=20)
    run = qdbench.run(task, evaluations=24, batch_size=8, corrections=1, reevaluations=3, out=tmp_path)
    point, corrections = run.final_point, run.corrections
    assert point is not None
    assert corrections is not None
    for row in (0, len(run.archive) - 1):
        episodes = ghosts(run, task, row, 3)
        assert [one.fitness for one in episodes] == corrections.fitness[point.rows[row]].tolist()
        assert len({one.qpos.tobytes() for one in episodes}) == 3
    alone = task.rollout(run.archive.elites.solutions[0], 7)
    (first, _) = task.rollouts(run.archive.elites.solutions[:2], [7, 8])
    assert np.array_equal(alone.qpos, first.qpos)


def test_what_cannot_be_replayed_is_told(tmp_path: Path) -> None:
    run = qdbench.run("qdbench.tasks.sphere:task", evaluations=256, out=tmp_path)
    with pytest.raises(InvalidInput, match="has no robot, so it has neither episodes"):
        qdbench.replay(run)
    with pytest.raises(InvalidInput, match="its episodes cannot be simulated in the same way"):
        qdbench.replay(ant_run(tmp_path), task=qdbench.make("ant_omni"))


def test_rollout_of_a_run_shows_the_elite_s_own_episode(cli: Cli) -> None:
    run = ant_run(cli.folder / "results")
    path, best = str(run.path), int(run.archive.fitness.argmax())
    for choice in ([], ["--elite", "best"], ["--elite", str(best)], ["--cell", str(run.archive.cells[best])]):
        done = cli("rollout", path, *choice, "--out", "elite.npz")
        assert done.returncode == 0, done.stderr
        assert f"elite {best} of " in done.stdout
        with np.load(cli.folder / "elite.npz") as saved:
            assert saved["fitness"] == run.archive.fitness[best]
    refused = {
        ("rollout", path, "--random", "3"): "for a run, only --elite, --cell, --trust and --out are allowed",
        ("rollout", path, "--elite", "1", "--cell", "2"): "give --elite or --cell, not both",
        ("rollout", path, "--elite", "worst"): "is not an elite",
        ("rollout", "ant_omni", "--random", "3", "--elite", "1"): "is not a folder",
    }
    for arguments, sentence in refused.items():
        done = cli(*arguments)
        assert done.returncode == 2
        assert sentence in done.stderr


def test_the_solutions_of_an_archive_can_be_evaluated_again(cli: Cli) -> None:
    run = ant_run(cli.folder / "results")
    options = ["--task-set", "hidden=8", "--episode-length", "30", "--json"]
    done = cli("evaluate", "ant_omni", "--solutions", str(run.path / "archive.npz"), *options)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["fitness"]) == len(run.archive)
    wrong = cli("evaluate", "ant_omni", "--solutions", str(run.path / "checkpoint.npz"))
    assert wrong.returncode == 2
    assert "an .npz file with an array `solutions`" in wrong.stderr


def test_compiling_is_no_part_of_an_algorithm_s_time(tmp_path: Path) -> None:
    from qdbench.tasks.sphere import task

    assert warm_up(plan_for(task, "sphere", "map_elites", {}, seed=0), Interrupt()) == 0
    run = qdbench.run(task, "cma_me", evaluations=400, out=tmp_path, batch_size=40)
    totals = run.record.totals
    assert totals.warm_up_seconds > 0
    assert totals.algorithm_seconds < 3  # compiling takes far longer than ten small batches
    assert run.record.environments[0].packages.keys() == {"ribs", "numba"}
