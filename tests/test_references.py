"""Reference results: what is written from runs, what is read back, and what is never mixed in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_shipped_references import require_consistent

import qdbench
from conftest import Cli
from qdbench import DamagedFile, InvalidInput, QdbenchError
from qdbench.analysis.measures import final, fixed_interval
from qdbench.analysis.references import MARK, thinned
from qdbench.cli.compare import compare as compare_command
from qdbench.cli.leaderboard import leaderboard as leaderboard_command
from qdbench.cli.references import _facts, findings
from qdbench.metrics.metric import METRICS
from qdbench.paper.references import add_references, findings_on_references, usable_references
from qdbench.paper.suite_scales import SUITE_SCALES
from qdbench.store.files import read_json, write_json
from qdbench.store.plain import as_json
from qdbench.store.reference_file import REFERENCE_FORMAT, read_reference
from remaking import STATISTICAL, apart, is_same_class, remade
from tiny_suite import CORRECTED, TASKS, shrink

ALGORITHMS = ("map_elites", "random_search")


@pytest.fixture(scope="module")
def tiny() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        yield patch


@pytest.fixture(scope="module")
def runs(tiny: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms on two tasks, five seeds each."""
    out = tmp_path_factory.mktemp("suite")
    qdbench.suite(ALGORITHMS, tasks=TASKS, out=out, workers=1, replays=False)
    return out / "runs"


