"""The studies that are made of runs, at a scale of seconds; their numbers computed again in plain NumPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import ROOT
from qdbench.analysis.measures import PlacedRun
from qdbench.metrics.robustness import Reevaluations
from qdbench.paper.protocol import Contender, Scale
from qdbench.store.corrections_file import CorrectionPoint
from qdbench.store.locks import locked
from qdbench.store.reference_file import SHIPPED
from studies import (
    before,
    campaign,
    digests,
    discrimination,
    episode_length,
    kept,
    network_size,
    paper_experiment,
)

TINY = Scale(evaluations=96, episode_length=8, replications=2, corrections=1, reevaluations=2, batch_size=24)
TASKS = ("ant_omni", "walker_uni")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of all contenders on two tasks; of the second only one seed of novelty search."""
    out = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrimination, "STANDARD", TINY)
        run(discrimination.parser(), "run", out, "--tasks", "ant_omni", "--seeds", "0-1")
        most = [name for name in campaign.CONTENDERS if name != "novelty_search"]
        run(
            discrimination.parser(),
            "run",
            out,
            "--tasks",
            "walker_uni",
            "--seeds",
            "0-1",
            "--algorithms",
            *most,
        )
        run(
            discrimination.parser(),
            "run",
            out,
            "--tasks",
            "walker_uni",
            "--seeds",
            "1",
            "--algorithms",
            "novelty_search",
        )
    return out


def run(parser: Any, name: str, out: Path, *more: str) -> None:
    assert campaign.command(parser, [name, "--out", str(out), "--workers", "1", *more]) == 0


def table(parser: Any, runs: Path, *more: str) -> None:
    assert campaign.command(parser, ["table", "--runs", str(runs), *more]) == 0


