"""The paper's experiment from one command, at a scale of seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

import qdbench
from qdbench import InvalidInput
from qdbench.cli import reproduce as command
from qdbench.cli.reproduce import reproduce
from qdbench.experiments import protocol
from qdbench.experiments.corrections import StoredCorrections
from qdbench.experiments.protocol import CONTENDERS, OFFICIAL, SCALES, Scale

TINY = Scale(evaluations=96, episode_length=5, replications=2, corrections=2, reevaluations=2, batch_size=48)


def test_it_runs_corrects_compares_draws_and_judges_and_then_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(protocol.SCALES, "smoke", TINY)
    monkeypatch.setattr("qdbench.report.style.DPI", 50)
    monkeypatch.setattr("qdbench.report.style.FORMATS", ("png",))
    qdbench.run("ant_uni", evaluations=8, batch_size=8, out=tmp_path / "runs")  # somebody's, in the way
    reproduce(scale="smoke", out=tmp_path)
    said = capsys.readouterr().out
    assert "will take about" in said
    assert said.count("UNDECIDED") == 6  # two replications are too few for any verdict
    runs = [tmp_path / "runs/ant_omni" / c.label / f"seed-{s}" for c in CONTENDERS for s in range(2)]
    assert all(len(corrections.snapshots) == 2 for corrections in map(corrections_of, runs))
    for name in ("findings.md", "compare.md", "compare.csv", "report.html", "figures/ant_omni-figure.png"):
        assert (tmp_path / name).stat().st_size > 500, name
    assert "ant_uni" not in (tmp_path / "compare.md").read_text()
    before = [(run / "corrected.npz").stat().st_mtime_ns for run in runs]
    reproduce(scale="smoke", out=tmp_path)
    assert capsys.readouterr().out.count("skipped") == 8
    assert [(run / "corrected.npz").stat().st_mtime_ns for run in runs] == before
    whole = (runs[0] / "archive.npz").read_bytes()
    (runs[0] / "archive.npz").write_bytes(whole[:-200])
    (tmp_path / "findings.md").unlink()
    reproduce(scale="smoke", out=tmp_path)  # without that run
    assert f"{runs[0]}" in capsys.readouterr().err
    assert "too few replications of map_elites (1," in (tmp_path / "findings.md").read_text()


def corrections_of(path: Path) -> StoredCorrections:
    found = qdbench.load(path).corrections
    assert found is not None
    return found


def test_what_is_missing_is_said_before_all_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'qdbench\[plot\]'"):
        reproduce(scale="smoke", out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_protocol_is_that_of_the_paper() -> None:
    assert list(OFFICIAL) == list(qdbench.TASKS)
    paper = SCALES["paper"]
    assert (paper.replications, paper.reevaluations, paper.episode_length) == (10, 50, 1000)
    assert {contender.algorithm for contender in CONTENDERS} == {
        "map_elites",
        "cvt_map_elites",
        "random_search",
    }