@pytest.fixture(scope="module")
def shipped(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("references")
    add_references(runs, folder)
    return folder


def rewrite(path: Path, **changes: Any) -> None:
    """Change entries of a reference file, with a checksum that fits."""
    content = read_json(path, version=REFERENCE_FORMAT)
    write_json(path, content | changes, version=REFERENCE_FORMAT, compact=True)


def test_a_file_has_what_the_runs_have(runs: Path, shipped: Path) -> None:
    assert sorted(str(path.relative_to(shipped)) for path in shipped.rglob("*.json")) == sorted(
        f"quick-v1/{task}/{algorithm}.json" for task in TASKS for algorithm in ALGORITHMS
    )
    one = read_reference(shipped / "quick-v1/ant_omni/map_elites.json")
    assert one.where == "quick-v1/ant_omni/map_elites.json"
    assert [run.seed for run in one.runs] == [0, 1, 2, 3, 4]
    assert one.command.startswith("qdbench suite map_elites --scale quick --tasks ant_omni --seeds 0-4 --set")
    assert not one.times_comparable
    for run in one.runs:
        stored = qdbench.load(runs / f"ant_omni/map_elites/seed-{run.seed}")
        values, expected = one.values_of(run), final(stored, fixed_interval(stored))
        assert {name: values[name] for name in METRICS} == pytest.approx(
            {name: expected[name] for name in METRICS}, rel=0, abs=0, nan_ok=True
        )
        assert run.along["evaluations"] == (24, 48, 72, 96)
        assert run.along["qd_score"] == pytest.approx(stored.metrics["qd_score"], rel=1e-8)
        assert run.corrected["evaluations"] == (48, 96)
        for name in CORRECTED:
            assert run.corrected[name.removeprefix("corrected_")][-1] == pytest.approx(values[name])
        record = one.record_of(run)
        assert record.determinants == stored.record.determinants
        assert all(where.host == "" for where in record.environments)  # nobody's business


@given(st.integers(1, 5000))
def test_thinned_curves_keep_both_ends(n: int) -> None:
    chosen = thinned(n)
    assert chosen[0] == 0
    assert chosen[-1] == n - 1
    assert len(chosen) <= 20
    assert (np.diff(chosen) > 0).all()


def test_they_are_compared_with_and_give_the_anchors(runs: Path, shipped: Path) -> None:
    own = [runs / task / "random_search" for task in TASKS]
    found = qdbench.compare(own, references=qdbench.references(shipped))
    for task in found.tasks:
        by_name = {(e.variant, e.metric): e.estimate for e in task.entries}
        for metric in ("corrected_qd_score", "coverage", "qd_score_loss"):
            assert by_name["random_search", metric] == by_name[f"random_search{MARK}", metric]
        assert "seconds" not in {entry.metric for entry in task.entries}
        assert any("reference results, quick scale (version 1)" in note for note in task.notes)
    tested = {(pair.a, pair.b) for pair in found.pairs}
    assert tested == {("random_search", f"{name}{MARK}") for name in ALGORITHMS}  # not among themselves
    assert found.aggregate is not None
    assert found.aggregate.anchors.source == "the reference results"
    for where in TASKS:
        anchor = found.aggregate.anchors.tasks[where]["corrected_qd_score"]
        for mean, name in ((anchor.zero, "random_search"), (anchor.one, "map_elites")):
            stored = [qdbench.load(runs / where / name / f"seed-{seed}") for seed in range(5)]
            scores = [final(run, fixed_interval(run))["corrected_qd_score"] for run in stored]
            assert mean == pytest.approx(np.mean(scores))


def test_anchors_are_not_half_own_and_half_reference(runs: Path, shipped: Path) -> None:
    """Two seeds of one's own; of the references only MAP-Elites, which then is no anchor."""
    own = [runs / task / name / f"seed-{seed}" for task in TASKS for name in ALGORITHMS for seed in (0, 1)]
    only = [one for one in qdbench.references(shipped) if one.variant == "map_elites"]
    found = qdbench.compare(own, references=only).aggregate
    assert found is not None
    alone = qdbench.compare(own).aggregate
    assert alone is not None
    assert found.anchors == alone.anchors


def test_the_command_compares_with_them(
    runs: Path, shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [runs / task / "random_search" for task in TASKS]
    compare_command(own, use_references=True, references=shipped)
    said = capsys.readouterr()
    assert f"map_elites{MARK}" in said.out
    assert "reference results, quick scale (version 1): map_elites (seeds 0-4" in said.err
    compare_command(own)
    assert "reference" not in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="use these"):
        compare_command(own, use_references=True, references=shipped, on="grid")
    with pytest.raises(InvalidInput, match="needs --with-references"):
        compare_command(own, references=shipped)


def changed(shipped: Path, to: Path, **changes: Any) -> Path:
    """Return a copy of the references in which those of ant_omni/map_elites are different."""
    copytree(shipped, to)
    rewrite(to / "quick-v1/ant_omni/map_elites.json", **changes)
    return to


def entry(shipped: Path, name: str) -> Any:
    return read_json(shipped / "quick-v1/ant_omni/map_elites.json", version=REFERENCE_FORMAT)[name]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 99}, "version 99, here"),
        ({"fingerprint": "0" * 16}, "fingerprint '0000000000000000', here"),
        ({"cells": [3, 3]}, r"cells \[3, 3\], here"),
    ],
)
def test_another_task_is_never_mixed_in(
    runs: Path, shipped: Path, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    task_of_file = entry(shipped, "task") | change
    of_file = [run | {"n_cells": prod(task_of_file["cells"])} for run in entry(shipped, "runs")]
    folder = changed(shipped, tmp_path / "refs", task=task_of_file, runs=of_file)
    found = qdbench.compare(runs / "ant_omni/random_search", references=qdbench.references(folder))
    (task,) = found.tasks
    assert set(task.evaluations) == {"random_search", f"random_search{MARK}"}
    left = "reference map_elites \\(quick scale \\(version 1\\)\\) is left out: "
    assert any(re.search(left + told, note) for note in task.notes)


def test_another_mujoco_is_told(runs: Path, shipped: Path, tmp_path: Path) -> None:
    places = [where | {"mujoco": "9.9.9"} for where in entry(shipped, "environments")]
    other = entry(shipped, "task") | {"fingerprint": "f" * 16}  # it has MuJoCo's version in it
    folder = changed(shipped, tmp_path / "refs", environments=places, task=other)
    found = qdbench.compare(runs / "ant_omni/random_search", references=qdbench.references(folder))
    (task,) = found.tasks
    assert f"map_elites{MARK}" in task.evaluations
    assert any("made with MuJoCo 9.9.9, these runs with" in note for note in task.notes)


def test_another_version_of_the_scale_is_left_out(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, version=2)
    found = usable_references(shipped)
    assert found.found == ()
    assert len(found.problems) == 4
    assert "it is of the quick scale (version 1); this package has version 2" in found.problems[0]


def test_another_budget_has_no_references(runs: Path, shipped: Path, tmp_path: Path) -> None:
    task = qdbench.make("ant_omni", episode_length=10)
    qdbench.run(task, evaluations=48, batch_size=24, out=tmp_path)
    (found,) = qdbench.compare(tmp_path, references=qdbench.references(shipped)).tasks
    assert set(found.evaluations) == {"map_elites"}
    assert "there are no reference results of ant_omni with this budget; there are some of quick scale" in (
        " ".join(found.notes)
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"evaluations": 48}, "evaluations 48, the scale has 96"),
        ({"corrections": 1}, "correction points 1, the scale has 2"),
        ({"reevaluations": 3}, "re-evaluations 3, the scale has 2"),
        ({"seed": 100}, "seed 100 is for tuning; report seeds 0-4 or 0-9"),
        ({"batch_size": 48}, "batch_size 48, a variant without a name has 24"),
    ],
)
def test_runs_of_no_scale_are_refused(
    tiny: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    task = qdbench.make("hopper_uni", episode_length=10)
    chosen = {"evaluations": 96, "corrections": 2, "reevaluations": 2, "batch_size": 24} | options
    qdbench.run(task, out=tmp_path / "runs", **chosen)
    with pytest.raises(InvalidInput, match=f"is not of the .*: {told}"):
        add_references(tmp_path / "runs", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_changed_tasks_and_own_tasks_are_refused(tiny: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wider = qdbench.make("hopper_uni", episode_length=10, reset_noise=0.5)
    sizes: dict[str, Any] = {"evaluations": 96, "corrections": 2, "reevaluations": 2, "batch_size": 24}
    qdbench.run(wider, out=tmp_path / "wider", **sizes)
    with pytest.raises(InvalidInput, match=r"reset_noise 0\.5, here"):
        add_references(tmp_path / "wider", tmp_path / "to")
    qdbench.run("qdbench.tasks.sphere:task", out=tmp_path / "sphere", **sizes)
    with pytest.raises(InvalidInput, match="sphere is not a task of the suite"):
        add_references(tmp_path / "sphere", tmp_path / "to")


def test_several_machines_make_the_seeds_of_one_file(runs: Path, shipped: Path, tmp_path: Path) -> None:
    variant = runs / "ant_omni/map_elites"
    (path,) = add_references([variant / f"seed-{seed}" for seed in (1, 3)], tmp_path, times_comparable=True)
    here = read_reference(path).environments
    other = as_json(here[0]) | {"cpu": "another"}
    rewrite(path, environments=[other])  # as if these seeds came from there
    assert add_references([variant / f"seed-{seed}" for seed in (0, 3)], tmp_path) == [path]
    add_references([variant / f"seed-{seed}" for seed in (2, 4)], tmp_path)
    joined, whole = read_reference(path), read_reference(shipped / "quick-v1/ant_omni/map_elites.json")
    made_on = [[joined.environments[place].cpu for place in run.ran_on] for run in joined.runs]
    usual = [here[0].cpu]
    assert made_on == [usual, ["another"], usual, usual, usual]  # seed 3 was made again
    assert [replace(run, ran_on=(0,)) for run in joined.runs] == [
        replace(run, ran_on=(0,)) for run in whole.runs
    ]
    assert len(joined.environments) == 2
    assert not joined.times_comparable
    assert joined.command == whole.command
    own = [runs / task / "random_search" for task in TASKS]
    assert qdbench.compare(own, references=[joined]).pairs

    content = read_json(path, version=REFERENCE_FORMAT)
    rewrite(path, facts=content["facts"] | {"score_interval": [0.0, 1.0]})
    with pytest.raises(
        InvalidInput, match=r"another task: facts score_interval .* give the runs of all its seeds"
    ):
        add_references(variant / "seed-0", tmp_path)
    add_references(variant, tmp_path)  # all seeds again
    assert read_reference(path).facts == whole.facts


DAMAGE: list[tuple[str, Any]] = [
    ("metrics", ["coverage"]),
    ("metrics", ["nonsense"]),
    ("runs", []),
    ("runs", [1]),
    ("scale", {"name": "../up", "version": 1, "protocol": 2}),
    ("scale", {"name": "quick", "version": 0, "protocol": 2}),
    ("environments", []),
    ("command", "x" * 10_000),
    ("times_comparable", 1),
    ("unknown", 1),
    ("task", None),
]


@pytest.mark.parametrize(("name", "value"), DAMAGE)
def test_what_cannot_be_is_not_used(shipped: Path, tmp_path: Path, name: str, value: Any) -> None:
    path = changed(shipped, tmp_path / "refs", **{name: value}) / "quick-v1/ant_omni/map_elites.json"
    with pytest.raises(QdbenchError):
        read_reference(path)
    found = usable_references(tmp_path / "refs")
    assert len(found.found) == 3
    assert any(str(path) in sentence for sentence in found.problems)


@pytest.mark.parametrize("column", ["along", "corrected"])
@pytest.mark.parametrize("value", [1e300, -5.0, None])
def test_finals_follow_from_curves(shipped: Path, tmp_path: Path, column: str, value: float | None) -> None:
    runs = entry(shipped, "runs")
    runs[0][column]["qd_score"][-1] = value
    path = changed(shipped, tmp_path / "refs", runs=runs) / "quick-v1/ant_omni/map_elites.json"
    with pytest.raises(DamagedFile, match=r"its final|too large"):
        read_reference(path)


def test_numbers_values_and_seeds_must_fit(shipped: Path, tmp_path: Path) -> None:
    for i, change in enumerate(
        (
            {"values": [0.0]},
            {"seed": 3},
            {"ran_on": [7]},
            {"archive": "heap"},
            {"n_cells": 0},
            {"n_cells": 2},
            {"archive": "unstructured", "n_cells": None},
            {"along": {}},
            {"totals": {}},
        )
    ):
        runs = entry(shipped, "runs")
        runs[0] |= change
        folder = changed(shipped, tmp_path / str(i), runs=runs)
        with pytest.raises(QdbenchError):
            read_reference(folder / "quick-v1/ant_omni/map_elites.json")


@given(st.integers(0, 8000), st.integers(1, 255))
def test_a_flipped_byte_is_noticed(shipped: Path, place: int, flip: int) -> None:
    path = shipped / "quick-v1/hopper_uni/map_elites.json"
    whole = path.read_bytes()
    place %= len(whole)
    other = path.with_name("other.json")
    other.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
    try:
        found = read_reference(other)
    except QdbenchError as error:
        told = str(error)
    else:  # white space between the numbers
        told = str(other)
        assert as_json(found) == as_json(read_reference(path))
    finally:
        other.unlink()
    assert "other.json" in told


def test_a_file_in_the_wrong_place_is_not_used(shipped: Path, tmp_path: Path) -> None:
    copytree(shipped, tmp_path / "refs")
    wrong = tmp_path / "refs/quick-v1/hopper_uni/cvt_map_elites.json"
    (tmp_path / "refs/quick-v1/ant_omni/map_elites.json").rename(wrong)
    found = usable_references(tmp_path / "refs")
    assert len(found.found) == 3
    assert "what it holds belongs to quick-v1/ant_omni/map_elites.json" in found.problems[0]
    with pytest.raises(InvalidInput, match="is not a folder of reference results"):
        usable_references(tmp_path / "nowhere")


def test_the_list_has_all_provenance(shipped: Path) -> None:
    facts = _facts(read_reference(shipped / "quick-v1/ant_omni/map_elites.json"))
    for name in ("scale", "task", "qdbench", "mujoco", "numpy", "cpu", "date", "command"):
        assert facts[name], name
    assert facts["times_comparable"] is False
    assert facts["seeds"] == "0-4"


def test_a_run_made_again_is_the_same_and_another_is_not(shipped: Path, tmp_path: Path) -> None:
    one = read_reference(shipped / "quick-v1/hopper_uni/map_elites.json")
    first, second = one.runs[:2]
    assert is_same_class(one, first)
    found = remade(one, first, tmp_path)
    for exactly in (True, False):
        assert apart(one, first, found, exactly=exactly) == {}
    assert "qd_score" in apart(one, second, found, exactly=True)
    far = {name: 2 * value for name, value in found.items()}
    assert set(apart(one, first, far, exactly=False)) == set(STATISTICAL)


def test_the_paper_s_findings_are_judged_on_references(
    shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUITE_SCALES, "standard", replace(SUITE_SCALES["quick"], name="standard"))
    assert findings_on_references(usable_references(shipped)).why_none.startswith(
        "The paper's findings are not"
    )
    for path in (shipped / "quick-v1/ant_omni").iterdir():
        to = tmp_path / f"standard-v1/ant_omni/{path.name}"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(path.read_bytes())
        rewrite(to, scale={"name": "standard", "version": 1, "protocol": 2})
    found = findings_on_references(usable_references(tmp_path))
    assert not found.why_none
    verdicts = {one.claim: one.verdict for one in found.findings}
    assert "undecided" in verdicts.values()  # there are no results of CVT-MAP-Elites
    findings(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The paper's findings on ant_omni, standard scale (version 1), seeds 0-4"
    assert lines[1:-1] == [f"{verdict:<14}{claim}" for claim, verdict in verdicts.items()]
    findings(tmp_path, numbers=True)
    long = capsys.readouterr().out
    assert all(sentence in long for one in found.findings for sentence in (one.criterion, *one.numbers))
    findings(tmp_path, as_json=True)
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)["findings"]] == [*verdicts.values()]


OLD: dict[str, dict[str, Any]] = {
    "version 1, here 2": {"task": {"version": 1}},
    "fingerprint '0000', here ": {"task": {"fingerprint": "0000"}},
    "score interval [0.0, 9.0], here": {"facts": {"score_interval": [0.0, 9.0]}},
    "it is of protocol 1; this package has": {"scale": {"protocol": 1}},
}


@pytest.mark.parametrize("told", OLD)
def test_results_of_another_task_are_in_no_table(
    shipped: Path, tmp_path: Path, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in the leaderboard, nor in the findings; both say why."""
    copytree(shipped, tmp_path / "refs")
    path = tmp_path / "refs/quick-v1/hopper_uni/random_search.json"
    for name, changes in OLD[told].items():
        rewrite(path, **{name: read_json(path, version=REFERENCE_FORMAT)[name] | changes})
    leaderboard_command(folder=tmp_path / "refs")
    said = capsys.readouterr()
    row = next(line for line in said.out.splitlines() if line.startswith("hopper_uni"))
    assert "-" in row.split()[1:]
    assert f"hopper_uni/random_search.json was not used: {told}" in said.err
    findings(tmp_path / "refs")
    assert told in capsys.readouterr().err


def test_nobody_moves_the_anchors(
    shipped: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of one's own under the name of a shipped one is not used, and named."""
    other = changed(shipped, tmp_path / "other", command="mine")
    monkeypatch.setattr("qdbench.paper.references.SHIPPED", shipped)
    found = usable_references(other)
    assert {one.command for one in found.found if one.variant == "map_elites"} & {"mine"} == set()
    assert f"{other}/quick-v1/ant_omni/map_elites.json was not used: there are results of that name" in (
        " ".join(found.problems)
    )
    (empty,) = usable_references(other / "quick-v1").problems
    assert empty.endswith("has no reference results; files are in SCALE/TASK below it")


def test_options_that_are_not_the_defaults_need_a_name(
    tiny: pytest.MonkeyPatch, shipped: Path, tmp_path: Path
) -> None:
    task = qdbench.make("hopper_uni", episode_length=10)
    sizes: dict[str, Any] = {"evaluations": 96, "corrections": 2, "reevaluations": 2, "batch_size": 24}
    qdbench.run(task, out=tmp_path / "a", iso_sigma=0.5, **sizes)
    with pytest.raises(InvalidInput, match=r"iso_sigma 0\.5, a variant without a name has 0\.005"):
        add_references(tmp_path / "a", tmp_path / "to")
    for sigma in (0.5, 0.1):
        qdbench.run(task, out=tmp_path / f"b{sigma}", name="wide", iso_sigma=sigma, **sizes)
    (path,) = add_references(tmp_path / "b0.5", tmp_path / "to")
    with pytest.raises(InvalidInput, match=r"has other options: iso_sigma 0\.5, here 0\.1"):
        add_references(tmp_path / "b0.1", tmp_path / "to")
    assert read_reference(path).algorithm.options["iso_sigma"] == 0.5
    copytree(shipped / "quick-v1", tmp_path / "to/quick-v1", dirs_exist_ok=True)
    notes = qdbench.leaderboard("quick", references=tmp_path / "to").notes
    assert "not all seeds: map_elites-wide on hopper_uni: seeds 0" in notes


def test_options_of_the_list_are_refused_before_a_sub_command(cli: Cli) -> None:
    done = cli("references", "--json", "findings")
    assert done.returncode == 2
    assert done.stderr.startswith("qdbench: options of the list come without a sub-command")


def test_the_check_of_shipped_files_notices_what_does_not_follow(shipped: Path) -> None:
    raw = json.loads((shipped / "quick-v1/hopper_uni/map_elites.json").read_text())
    run = raw["runs"][0]
    values = dict(zip(raw["metrics"], run["values"], strict=True))
    require_consistent(values, run)
    for name in ("qd_score", "corrected_coverage", "qd_score_loss"):
        with pytest.raises(AssertionError):
            require_consistent(values | {name: values[name] + 0.5}, run)


def test_the_leaderboard_has_every_task_and_algorithm_and_the_best_first(shipped: Path) -> None:
    found = qdbench.leaderboard("quick", references=shipped)
    by_task = {row[0].strip("*`"): row[1:] for row in found.rows}
    assert list(by_task) in (list(TASKS), ["all", *TASKS])
    for task in TASKS:
        scores = {}
        for column, algorithm in enumerate(found.algorithms):
            one = read_reference(shipped / f"quick-v1/{task}/{algorithm}.json")
            values = sorted(one.values_of(run)["corrected_qd_score"] for run in one.runs)
            scores[algorithm] = np.mean(values[1:-1])  # five seeds: one fifth off either end
            shown = by_task[task][column].split()[0].strip("*")
            assert float(shown) == pytest.approx(scores[algorithm], rel=0.01)
            (number,) = (e for e in found.entries if (e.task, e.algorithm) == (task, algorithm))
            assert number.value == pytest.approx(scores[algorithm])
            assert number.low <= number.value <= number.high
        bold = [name for name, cell in zip(found.algorithms, by_task[task], strict=True) if "**" in cell]
        assert bold == [max(scores, key=lambda name: scores[name])]
    assert any("no reference results yet: " in note and "walker_uni" in note for note in found.notes)
    lines = found.markdown().splitlines()
    assert sum(line.startswith("| `") for line in lines) == len(TASKS)
    with pytest.raises(InvalidInput, match="there are no reference results of the standard scale"):
        qdbench.leaderboard("standard", references=shipped)
    with pytest.raises(QdbenchError, match="did you mean 'quick'"):
        qdbench.leaderboard("quik")
