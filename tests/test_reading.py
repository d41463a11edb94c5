"""Results can be read, compared and drawn without what made them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import qdbench
from qdbench import InvalidInput

READ = """
import sys
import qdbench
from qdbench.cli import app

results, out = sys.argv[1:]
measured = qdbench.measure(results)
assert qdbench.compare(measured, out=out).tasks
assert len(qdbench.plot(measured, out=out)) == 18
assert qdbench.report(measured, out=f"{out}/report.html", replays=False).exists()
for command in ("compare", "plot", "report"):
    path = {"compare": out, "plot": out, "report": f"{out}/again.html"}[command]
    without = ["--no-replays"] if command == "report" else []  # robots cannot walk without physics
    app([command, results, "--out", path, *without], standalone_mode=False)
heavy = ("mujoco", "qdbench.tasks", "qdbench.simulation", "qdbench.robots", "qdbench.experiments")
assert not [name for name in sys.modules if name in heavy]
"""


def test_reading_results_needs_neither_mujoco_nor_tasks(noisy_results: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, noisy_results / "noisy2/map_elites", tmp_path],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert {"compare.md", "pairs.csv", "noisy2-figure.pdf", "report.html"} <= names


def test_python_writes_what_the_commands_write(noisy_results: Path, tmp_path: Path) -> None:
    measured = qdbench.measure([noisy_results], tasks="noisy2", on="grid")
    comparison = qdbench.compare(measured)
    assert (comparison.on, comparison.interval, len(comparison.tasks)) == ("grid", "fixed", 1)
    assert comparison == qdbench.compare(noisy_results, on="grid", out=tmp_path / "new")
    assert (tmp_path / "new/compare.csv").stat().st_size > 500
    with pytest.raises(InvalidInput, match="is not a folder, or it is read-only"):
        qdbench.compare(measured, out=tmp_path / "new/compare.csv")
    with pytest.raises(InvalidInput, match="is not a folder, or it is read-only"):
        qdbench.plot(measured, out=tmp_path / "new/compare.csv")
    with pytest.raises(InvalidInput, match=r"must end in .html"):
        qdbench.report(measured, out=tmp_path / "report.pdf")
    with pytest.raises(qdbench.UnknownName, match="no scale 'smoky'; did you mean 'smoke'"):
        qdbench.reproduce("smoky", out=tmp_path / "smoky")


def test_every_run_is_counted_while_measuring(noisy_results: Path) -> None:
    told: list[tuple[int, int]] = []
    qdbench.measure(noisy_results, progress=lambda done, total: told.append((done, total)))
    assert told == [(n, 16) for n in range(1, 17)]
