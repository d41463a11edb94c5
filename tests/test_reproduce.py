"""The paper's experiment from one command, at a scale of seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import qdbench
from conftest import ROOT
from qdbench import InvalidInput, QdbenchError
from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Geometry
from qdbench.cli.reproduce import reproduce
from qdbench.metrics import robustness
from qdbench.metrics.robustness import Reevaluations
from qdbench.paper import protocol
from qdbench.paper.protocol import CONTENDERS, OFFICIAL, SCALES, Scale
from qdbench.paper.reproduce import jobs_of
from qdbench.paper.reproduce import reproduce as reproduced
from qdbench.store.corrections_file import Corrections
from qdbench.store.locks import locked

TINY = Scale(evaluations=96, episode_length=5, replications=2, corrections=2, reevaluations=2, batch_size=48)


def test_it_runs_corrects_compares_draws_and_judges_and_then_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(protocol.SCALES, "smoke", TINY)
    monkeypatch.setattr("qdbench.reports.style.DPI", 50)
    monkeypatch.setattr("qdbench.reports.style.FORMATS", ("png",))
    qdbench.run("ant_uni", evaluations=8, batch_size=8, out=tmp_path / "runs")  # somebody's, in the way
    reproduce(scale="smoke", out=tmp_path)
    said = capsys.readouterr().out
    assert "will take about" in said
    sentence = "with 2 nothing is judged"  # two replications are too few for any verdict
    assert said.count("UNDECIDED") == 0
    assert said.count(sentence) == 1
    for page in ("findings.md", "report.html"):
        assert (tmp_path / page).read_text().count(sentence) == 1
    runs = [tmp_path / "runs/ant_omni" / c.label / f"seed-{s}" for c in CONTENDERS for s in range(2)]
    assert all(len(corrections.points) == 2 for corrections in map(corrections_of, runs))
    for name in ("compare.md", "compare.csv", "report.html", "figures/ant_omni-figure.png"):
        assert (tmp_path / name).stat().st_size > 500, name
    assert "ant_uni" not in (tmp_path / "compare.md").read_text()
    before = [(run / "corrected.npz").stat().st_mtime_ns for run in runs]
    reproduce(scale="smoke", out=tmp_path, replays=False)
    assert capsys.readouterr().out.count("skipped") == 8
    assert [(run / "corrected.npz").stat().st_mtime_ns for run in runs] == before
    whole = (runs[0] / "corrected.npz").read_bytes()
    place = whole.index(b"fitness.npy") + 400
    changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    (runs[0] / "corrected.npz").write_bytes(changed)
    reproduce(scale="smoke", out=tmp_path, replays=False)  # without that run
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if f"{runs[0]}" in line] == [line for line in told if "skipped:" in line]
    assert len(told) == len(set(told))  # every run that was left out is named once


def test_other_studies_may_share_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same task with other networks, other algorithms, other seeds: none of them is its own."""
    monkeypatch.setitem(protocol.SCALES, "smoke", TINY)
    monkeypatch.setattr("qdbench.reports.style.DPI", 50)
    monkeypatch.setattr("qdbench.reports.style.FORMATS", ("png",))
    small, usual = (qdbench.make("ant_omni", episode_length=5, hidden=hidden) for hidden in ((8,), (64, 64)))
    runs = tmp_path / "runs"
    for task, algorithm, seed, out in (
        (small, "map_elites", 0, runs / "hidden-8"),
        (usual, "me_random", 0, runs),
        (usual, "random_search", 7, runs),
    ):
        qdbench.run(task, algorithm, seed=seed, evaluations=96, batch_size=48, out=out, workers=1)
    theirs = runs / "ant_omni/map_elites/seed-1"
    theirs.mkdir(parents=True)
    with locked(theirs):
        reproduce(scale="smoke", out=tmp_path, replays=False)
        assert "1 of 8 runs are in progress elsewhere." in capsys.readouterr().out
        with pytest.raises(QdbenchError, match="in progress elsewhere"):
            reproduced("smoke", out=tmp_path, workers=1)
    assert not (tmp_path / "findings.md").exists()
    found = reproduced("smoke", out=tmp_path, workers=1, replays=False)
    seeds = {variant.label: [run.seed for run in variant.runs] for _, variant in found.measured.variants}
    assert seeds == {contender.label: [0, 1] for contender in CONTENDERS}
    variants = [runs / "ant_omni" / label for label in seeds]
    assert f"qdbench compare {' '.join(map(str, variants))}" in found.page.read_text()


