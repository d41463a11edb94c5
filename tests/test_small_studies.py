"""The studies of few seeds and of raised scores, at a scale of seconds; their numbers computed again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from qdbench.analysis.measures import PlacedRun, fixed_interval
from qdbench.metrics.robustness import Reevaluations
from studies import few_seeds, raised_scores
from studies.campaign import command


@pytest.mark.parametrize("n", [2, 3])
def test_intervals_of_two_and_three_seeds_reach_from_the_lowest_to_the_highest(n: int) -> None:
    """A resample of only the lowest has a probability of 1/n**n: more than the 2.5 % that are cut off."""
    for i in range(50):
        values = qdbench.stream(i, "seeds").normal(size=n)
        assert few_seeds.mean_held(n, qdbench.stream(i, "seeds")) == (values.min() <= 0 <= values.max())


def test_without_variation_only_a_ratio_within_the_bounds_is_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_seeds, "VARIATION", 1e-6)
    found = [few_seeds.alike(5, ratio, qdbench.stream(0, "alike")) for ratio in (0.86, 0.88, 1.0, 1.14, 1.16)]
    assert found == [False, True, True, True, False]


def test_wrong_truths_are_not_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [qdbench.stream(i, "truth") for i in range(20)]
    assert sum(few_seeds.improvement_held(9, 0.5, rng) for rng in streams) >= 14
    assert sum(few_seeds.score_held(9, True, rng) for rng in streams) >= 14
    monkeypatch.setattr(few_seeds, "holds", lambda truth, ends: ends[0] <= truth + 0.5 <= ends[1])
    assert not any(few_seeds.improvement_held(9, 0.5, rng) for rng in streams)
    assert not any(few_seeds.score_held(9, True, rng) for rng in streams)


def test_every_trial_is_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["few_seeds.py", "--repeats", "4"])
    few_seeds.main()
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == list(few_seeds.TRIALS)
    name = "interval of the mean, 2 seeds"
    held = [few_seeds.mean_held(2, qdbench.stream(0, "few seeds", name, i)) for i in range(4)]
    assert rows[0][1] == f"{np.mean(held):.1%}"


def test_scores_on_cells_of_ones_own_in_plain_numpy(tmp_path: Path) -> None:
    task = qdbench.make(raised_scores.ARM, cells=(9, 9))
    sizes: dict[str, Any] = {"evaluations": 512, "corrections": 1, "reevaluations": 4, "out": tmp_path}
    run = qdbench.run(task, raised_scores.Coarse, **sizes)
    made = run.corrections
    assert made is not None
    best: dict[tuple[int, ...], float] = {}
    back = []
    for row in made.points[-1].rows.tolist():
        thirds = np.clip(3 * made.descriptors[row], 0, 2).astype(int)
        mean = made.descriptors[row].mean(axis=0)
        place = tuple(np.clip(3 * mean, 0, 2).astype(int).tolist())
        best[place] = max(best.get(place, -np.inf), made.fitness[row].mean())
        stored = made.points[-1].descriptors[made.points[-1].rows.tolist().index(row)]
        back += (thirds == np.clip(3 * stored, 0, 2).astype(int)).all(axis=1).tolist()
    low, high = fixed_interval(run)
    score = sum((np.clip(value, low, high) - low) / (high - low) for value in best.values())
    assert raised_scores.on_cells(run, run.geometry) == pytest.approx((score, np.mean(back)))
    usual = qdbench.run(task, "map_elites", **sizes)
    expected = PlacedRun(usual).final(fixed_interval(usual))
    values = expected["corrected_qd_score"], expected["return_rate"]
    assert raised_scores.on_cells(usual, usual.grid) == pytest.approx(values)


def test_cells_where_solutions_are_raise_the_score_on_them_alone(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["cells", "--seeds", "0-1", "--evaluations", "1024", "--workers", "1"]
    assert command(raised_scores.parser(), chosen) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    found = {
        row[0].removeprefix("| "): [float(cell.split()[0].strip("%")) for cell in row[1:5]] for row in rows
    }
    assert found["MapElites"][0] == found["MapElites"][1]
    assert found["Crowded"][0] > found["MapElites"][0] > found["Crowded"][1]
    assert found["Coarse"][2] > 2 * found["MapElites"][2]


def test_one_policy_handed_over_under_many_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    task = qdbench.make("ant_omni", episode_length=20)
    assert isinstance(task, qdbench.RobotTask)
    policy = task.random_solutions(1, qdbench.stream(0, "policy"))[0]
    archive, samples = raised_scores.handed_over(task, policy, 40, 1)
    first = task.evaluate(np.tile(policy, (40, 1)), qdbench.evaluation_seeds(100, 40), workers=1)
    grid = qdbench.Grid(task.descriptor_bounds, task.cells)
    assert sorted(archive.cells) == sorted(set(grid.cells(first.descriptors).tolist()))
    assert samples.fitness.shape == (len(archive), 16)
    few, all_of_them = (
        len(set(grid.cells(samples.descriptors[:, :n].mean(axis=1)).tolist())) for n in (4, 16)
    )
    assert raised_scores.corrected_coverage(grid, samples) == [few, all_of_them]
    sizes = ["--seeds", "0", "--evaluations", "64", "--episode-length", "20", "--workers", "1"]
    assert command(raised_scores.parser(), ["noisy", *sizes]) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("| 100 | ")


def test_the_luck_of_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitness = np.array([[5, 5, 5, 5, 1, 3.0], [4, 4, 4, 4, 9, 9], [9, 9, 9, 9, 9, np.nan]])
    samples = Reevaluations(fitness, np.zeros((3, 6, 2)))
    assert raised_scores.luck(samples) == (5, 2)  # the third is lost
    for n, seed in ((16, 0), (3, 1)):
        out = tmp_path / str(n)
        qdbench.run("arm_noisy_fitness", seed=seed, evaluations=256, corrections=1, reevaluations=n, out=out)
        assert command(raised_scores.parser(), ["lucky", "--runs", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "| arm_noisy_fitness, map_elites, seed 0 | " in shown
    assert "seed 1" not in shown  # too few re-evaluations