def test_runs_are_made_once_seed_by_seed(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(discrimination, "STANDARD", TINY)
    run(discrimination.parser(), "run", tiny, "--tasks", "ant_omni", "--seeds", "0-1")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert all(line.endswith(": was finished, 0 s") for line in lines)
    assert ["seed-0" in line for line in lines] == [True] * 6 + [False] * 6
    assert "examples.novelty_search.NoveltySearch" in lines[5]


def test_the_table_of_an_incomplete_campaign(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "numbers.json"
    chosen = ("--tasks", *TASKS, "hopper_uni", "--seeds", "0-2", "--json", str(written))
    table(discrimination.parser(), tiny, *chosen)
    said = capsys.readouterr().out
    rows = [line for line in said.splitlines() if line.startswith("| ant_omni |")]
    assert len(rows) == 6 + 1
    assert len({line.count("|") for line in rows[:6]}) == 1
    assert "- walker_uni: " in said
    assert "novelty_search: seeds 0, 2" in said
    assert "- hopper_uni: random_search: seeds 0, 1, 2" in said
    found = json.loads(written.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert set(found["hopper_uni"]) == {"missing"}
    assert found["ant_omni"]["missing"] == [f"{name}: seed 2" for name in campaign.CONTENDERS]
    assert found["walker_uni"]["verdicts"]["c"]["passes"] is None  # one pair of seeds only
    assert found["walker_uni"]["border"] is None
    _require_numbers(tiny, found["ant_omni"])
    table(discrimination.parser(), tiny, "--tasks", "ant_omni", "--seeds", "1")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ant_omni |")]
    assert [line.split(" | ")[2] for line in rows[:6]] == ["1"] * 6


def _require_numbers(tiny: Path, found: dict[str, Any]) -> None:
    """Compute what the study says about ant_omni again, from the files."""
    grids, values = {}, {}
    for name, contender in campaign.CONTENDERS.items():
        for seed in (0, 1):
            stored = qdbench.load(tiny / "ant_omni" / contender.label / f"seed-{seed}")
            bounds, shape = np.array(stored.record.task.descriptor_bounds), np.array(stored.record.task.cells)
            shares = (stored.archive.descriptors - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
            places = np.clip(shares * shape, 0, shape - 1).astype(int)
            cells: dict[tuple[int, ...], float] = {}
            for place, fitness in zip(places.tolist(), stored.archive.fitness, strict=True):
                cells[tuple(place)] = max(fitness, cells.get(tuple(place), -np.inf))
            grids[name, seed] = cells
            values[name, seed] = stored.metrics["coverage"]
    reached = set().union(*grids.values())
    assert found["grid_reached"] == pytest.approx(len(reached) / np.prod(shape))
    coverage = values["map_elites", 1]
    assert found["contenders"]["map_elites"]["coverage"][1] == coverage[-1]
    growth = found["contenders"]["map_elites"]["coverage_growth_since_half"][1]
    assert growth == pytest.approx(coverage[-1] / coverage[1] - 1)
    low, high = found["interval"]
    differences = []
    for seed in (0, 1):
        ours, novel = grids["map_elites", seed], grids["novelty_search", seed]
        both = [(ours[cell], novel[cell]) for cell in ours if cell in novel]
        normal = np.clip((np.array(both) - low) / (high - low), 0, 1).mean(axis=0)
        differences.append(normal[0] - normal[1])
    assert found["verdicts"]["c"]["mean"] == pytest.approx(np.mean(differences))
    corrected = found["contenders"]
    gap = np.mean(corrected["map_elites"]["corrected_qd_score"]) - np.mean(
        corrected["random_search"]["corrected_qd_score"]
    )
    assert found["verdicts"]["a"]["mean"] == pytest.approx(gap)


def test_a_campaign_goes_on_where_its_runs_are_gone(tiny: Path, tmp_path: Path) -> None:
    """Seed 0 was made in one place, seed 1 in another: the numbers are those of both together."""
    files = tmp_path / "kept"
    for seed in (0, 1):
        place = tmp_path / f"place-{seed}"
        for path in tiny.glob(f"*/*/seed-{seed}"):
            copytree(path, place / path.relative_to(tiny))
        chosen = ["--runs", str(place), "--kept", str(files), "--tasks", *TASKS]
        assert campaign.command(discrimination.parser(), ["keep", *chosen]) == 0
    assert sorted(path.name for path in files.iterdir()) == [f"{name}.json" for name in TASKS]
    expected = discrimination.summary(tiny, TASKS, [0, 1])
    for where in ("place-1", "nowhere"):  # some of the runs are here, too, or none
        found = discrimination.summary(tmp_path / where, TASKS, [0, 1], files)
        for name in TASKS:
            assert found[name]["missing"] == expected[name]["missing"]
            assert _flat(found[name]) == pytest.approx(_flat(expected[name]), rel=1e-5, abs=1e-6, nan_ok=True)
    made = json.loads((files / "walker_uni.json").read_text())["runs"]["map_elites"]["1"]["made"]
    assert made["mujoco"] == qdbench.load(tiny / "walker_uni/map_elites/seed-1").record.environments[0].mujoco
    other = qdbench.make("walker_uni", episode_length=9)
    qdbench.run(other, "map_elites", evaluations=96, out=tmp_path / "other", workers=1, batch_size=24)
    (found,) = discrimination.summary(tmp_path / "other", ["walker_uni"], [0, 1], files).values()
    assert "of another task or size" in found["missing"][0]
    assert "episode_length 8, here 9" in found["missing"][0]


def _flat(found: Any, name: str = "") -> dict[str, float]:
    """Return all numbers of a summary by their places."""
    if isinstance(found, dict):
        return {key: value for one in found for key, value in _flat(found[one], f"{name} {one}").items()}
    if isinstance(found, list):
        return {key: value for i, one in enumerate(found) for key, value in _flat(one, f"{name} {i}").items()}
    return {name: found} if isinstance(found, int | float) else {}


def test_one_inconsistent_task_does_not_hide_the_others(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in TASKS:
        copytree(tiny / name, tmp_path / name)
    other = qdbench.make("ant_omni", episode_length=9)
    out = tmp_path / "other"
    qdbench.run(other, "map_elites", seed=2, evaluations=96, out=out, workers=1, batch_size=24)
    copytree(out / "ant_omni", tmp_path / "ant_omni", dirs_exist_ok=True)
    table(discrimination.parser(), tmp_path, "--tasks", *TASKS)
    said = capsys.readouterr().out
    assert "| walker_uni | map_elites | 2 |" in said
    assert "| ant_omni |" not in said
    assert "episode_length" in next(line for line in said.splitlines() if line.startswith("- ant_omni: "))


def columns(ours: list[float], random: list[float], growth: list[float]) -> dict[str, Any]:
    both = {f"{name}_growth_since_three_quarters": growth for name in digests.GROWN}
    return {
        "map_elites": {"corrected_qd_score": ours, **both},
        "random_search": {"corrected_qd_score": random},
    }


def test_verdicts() -> None:
    good = columns([9, 10, 11.0], [5, 6, 5.5], [0.05, 0.04, 0.03])
    assert discrimination.above_random(good)["passes"] is True
    assert discrimination.still_growing(good)["passes"] is True
    bad = columns([9, 10, 11.0], [8, 10, 13.0], [0.01, 0.012, 0.011])
    assert discrimination.above_random(bad)["passes"] is False
    assert discrimination.still_growing(bad)["passes"] is False
    assert discrimination.above_random(columns([9.0], [5.0], [0.1]))["passes"] is None
    assert discrimination.above_random({})["passes"] is None
    slow = columns([9.0], [9.0], [0.0, 0.0])
    slow["map_elites"]["qd_score_growth_since_three_quarters"] = [0.05, 0.06]
    assert discrimination.still_growing(slow)["metric"] == "qd_score"
    judged = discrimination.judged
    assert judged(campaign.Interval(0.09, 0.05, 0.2), 0.1)["passes"] is False
    assert judged(campaign.Interval(0.2, -0.01, 0.4), 0.1)["passes"] is False
    assert judged(campaign.Interval(0.2, 0.1, 0.3), 0.1)["passes"] is True


def test_a_pilot_calibrates_the_score_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(discrimination, "STANDARD", TINY)
    run(discrimination.parser(), "pilot", tmp_path, "--tasks", "walker_uni")
    capsys.readouterr()
    arguments = ["calibrate", "--runs", str(tmp_path), "--tasks", "walker_uni", "ant_omni"]
    assert campaign.command(discrimination.parser(), arguments) == 0
    said = capsys.readouterr().out
    assert said.endswith("Not finished: ant_omni\n")
    (row,) = (line for line in said.splitlines() if line.startswith("| walker_uni |"))
    low, high = (float(number) for number in row.split("|")[-2].strip(" ()").split(","))
    runs = [qdbench.load(path.parent) for path in tmp_path.glob("walker_uni/*/seed-100/run.json")]
    assert len(runs) == 3
    assert all(one.corrections is None for one in runs)
    fitness = np.sort(np.concatenate([one.archive.fitness for one in runs]))
    shares = np.mean([[(one.archive.fitness <= value).mean() for value in fitness] for one in runs], axis=0)
    percentile = fitness[shares >= 0.01][0] / 8
    best = max(one.archive.fitness.max() for one in runs) / 8
    unit, unit_of_best = (10 ** (np.floor(np.log10(abs(value))) - 1) for value in (percentile, best))
    assert 0 <= percentile - low < unit
    assert 0 <= high - best < unit_of_best


def test_every_algorithm_has_the_same_weight_in_the_percentile() -> None:
    many, few = np.linspace(0, 1, 10_001), np.array([5.0, 6.0, 7.0])
    assert discrimination.first_percentile([many]) == pytest.approx(0.01, abs=1e-3)
    assert discrimination.first_percentile([many, few]) == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [(0.1636, "0.16", "0.17"), (-0.7144, "-0.72", "-0.71"), (12.0, "12", "12"), (0.9999, "0.99", "1"),
     (-0.05, "-0.05", "-0.05"), (123.4, "120", "130"), (0.0, "0", "0")],
)  # fmt: skip
def test_rounding_outwards(value: float, down: str, up: str) -> None:
    assert discrimination.outwards(value, up=False) == down
    assert discrimination.outwards(value, up=True) == up


def test_intervals_and_words() -> None:
    one = campaign.interval(np.array([3.0]))
    assert (one.mean, np.isnan(one.low)) == (3.0, True)
    assert one.words(".1f") == "3.0"
    assert campaign.interval(np.empty(0)).words() == "-"
    a, b = np.array([1.0, 2.0, 3.0, np.nan]), np.array([10.0, 20.0])
    found = campaign.interval(a, b)
    assert found.mean == -13
    assert -19 <= found.low < found.mean < found.high <= -7
    assert campaign.seed_list("0-2,7") == [0, 1, 2, 7]


def test_a_failed_run_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = qdbench.make("hopper_uni", episode_length=5)
    broken = Contender("random_search", "odd", (("init", "nothing"),))
    planned = [
        campaign.Planned(tmp_path, task, contender, 0, TINY)
        for contender in (broken, campaign.CONTENDERS["random_search"])
    ]
    assert campaign.carry_out(planned, 1) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert "FAILED: init is 'nothing'" in first
    assert second.endswith(" s")


def test_a_run_of_another_process_is_left_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, some = qdbench.make("hopper_uni", episode_length=5), campaign.CONTENDERS["random_search"]
    planned = [campaign.Planned(tmp_path, task, some, seed, TINY) for seed in (0, 1)]
    planned[0].path.mkdir(parents=True)
    with locked(planned[0].path):
        assert campaign.carry_out(planned, 1) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(": in progress elsewhere")
    assert second.endswith(" s")


def test_network_sizes_beside_the_reference_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(network_size, "STANDARD", TINY)
    monkeypatch.setattr(network_size, "SIZES", ((8,), (64, 64)))
    parser = campaign.run_and_table(None, network_size.run, network_size.table, kept.keep)
    run(parser, "run", tmp_path, "--seeds", "0-1")
    assert len(capsys.readouterr().out.splitlines()) == 4  # the tasks' own networks are not run again
    table(parser, tmp_path, "--png", str(tmp_path / "figure.png"))
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:4] for row in rows] == [
        [name, words, f"{qdbench.make(name, hidden=hidden).n_parameters:,}", n_seeds]
        for name in network_size.TASKS
        for words, hidden, n_seeds in (("8", (8,), "2"), ("64, 64", (64, 64), "5"))
    ]
    for name, other, own in zip(network_size.TASKS, rows[::2], rows[1::2], strict=True):
        shipped = json.loads((SHIPPED / f"standard-v1/{name}/map_elites.json").read_text())
        at = shipped["metrics"].index("coverage")
        assert own[4].startswith(f"{np.mean([run['values'][at] for run in shipped['runs']]):.4g} (")
        made = [qdbench.load(tmp_path / f"{name}-8/{name}/map_elites/seed-{seed}") for seed in (0, 1)]
        assert other[4].startswith(f"{np.mean([one.metrics['coverage'][-1] for one in made]):.4g} (")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_the_docs_show_the_network_sizes_as_they_are(tmp_path: Path) -> None:
    found = network_size.points(tmp_path, ROOT / "studies/data/network_size")
    assert network_size.as_table(found) in (ROOT / "docs/reproduction.md").read_text()


def test_losses_against_episode_length_fill_and_reevaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(episode_length, "SCALE", TINY)
    monkeypatch.setattr(episode_length, "LENGTHS", (8, 30))
    monkeypatch.setattr(episode_length, "FILLS", (2, 4))
    parser = episode_length.parser()
    run(parser, "run", tmp_path / "runs", "--seeds", "0-1")
    monkeypatch.setattr(episode_length, "LENGTHS", (8, 30, 70))
    files, png = tmp_path / "kept", tmp_path / "figure.png"
    campaign.command(parser, ["keep", "--runs", str(tmp_path / "runs"), "--kept", str(files)])
    capsys.readouterr()
    table(parser, tmp_path / "runs", "--png", str(png))
    said = capsys.readouterr().out
    assert said.endswith("Not finished: episode length 70\n")
    assert png.stat().st_size > 5000
    table(parser, tmp_path / "nowhere", "--kept", str(files))
    assert capsys.readouterr().out == said
    original = PlacedRun.reevaluations

    def first_is_lost(self: PlacedRun, point: CorrectionPoint) -> Reevaluations:
        again = original(self, point)
        fitness, descriptors = again.fitness.copy(), again.descriptors.copy()
        fitness[0, 1] = descriptors[0, 1] = np.nan
        return Reevaluations(fitness, descriptors)

    monkeypatch.setattr(PlacedRun, "reevaluations", first_is_lost)
    runs = qdbench.measure(tmp_path / "runs/episode_length-30").tasks[0].measured_runs
    monkeypatch.setattr(episode_length, "FILLS", (1, *sorted({len(one.fitness) for one in runs})))
    for one in runs:
        found = episode_length.lost(one)
        values = [one.values[name] for name in episode_length.METRICS_SHOWN]
        assert one.values["lost_elites"] == 1
        assert found["by_count"]["2"] == pytest.approx(values)
        assert found["by_fill"][str(len(one.fitness))] == pytest.approx(values)
        assert found["by_fill"]["1"][0] == pytest.approx(1 / len(one.fitness))  # alone, none is displaced
        placed = PlacedRun(qdbench.load(one.run.path))
        point = placed.run.final_point
        assert point is not None
        again = placed.reevaluations(point)
        cells = [placed.geometry.cells(where) for where in (point.descriptors, again.descriptors[:, 0])]
        assert found["by_count"]["1"][2] == np.mean(cells[0] == cells[1])
    every = episode_length.found_in(tmp_path / "runs")
    for numbers in (episode_length.over(every, name) for name in ("by_fill", "by_count")):
        assert not any(np.isnan(value.mean) for values in numbers[30].values() for value in values)
    assert 1 in episode_length.over(every, "by_fill")[30]
    every[30][0]["by_fill"].pop("1")
    assert 1 not in episode_length.over(every, "by_fill")[30]  # not all replications have it


def test_the_paper_s_experiment_goes_on_from_the_reference_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shipped seeds are not made again; those made here count as long as their metrics were kept."""
    parser = campaign.run_and_table(None, paper_experiment.run, paper_experiment.table, kept.keep)
    here, there, files = tmp_path / "here", tmp_path / "there", tmp_path / "kept"
    monkeypatch.setattr(paper_experiment, "SCALE", TINY)
    monkeypatch.setattr(paper_experiment, "shipped", lambda task: {})
    run(parser, "run", there, "--seeds", "0-1")
    shipped = kept.of_runs(there / "ant_omni")
    monkeypatch.setattr(paper_experiment, "shipped", lambda task: shipped)
    monkeypatch.setattr(paper_experiment, "SCALE", replace(TINY, more_replications=(("map_elites", 4),)))
    capsys.readouterr()
    run(parser, "run", here, "--seeds", "0-9")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("map_elites/seed-")[2].split(":")[0] for line in lines] == ["2", "3"]
    table(parser, tmp_path / "nowhere")
    assert capsys.readouterr().out.endswith("Seeds to be made: map_elites: 2\n")
    assert campaign.command(parser, ["keep", "--runs", str(here), "--kept", str(files)]) == 0
    capsys.readouterr()
    table(parser, tmp_path / "nowhere", "--kept", str(files))
    assert "Seeds to be made" not in capsys.readouterr().out
    found = paper_experiment.replications(tmp_path / "nowhere", files)
    assert [len(columns["coverage"]) for columns in found.values()] == [4, 2, 2, 2]
    places = [(there if seed < 2 else here) / f"ant_omni/map_elites/seed-{seed}" for seed in range(4)]
    made = [qdbench.load(path) for path in places]
    assert found["map_elites"]["coverage"].tolist() == [one.metrics["coverage"][-1] for one in made]
    shipped["task"]["evaluations"] += 1
    assert campaign.command(parser, ["table", "--runs", str(here)]) == 2
    assert "another task or size: evaluations 97, here 96" in capsys.readouterr().err


def test_the_docs_show_the_paper_s_experiment_as_it_is(tmp_path: Path) -> None:
    found = paper_experiment.replications(tmp_path, ROOT / "studies/data/paper_experiment")
    assert paper_experiment.as_tables(found) in (ROOT / "docs/reproduction.md").read_text()


def test_shipped_results_are_read_like_kept_ones() -> None:
    known = kept.shipped("ant_omni")
    file = json.loads((SHIPPED / "standard-v1/ant_omni/map_elites.json").read_text())
    at = file["metrics"].index("return_rate")
    values = [run["return_rate"] for run in known["runs"]["map_elites"].values()]
    assert values == [run["values"][at] for run in file["runs"]]
    assert known["task"]["evaluations"] == 10_240
    assert known["task"]["score_interval"] == file["facts"]["score_interval"]
    assert kept.shipped("arm") == {}


def test_one_folder_that_cannot_be_kept_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, hidden in (("a", (4,)), ("b", (5,))):
        task = qdbench.make("hopper_uni", episode_length=5, hidden=hidden)
        qdbench.run(task, "random_search", evaluations=24, out=tmp_path / "runs" / name, batch_size=24)
    other = qdbench.make("hopper_uni", episode_length=6, hidden=(4,))
    qdbench.run(other, "map_elites", evaluations=24, out=tmp_path / "runs/a", batch_size=24)
    parser = campaign.run_and_table(None, network_size.run, network_size.table, kept.keep)
    chosen = ["keep", "--runs", str(tmp_path / "runs"), "--kept", str(tmp_path / "kept")]
    assert campaign.command(parser, chosen) == 1
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["b.json"]
    assert "runs/a: " in capsys.readouterr().err


def test_files_read_without_the_task_give_the_same_numbers(tiny: Path) -> None:
    """The names in the files are still those that the study of the old versions reads."""
    (old,) = before.summary(tiny, ["walker_uni"], [0, 1]).values()
    (new,) = discrimination.summary(tiny, ["walker_uni"], [0, 1]).values()
    assert old["missing"] == ["novelty_search, seed 0"]
    assert old["grid_reached"] == new["grid_reached"]
    names = ("seed", "coverage", "max_fitness", "return_rate", "coverage_growth_since_half")
    for contender in ("map_elites", "random_search", "fitness_search"):  # their archives are on the grid
        for name in names:
            expected = new["contenders"][contender][name]
            assert old["contenders"][contender][name] == pytest.approx(expected, nan_ok=True), name
    for path in (tiny / "walker_uni/map_elites").iterdir():
        found, run = before.OldRun(path), qdbench.load(path)
        assert run.final_point is not None
        archive = PlacedRun(run).corrected(run.final_point)
        order = np.argsort(archive.cells)
        assert found.corrected().cells.tolist() == archive.cells[order].tolist()
        assert found.corrected().fitness == pytest.approx(archive.elites.fitness[order])


def test_old_runs_with_invalid_reevaluations_and_unfinished_ones(tiny: Path, tmp_path: Path) -> None:
    copytree(tiny / "walker_uni/map_elites", tmp_path / "walker_uni/map_elites")
    first, second = (tmp_path / f"walker_uni/map_elites/seed-{seed}" for seed in (0, 1))
    record = json.loads((second / "run.json").read_text())
    (second / "run.json").write_text(json.dumps(record | {"status": "running"}))
    with np.load(first / "corrected.npz") as file:
        arrays = dict(file)
    row = arrays["point_0_rows"][0]
    arrays["fitness"][row, 1] = arrays["descriptors"][row, 1] = np.nan
    np.savez(first / "corrected.npz", **arrays)
    (found,) = before.summary(tmp_path, ["walker_uni"], [0, 1]).values()
    assert "map_elites, seed 1" in found["missing"]
    expected = qdbench.measure(first).tasks[0].measured_runs[0].values
    columns = found["contenders"]["map_elites"]
    assert columns["seed"] == [0]
    assert columns["return_rate"] == [pytest.approx(expected["return_rate"])]
    assert len(before.OldRun(first).corrected().cells) == expected["corrected_coverage"]


def test_the_old_code_makes_the_old_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, told = tmp_path / ".venv/bin/qdbench", tmp_path / "told"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "${{PYTHONPATH-its own}} $3 $4" >> {told}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", "ours")
    chosen = ["--out", str(tmp_path / "runs"), "--tasks", "walker_uni", "--seeds", "0"]
    assert campaign.command(before.parser(), ["run", str(tmp_path), *chosen]) == 0
    algorithms = [contender.algorithm for contender in campaign.CONTENDERS.values()]
    assert told.read_text().splitlines() == [f"its own --algorithm {name}" for name in algorithms]


def test_the_picture_of_before_and_after(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(before, "PICTURED", ("ant_omni",))
    folders = ["--runs", str(tiny), "--after", str(tiny)]
    assert campaign.command(before.parser(), ["picture", *folders, "--png", str(tmp_path / "b.png")]) == 0
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_from_the_command_line_one_sentence_tells_what_is_wrong(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "studies.discrimination",
        "run",
        "--out",
        str(tmp_path / "file"),
        "--tasks",
    ]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([*command, "nothing"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "invalid choice: 'nothing'" in done.stderr
    sizes = ["--evaluations", "256", "--episode-length", "3", "--reevaluations", "2", "--seeds", "7"]
    chosen = ["hopper_uni", "--algorithms", "novelty_search", *sizes]
    done = subprocess.run([*command, *chosen], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = qdbench.load(tmp_path / "file/hopper_uni/examples.novelty_search.NoveltySearch/seed-7").record
    assert (record.totals.evaluations, record.task.options["episode_length"]) == (256, 3)