def test_an_archive_is_corrected_no_oftener_than_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = 5
    scale = replace(TINY, replications=1, reevaluations=samples)
    monkeypatch.setitem(protocol.SCALES, "smoke", scale)
    monkeypatch.setattr("qdbench.reports.style.DPI", 50)
    monkeypatch.setattr("qdbench.reports.style.FORMATS", ("png",))
    said: list[str] = []
    built: list[int] = []
    original = robustness.corrected_archive

    def counted(geometry: Geometry, reevaluations: Reevaluations) -> Archive:
        built.append(reevaluations.n_samples)
        return original(geometry, reevaluations)

    for module in ("metrics.robustness", "analysis.measures"):  # all that build one
        monkeypatch.setattr(f"qdbench.{module}.corrected_archive", counted)
    found = reproduced("smoke", out=tmp_path, workers=1, say=said.append)
    n_runs = len(CONTENDERS)
    points = scale.corrections  # the last is the end: with all samples it is not built again
    assert len(built) == n_runs * (points + (samples - 1) + 2)
    assert built.count(samples) == n_runs * points
    assert len(said) == 2
    assert found.findings == ()
    assert "with 1 nothing is judged" in found.why_no_findings
    assert [path.name for path in (found.verdicts, found.page)] == ["findings.md", "report.html"]
    assert {path.parent for path in found.figures} == {tmp_path / "figures"}
    assert found.comparison.tasks[0].task == "ant_omni"


def test_no_other_module_builds_corrected_archives() -> None:
    """Else the count above would miss them."""
    users = [path for path in (ROOT / "src").rglob("*.py") if "corrected_archive(" in path.read_text()]
    users = [path for path in users if path.parent.name != "explorer"]  # builds them when someone looks
    assert sorted(path.stem for path in users) == ["measures", "robustness"]


def test_contenders_may_have_more_replications_than_others(tmp_path: Path) -> None:
    jobs = jobs_of(replace(TINY, more_replications=(("cvt_map_elites", 4),)), tmp_path)
    made = [(job.plan.variant, job.plan.seed) for job in jobs]
    both = [(contender.label, seed) for seed in (0, 1) for contender in CONTENDERS]
    assert made == [*both, ("cvt_map_elites", 2), ("cvt_map_elites", 3)]


def corrections_of(path: Path) -> Corrections:
    found = qdbench.load(path).corrections
    assert found is not None
    return found


def test_what_is_missing_is_said_before_all_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qdbench.reports.style.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'qdbench\[plot\]'"):
        reproduce(scale="smoke", out=tmp_path, replays=False)
    assert not list(tmp_path.iterdir())


def test_the_protocol_is_that_of_the_paper() -> None:
    assert list(OFFICIAL) == list(qdbench.TASKS)
    paper = SCALES["paper"]
    assert (paper.replications, paper.reevaluations, paper.episode_length) == (10, 50, 1000)
    for scale in (paper, SCALES["laptop"]):
        seeds = {contender.label: len(scale.seeds(contender)) for contender in CONTENDERS}
        fewer = scale.replications
        assert list(seeds.values()) == [20, 20, fewer, fewer]
    assert {contender.algorithm for contender in CONTENDERS} == {
        "map_elites",
        "cvt_map_elites",
        "random_search",
    }
