"""`qdbench suite`: an algorithm on several tasks beside reference results, at a scale of seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import InvalidInput, QdbenchError, UnknownName
from qdbench.analysis.measures import final, fixed_interval
from qdbench.analysis.references import MARK
from qdbench.analysis.tables import HEADLINE
from qdbench.cli.suite import suite as suite_command
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.iterations import Iteration
from qdbench.experiments.job import Settings
from qdbench.paper.durations import expected_seconds, in_words
from qdbench.paper.protocol import OFFICIAL, SCALES
from qdbench.paper.references import add_references
from qdbench.paper.suite import entrant, suite_plan
from qdbench.paper.suite_scales import SUITE_SCALES, seeds_kind
from qdbench.store.locks import locked
from studies.campaign import STANDARD
from tiny_suite import SIZE, TASKS, shrink


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two algorithms on two tasks, five seeds each; and reference files of them."""
    out = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        qdbench.suite(("map_elites", "random_search"), tasks=TASKS, out=out, workers=1, replays=False)
        add_references(out / "runs", out / "references")
    return out


def test_own_results_are_shown_beside_the_references(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**more: Any) -> str:
        arguments: dict[str, Any] = {
            "tasks": ["hopper_uni, ant_omni", "walker_uni"],
            "seeds": ["0-1"],
            **more,
        }
        suite_command(
            ["cvt_map_elites"], out=tmp_path / "own", references=made / "references", workers=1, **arguments
        )
        return capsys.readouterr().out

    said = command()
    label = "qdbench suite, quick scale (version 1); only 3 of 9 tasks; only seeds 0-1, a result has 0-4"
    for words in (
        f"{label}: 6 runs of cvt_map_elites",
        "This will take about",
        " were announced",
        f"map_elites{MARK}",
        f"random_search{MARK}",
        "There are no reference results for walker_uni at the quick scale (version 1).",
        "Normalised score",
        "Next: open",
    ):
        assert words in said, words
    for name in ("suite.md", "report.html", "compare.md", "compare.tex", "compare.csv", "figures/suite.png"):
        assert (tmp_path / "own" / name).stat().st_size > 500, name
    assert (tmp_path / "own/suite.md").read_text().startswith(f"# {label}\n")
    assert "only 3 of 9 tasks" in (tmp_path / "own/report.html").read_text()
    runs = sorted((tmp_path / "own/runs").glob("*/*/seed-*"))
    assert len(runs) == 6
    before = [(run / "run.json").stat().st_mtime_ns for run in runs]
    assert "This will take" not in command(replays=False)  # nothing is left to do
    assert [(run / "run.json").stat().st_mtime_ns for run in runs] == before


def test_the_table_and_the_anchors_are_those_of_plain_numpy(made: Path, tmp_path: Path) -> None:
    copytree(made / "runs", tmp_path / "own/runs")
    found = qdbench.suite(
        "map_elites",
        tasks=TASKS,
        out=tmp_path / "own",
        references=made / "references",
        workers=1,
        replays=False,
    )
    table = found.tables[0]
    assert table.columns == ("task", "metric", "map_elites", f"map_elites{MARK}", f"random_search{MARK}")
    assert [row[0] for row in table.rows] == [task for task in TASKS for _ in HEADLINE]
    assert all(row[2] == row[3] for row in table.rows)  # the same runs
    aggregate = found.comparison.aggregate
    assert aggregate is not None
    for task in TASKS:
        stored = [qdbench.load(made / f"runs/{task}/map_elites/seed-{seed}") for seed in range(5)]
        values = [final(run, fixed_interval(run))["corrected_qd_score"] for run in stored]
        assert aggregate.anchors.tasks[task]["corrected_qd_score"].one == pytest.approx(np.mean(values))
    for score in aggregate.scores:
        if score.variant.startswith("map_elites"):
            assert score.mean == pytest.approx(1.0)
    assert found.without_references == ()
    assert {variant.label for _, variant in found.measured.variants} == {"map_elites"}


