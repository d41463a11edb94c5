"""The studies of noise, at a scale of seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from studies import ask_tell, known_truth, noise
from studies.campaign import command


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
        names = ("qd_score", "corrected_qd_score", "corrected_coverage", "qd_score_loss", "seconds")
        means[label] = {name: np.mean([run.values[name] for run in runs]) for name in names}
        shown = [f"{means[label][name]:,.4g} (" for name in names[:3]]
        assert all(map(str.startswith, cells[label][1:4], shown))
        assert cells[label][4].startswith(f"{means[label]['qd_score_loss']:.1%} (")
        assert cells[label][6].startswith(f"{means[label]['seconds']:,.0f} (")
    assert list(cells) == sorted(means, key=lambda label: -means[label]["corrected_qd_score"])
    more = means["deep_grid-depth-8"]["corrected_qd_score"] - means["map_elites"]["corrected_qd_score"]
    assert cells["deep_grid-depth-8"][5].startswith(f"{more:+,.4g} (")
    assert png.stat().st_size > 10_000
    more_workers = ["run", "--out", str(out), *sizes[:-1], "2", *chosen, "--workers", "2"]
    assert command(noise.parser(), more_workers) == 0
    assert noise.read(out / "walker_uni")["map_elites"]["seconds"].words() == "-"  # not comparable


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
