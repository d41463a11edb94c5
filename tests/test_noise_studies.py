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
            assert f"{np.mean(values):,.0f}" in printed


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