def test_without_references_own_results_are_shown(tmp_path: Path) -> None:
    said: list[str] = []
    found = qdbench.suite(
        "map_elites", tasks="hopper_uni", seeds=[100], out=tmp_path, workers=1, say=said.append,
        iso_sigma=0.1, name="wide", replays=False,
    )  # fmt: skip
    assert found.label.endswith("only 1 of 9 tasks; tuning with seed 100: not a result to report")
    assert found.without_references == ("hopper_uni",)
    (run,) = tmp_path.glob("runs/*/*/seed-*")
    record = qdbench.load(run).record
    assert run == tmp_path / "runs/hopper_uni/map_elites-wide/seed-100"
    assert record.algorithm.options["iso_sigma"] == 0.1
    assert record.algorithm.options["batch_size"] == SIZE.batch_size
    assert record.target.corrections.points == SIZE.corrections


def test_tuning_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = [entrant("map_elites", {})]
    assert suite_plan(one, "quick").folder == Path("results/suite-quick")
    assert suite_plan(one, "quick", seeds=[100, 101]).folder == Path("results/suite-quick-tuning")
    assert suite_plan(one, "quick").label == "qdbench suite, quick scale (version 1)"


LABELS = {
    (5,): "only seed 5, a result has 0-4",
    (0, 1, 2, 3): "only seeds 0-3, a result has 0-4",
    (0, 1, 2, 3, 4, 5): "seeds 0-5, a result has 0-4 or 0-9",
    (100,): "tuning with seed 100: not a result to report",
    (100, 102): "tuning with seeds 100,102: not a result to report",
}


@pytest.mark.parametrize("seeds", LABELS)
def test_a_label_names_the_seeds(seeds: tuple[int, ...], tmp_path: Path) -> None:
    plan = suite_plan([entrant("map_elites", {})], "quick", seeds=seeds, out=tmp_path)
    assert plan.label == f"qdbench suite, quick scale (version 1); {LABELS[seeds]}"


def test_seeds_add_up_and_those_of_an_earlier_command_are_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*seeds: str) -> str:
        suite_command(
            ["random_search"], tasks=["hopper_uni"], seeds=[*seeds], out=tmp_path, workers=1, replays=False
        )
        return capsys.readouterr().out

    assert "leave them out" not in command("0-1", "3")
    runs = tmp_path / "runs/hopper_uni/random_search"
    assert sorted(path.name for path in runs.iterdir()) == ["seed-0", "seed-1", "seed-3"]
    qdbench.suite("random_search", tasks="hopper_uni", seeds=[100], out=tmp_path, workers=1, replays=False)
    said = command("4")
    assert "only seed 4, a result has 0-4: 1 run of random_search" in said
    sentence = (
        f"{tmp_path}/runs also has finished runs of seeds 0-1,3; these results leave them out. Give --seeds "
        "0-1,3-4 for results of all."
    )
    assert sentence in said
    assert f"- {sentence}\n" in (tmp_path / "suite.md").read_text()
    assert "these results leave them out" in (tmp_path / "report.html").read_text()
    assert "leave them out" not in command("0-1", "3-4")
    assert "leave them out" not in (tmp_path / "suite.md").read_text()


def test_the_rule_of_seeds() -> None:
    quick, paper = SUITE_SCALES["quick"], SUITE_SCALES["paper"]
    assert [seeds_kind(range(n), quick) for n in (4, 5, 6, 10)] == ["some", "reported", "some", "reported"]
    assert [seeds_kind(range(n), paper) for n in (5, 10)] == ["some", "reported"]
    assert seeds_kind([1, 2, 3, 4, 5], quick) == "some"
    assert seeds_kind([10], quick) == seeds_kind([100, 101], quick) == "tuning"
    with pytest.raises(InvalidInput, match="seeds 0 and 100 do not belong together"):
        seeds_kind([0, 100], quick)


def test_the_scales_are_those_of_the_protocol_and_of_the_study() -> None:
    assert list(SUITE_SCALES) == ["quick", "standard", "paper"]
    assert all(list(scale.tasks) == list(qdbench.TASKS) for scale in SUITE_SCALES.values())
    assert SUITE_SCALES["paper"].tasks == OFFICIAL
    standard = SUITE_SCALES["standard"].tasks
    assert {standard[task] for task in standard if task != "ant_omni"} == {STANDARD}
    assert standard["ant_omni"].corrections == SCALES["laptop"].corrections
    for name in ("evaluations", "episode_length", "reevaluations", "batch_size"):
        assert getattr(standard["ant_omni"], name) == getattr(STANDARD, name)


