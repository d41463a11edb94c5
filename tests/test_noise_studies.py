"""The studies of noise, at a scale of seconds."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import qdbench
from studies import ask_tell, known_truth, noise
from studies.campaign import command
from studies.kept import of_runs


def test_the_comparison_of_algorithms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs"
    sizes = ["--evaluations", "900", "--reevaluations", "3", "--seeds", "0-1", "--workers", "1"]
    names = ["map_elites", "me_sampling", "extract_me"]
    chosen = ["--tasks", "arm_noisy_both", "--algorithms", *names, "--k", "4"]
    assert command(noise.parser(), ["run", "--out", str(out), *sizes, *chosen]) == 0
    png, written = tmp_path / "noise.png", tmp_path / "noise.json"
    shown = ["table", "--runs", str(out), "--png", str(png), "--json", str(written)]
    capsys.readouterr()
    assert command(noise.parser(), shown) == 0
    printed = capsys.readouterr().out
    assert png.stat().st_size > 10_000
    found = json.loads(written.read_text())
    assert set(found) == {"arm_noisy_both-100", "arm_noisy_both-25"}
    for grid in (100, 25):
        folder = out / f"arm_noisy_both-{grid}"
        assert len(found[folder.name]) == len(names)
        for variant in qdbench.measure(folder).tasks[0].variants:
            values = [run.values["true_qd_score"] for run in variant.runs]
            shown_values: dict[str, Any] = found[folder.name][variant.label]["true_qd_score"]
            assert shown_values["mean"] == pytest.approx(np.mean(values))
            assert f"{np.mean(values):,.4g}" in printed


def test_the_comparison_on_robots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, png = tmp_path / "runs", tmp_path / "noise.png"
    sizes = ["--evaluations", "512", "--episode-length", "20", "--reevaluations", "2", "--seeds", "0-1"]
    chosen = ["--tasks", "walker_uni", "--algorithms", "map_elites", "me_sampling", "deep_grid", "--k", "8"]
    assert command(noise.parser(), ["run", "--out", str(out), *sizes, *chosen, "--workers", "1"]) == 0
    variants = {one.label: one.runs for one in qdbench.measure(out).tasks[0].variants}
    options = {label: runs[0].run.record.algorithm.options for label, runs in variants.items()}
    assert (options["me_sampling-samples-8"]["samples"], options["deep_grid-depth-8"]["depth"]) == (8, 8)
    capsys.readouterr()
    assert command(noise.parser(), ["table", "--runs", str(out), "--png", str(png)]) == 0
    _, _, _, head, _, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith(
        "| algorithm | QD score | corrected | corrected coverage | loss | minus map_elites |"
    )
    cells = {row.split(" | ")[0].removeprefix("| "): row.split(" | ") for row in rows}
    means = {}
    for label, runs in variants.items():
        names = ("qd_score", "corrected_qd_score", "corrected_coverage", "qd_score_loss")
        means[label] = {name: np.mean([run.values[name] for run in runs]) for name in names}
        shown = [f"{means[label][name]:,.4g} (" for name in names[:3]]
        assert all(map(str.startswith, cells[label][1:4], shown))
        assert cells[label][4].startswith(f"{means[label]['qd_score_loss']:.1%} (")
        ours, base = ([one.values["seconds"] for one in some] for some in (runs, variants["map_elites"]))
        assert cells[label][7].startswith(f"{np.mean(np.divide(ours, base)):.2f} (")
        steps, of_base = (
            [one.run.record.totals.steps for one in some] for some in (runs, variants["map_elites"])
        )
        assert cells[label][6].startswith(f"{np.mean(np.divide(steps, of_base)):.2f} (")
    assert list(cells) == sorted(means, key=lambda label: -means[label]["corrected_qd_score"])
    more = means["deep_grid-depth-8"]["corrected_qd_score"] - means["map_elites"]["corrected_qd_score"]
    assert cells["deep_grid-depth-8"][5].startswith(f"{more:+,.4g} (")
    assert png.stat().st_size > 10_000


def test_runs_of_several_places_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two seeds in one place, kept, and one in another: the table is that of all three."""
    sizes = ["--evaluations", "512", "--episode-length", "10", "--reevaluations", "2"]
    chosen = ["--tasks", "walker_uni", "--algorithms", "map_elites", "me_random", *sizes]
    first, second, kept = tmp_path / "first", tmp_path / "second", tmp_path / "kept"
    for out, seeds, workers in ((first, "0-1", "1"), (second, "2", "2")):
        made = ["run", "--out", str(out), "--seeds", seeds, "--workers", workers]
        assert command(noise.parser(), [*made, *chosen]) == 0
    assert command(noise.parser(), ["keep", "--runs", str(first), "--kept", str(kept)]) == 0
    copytree(first, tmp_path / "both")
    copytree(second, tmp_path / "both", dirs_exist_ok=True)
    found, expected = (noise.read(*where)["walker_uni"] for where in ((second, kept), (tmp_path / "both",)))
    assert found["me_random"]["n"].mean == 3
    for label in expected:
        for name in ("corrected_qd_score", "relative_time", "over"):
            pair = [list(vars(one[label][name]).values()) for one in (found, expected)]
            assert pair[0] == pytest.approx(pair[1], rel=1e-5, abs=1e-6), (label, name)
    capsys.readouterr()
    assert command(noise.parser(), ["table", "--runs", str(tmp_path / "none"), "--kept", str(kept)]) == 0
    assert "| map_elites |" in capsys.readouterr().out
    runs = of_runs(first / "walker_uni")["runs"]
    runs["map_elites"]["0"]["made"]["workers"] = 2
    assert np.isnan(noise.columns(runs)["me_random"]["relative_time"]).tolist() == [True, False]
    runs["me_random"]["1"]["made"]["continued_elsewhere"] = True
    assert np.isnan(noise.columns(runs)["me_random"]["relative_time"]).all()
    assert (
        command(
            noise.parser(),
            [
                "run",
                "--out",
                str(tmp_path / "other"),
                "--seeds",
                "0",
                *chosen[:4],
                *sizes[:3],
                "9",
                *sizes[4:],
            ],
        )
        == 0
    )
    assert command(noise.parser(), ["table", "--runs", str(tmp_path / "other"), "--kept", str(kept)]) == 2
    assert "of another task or size: episode_length 10, here 9" in capsys.readouterr().err


def test_errors_against_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written, png = tmp_path / "truth.json", tmp_path / "truth.png"
    arguments = ["--seeds", "2", "--cells", "25", "--evaluations", "2048"]
    assert known_truth.main([*arguments, "--json", str(written), "--png", str(png)]) == 0
    rows = json.loads(written.read_text())
    assert len(rows) == 2 * 2 * 4 * 4
    assert png.stat().st_size > 10_000
    most = [abs(row["corrected"]) for row in rows if row["n"] == 512 and row["descriptor"] == 0.003]
    assert max(most) < 0.02  # much less noise than a cell is wide
    printed = capsys.readouterr().out
    assert known_truth.main([*arguments, "--json", str(written)]) == 0  # read, not computed
    assert capsys.readouterr().out == printed


def test_the_cost_of_asking_and_telling(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask_tell.main(["--iterations", "4", "--parameters", "20"]) == 0
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name in ask_tell.NAMES)