def test_the_announced_time_is_linear_in_runs_and_counts_what_is_left(tmp_path: Path) -> None:
    plan = suite_plan([entrant("map_elites", {})], "quick", "hopper_uni", range(2), tmp_path)
    jobs = plan.jobs()
    known = replace(SUITE_SCALES["quick"], steps={"hopper_uni": 1000.0})
    one = Settings(evaluators=Threads(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qdbench.paper.durations.steps_per_second", lambda task, workers: 100.0)
        assert expected_seconds(known, jobs[:1], one) == {"hopper_uni": 10.0}
        assert expected_seconds(known, jobs, one) == {"hopper_uni": 20.0}
        qdbench.suite("map_elites", tasks="hopper_uni", seeds=[0], out=tmp_path, workers=1, replays=False)
        assert expected_seconds(known, jobs, one) == {"hopper_uni": 10.0}
    assert [in_words(s) for s in (0.2, 60, 600, 9000, 400_000)] == [
        "1 s", "60 s", "10 minutes", "2.5 hours", "5 days",
    ]  # fmt: skip


def test_on_iteration_is_called_for_every_run(tmp_path: Path) -> None:
    told: list[Iteration] = []
    qdbench.suite(
        "map_elites",
        tasks="hopper_uni",
        seeds=[0, 1],
        out=tmp_path,
        workers=1,
        replays=False,
        on_iteration=told.append,
    )
    n = SIZE.evaluations // SIZE.batch_size
    assert [one.run for one in told] == [
        f"hopper_uni/map_elites/seed-{seed}" for seed in (0, 1) for _ in range(n)
    ]
    assert [one.numbers["evaluations"] for one in told[:n]] == [24, 48, 72, 96]


def test_runs_of_another_process_are_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = tmp_path / "runs/hopper_uni/map_elites/seed-0"
    theirs.mkdir(parents=True)
    with locked(theirs):
        suite_command(["map_elites"], tasks=["hopper_uni"], seeds=["0-1"], out=tmp_path, workers=1)
        said = capsys.readouterr()
        assert "1 of 2 runs are in progress elsewhere." in said.out
        assert "in progress elsewhere: " in said.err
        assert not (tmp_path / "suite.md").exists()
        with pytest.raises(QdbenchError, match="in progress elsewhere"):
            qdbench.suite("map_elites", tasks="hopper_uni", seeds=[0, 1], out=tmp_path, workers=1)
    suite_command(["map_elites"], tasks=["hopper_uni"], seeds=["0-1"], out=tmp_path, workers=1, replays=False)
    assert (tmp_path / "suite.md").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"scale": "huge"}, UnknownName, "no scale 'huge'"),
        ({"tasks": "ant_omny"}, UnknownName, "did you mean 'ant_omni'"),
        ({"seeds": []}, InvalidInput, "give whole numbers"),
        ({"seeds": [0, 100]}, InvalidInput, "do not belong together"),
        ({"seeds": 3}, InvalidInput, "give whole numbers"),
        ({"algorithms": "map_elitse"}, UnknownName, "no algorithm"),
        ({"algorithms": []}, InvalidInput, "needs an algorithm"),
        ({"algorithms": ["map_elites", "map_elites"]}, InvalidInput, "given twice"),
        ({"nonsense": 1}, UnknownName, "no option 'nonsense'"),
        ({"references": "nowhere"}, InvalidInput, "not a folder of reference results"),
        ({"on_iteration": 3}, InvalidInput, "on_iteration is 3"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    given: dict[str, Any] = {"algorithms": "map_elites", "out": tmp_path / "out"} | arguments
    with pytest.raises(error, match=words):
        qdbench.suite(**given)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["suite", "map_elites", "--tasks", "ant_omny"],
        ["suite", "nothing"],
        ["suite", "map_elites", "--seeds", "0,100"],
        ["suite", "map_elites", "--references", "nowhere"],
        ["references", "--references", "nowhere"],
        ["references", "add", "nowhere"],
        ["compare", "nowhere", "--references", "nowhere"],
    ],
)
def test_the_command_exits_with_2(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_real_command_at_quick_scale(cli: Cli) -> None:
    """One task and one seed, as a user would; then its files are refused as references, being for tuning."""
    done = cli("suite", "random_search", "--tasks", "hopper_uni", "--seeds", "100", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "tuning with seed 100: not a result to report" in done.stdout
    refused = cli("references", "add", "results/suite-quick-tuning/runs")
    assert refused.returncode == 2
    assert "seed 100 is for tuning" in refused.stderr
    listed = cli("references", "--json")
    assert listed.returncode == 0
    assert '"references"' in listed.stdout
