"""What `qdbench compare` prints and writes, read back."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from conftest import Cli
from qdbench import load
from qdbench.analysis import table_files
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.paper_table import ESCAPED, latex
from qdbench.analysis.tables import by_algorithm, headline, in_brief, what_is_needed
from qdbench.cli import main, terminal
from qdbench.metrics.metric import METRICS
from toy_runs import ALGORITHMS, BOUNDS, TASKS, edited, entries, make, make_all, toy


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("comparison") / "results")


@pytest.fixture(scope="module")
def comparison(results: Path) -> Comparison:
    return compare([results])


CELLS = re.compile(r"(?<!\\)\|")


def parsed(text: str) -> float:
    """Return the number that a cell shows."""
    if text.endswith("%"):
        return float(text[:-1]) / 100
    return float(text.replace(",", ""))


def table_rows(found: Comparison) -> list[list[str]]:
    """Return the rows of all tables of compare.md, as its reader sees them."""
    lines = [line for line in table_files.markdown(found).splitlines() if line.startswith("| ")]
    cells = [CELLS.split(line)[1:-1] for line in lines]
    plain = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in cells]
    return [row for row in plain if row[0] != "---"]


def check_rows(rows: Sequence[Sequence[str]], found: Comparison) -> None:
    names = {metric.title: metric.name for metric in METRICS.values()}
    start = [i for i, row in enumerate(rows) if row[:2] == ["metric", "algorithm"]]
    wanted = iter(entries(found))
    for begin in start:
        metric = ""
        for row in rows[begin + 1 :]:
            if row[0] not in names and row[0]:
                break
            metric = names.get(row[0], metric)
            entry = next(wanted)
            if row[1] == "all":  # undefined for all of them, for one reason
                others = [next(wanted) for _ in range(len(ALGORITHMS) - 1)]
                assert {e.metric for e in (entry, *others)} == {metric}
                assert not any(e.estimate.n for e in (entry, *others))
                assert row[3:] == ["undefined", "undefined", "-"]
                continue
            assert (row[1], metric) == (entry.variant, entry.metric)
            if entry.estimate.n:
                low, high = row[5].strip("[]").split(", ")
                shown = [parsed(cell) for cell in (row[3], row[4], low, high)]
                true = [entry.estimate.median, entry.estimate.iqm, entry.estimate.low, entry.estimate.high]
                absolute = 0.0051 if metric.endswith("coverage") else 0.000051
                assert shown == pytest.approx(true, rel=1e-4, abs=absolute)
            else:
                assert re.fullmatch(r"0 of 4 \[\w\]", row[2])
                assert row[3:] == ["undefined", "undefined", "-"]
    assert next(wanted, None) is None
    first = next(i for i, row in enumerate(rows) if row[:2] == ["task", "A"])
    tests = rows[first + 1 : first + 1 + len(TASKS) * 3]
    for row, pair in zip(tests, (pair for pair in found.pairs if pair.metric == "coverage"), strict=True):
        assert row[:4] == [pair.task, pair.a, pair.b, "4, 4"]
        assert [float(row[i]) for i in (4, 6, 7)] == pytest.approx(
            [pair.improvement, pair.p, pair.p_holm], abs=0.0051
        )


def test_markdown_holds_the_numbers(comparison: Comparison) -> None:
    check_rows(table_rows(comparison), comparison)
    text = table_files.markdown(comparison)
    for words in ("Exploratory: displacement", "QD score on the fixed interval", "All 2 tasks"):
        assert words in text


@pytest.mark.parametrize("name", ["a|b_c", "50%&$#{x}~^\\", "*it*`s`<b>[x]"])
def test_special_characters_stay_what_they_are(name: str, tmp_path: Path) -> None:
    make(tmp_path / "run", toy("toy_a"), name=name)
    found = compare([tmp_path])
    rows = table_rows(found)
    assert rows[1][1] == f"map_elites-{name}"
    assert all(len(row) == 6 for row in rows)
    tex = "".join(ESCAPED.get(character, character) for character in f"map_elites-{name}")
    assert f"Task & {tex} \\\\" in latex(found).splitlines()
    (row, *_) = csv.DictReader(table_files.estimates_csv(found).splitlines())
    assert row["variant"] == f"map_elites-{name}"


def test_csv_keeps_every_digit(comparison: Comparison) -> None:
    rows = list(csv.DictReader(table_files.estimates_csv(comparison).splitlines()))
    for row, entry in zip(rows, entries(comparison), strict=True):
        found = entry.estimate
        assert (row["task"], row["variant"], row["metric"]) == (entry.task, entry.variant, entry.metric)
        assert (row["n"], row["ci_of"], row["evaluations"]) == (str(found.n), "iqm", "200.0")
        numbers = {
            "median": found.median, "iqm": found.iqm, "mean": found.mean, "ci_low": found.low,
            "ci_high": found.high,
        }  # fmt: skip
        for column, value in numbers.items():
            assert row[column] == "" if np.isnan(value) else float(row[column]) == value
        assert [row[column] for column in table_files.MEASURED_BY] == ["-2.0", "12.0", "own"]
    over, *_ = pairs = list(csv.DictReader(table_files.pairs_csv(comparison).splitlines()))
    assert comparison.aggregate is not None
    first, *others = comparison.aggregate.pairs
    assert (over["task"], over["endpoint"], over["a"], over["n_a"]) == ("all", "primary", first.a, "8")
    assert [float(over[name]) for name in ("improvement", "p", "p_holm")] == [
        first.improvement, first.p, first.p_holm,
    ]  # fmt: skip
    for row, pair in zip(pairs[1 + len(others) :], comparison.pairs, strict=True):
        assert row["endpoint"] == "exploratory"
        assert float(row["p"]) == pair.p
        assert float(row["p_holm"]) == pair.p_holm
        assert float(row["improvement"]) == pair.improvement
        assert row["difference"] == ""
        assert [row[column] for column in table_files.MEASURED_BY] == ["-2.0", "12.0", "own"]


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (1234567.8, "qd_score", "1,234,568"),
        (1234.567, "qd_score", "1,234.6"),
        (-0.0123456, "max_fitness", "-0.012346"),
        (1e-7, "max_fitness", "1e-07"),
        (0.0, "seconds", "0"),
        (1234.5, "coverage", "1,234.50"),
        (1234.0, "corrected_coverage", "1,234"),
        (-0.5, "coverage_loss", "-50.00%"),
        (-0.00001, "coverage_loss", "0.00%"),
        (-0.0, "max_fitness", "0"),
    ],
)
def test_numbers_are_shown_with_what_matters(value: float, metric: str, text: str) -> None:
    assert METRICS[metric].format(value) == text


# The command


def test_the_command_writes_prints_and_points_on(cli: Cli, results: Path, comparison: Comparison) -> None:
    shutil.copytree(results, cli.folder / "my results")
    done = cli("compare", "my results", "--out", "new/folder")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for name, write in table_files.FILES.items():
        assert (cli.folder / "new/folder" / name).read_text() == write(comparison)
    assert sorted(path.name for path in (cli.folder / "new/folder").iterdir()) == sorted(table_files.FILES)
    assert "QD score on the fixed interval: toy_a [-2, 12], toy_b [-2, 12]" in done.stdout
    assert "Primary endpoint over tasks: the final corrected QD score" in done.stdout
    (entry,) = entries(comparison, task="toy_b", variant="map_elites", metric="corrected_qd_score")
    assert f"{entry.estimate.iqm:.1f} [{entry.estimate.low:.1f}, " in done.stdout
    assert len(done.stdout.splitlines()) < 45  # all metrics are in the files
    alone = cli("compare", "my results", "--task", "toy_b")
    assert METRICS["qd_score"].format(entry.estimate.iqm) in alone.stdout
    assert "Primary endpoint: the final corrected QD score" in alone.stdout
    assert done.stdout.splitlines()[-1] == "Next: qdbench plot 'my results'"


def test_the_command_shows_what_was_chosen(cli: Cli, results: Path) -> None:
    shutil.copytree(results, cli.folder / "results")
    (cli.folder / "names.txt").write_text("map_elites=ME\n# a remark\ncvt_map_elites=CVT\n")
    chosen = ("--labels", "names.txt", "--labels", "cvt_map_elites=My CVT", "--metrics", "coverage,seconds")
    done = cli("compare", "results", *chosen, "--against", "map_elites", "--out", "tables")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^task +metric +My CVT +ME +map_elites_unstructured$", done.stdout, re.MULTILINE)
    assert re.findall(r"^toy_. +(\w+) ", done.stdout, re.MULTILINE) == ["coverage"] * 2 + ["seconds"] * 2
    rows = list(csv.DictReader((cli.folder / "tables/compare.csv").read_text().splitlines()))
    assert {row["metric"] for row in rows} == {"coverage", "seconds"}
    assert {row["variant"] for row in rows} == {"ME", "My CVT", "map_elites_unstructured"}
    tests = list(csv.DictReader((cli.folder / "tables/pairs.csv").read_text().splitlines()))
    assert {(row["a"], row["b"]) for row in tests} == {("My CVT", "ME"), ("map_elites_unstructured", "ME")}
    assert {row["metric"] for row in tests} == {"coverage", "seconds", "corrected_qd_score"}
    assert {row["metric"] for row in tests if row["task"] == "all"} == {"corrected_qd_score"}


def test_a_wide_table_has_a_narrow_form(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """No number is lost, and no word is broken in a terminal of 80 columns."""
    wide = headline(comparison)
    narrow = by_algorithm(wide)
    first = len(wide.columns) - len(ALGORITHMS)
    cells = {
        (row[0], row[1], a): row[first + i] for row in wide.rows for i, a in enumerate(wide.columns[first:])
    }
    task = ""
    found: dict[tuple[str, str, str], str] = {}
    for row in narrow.rows:
        if not row[0].startswith(" "):
            task = row[0]
        else:
            found |= {
                (task, name, row[0].strip()): cell
                for name, cell in zip(narrow.columns[1:], row[1:], strict=True)
            }
    assert found == cells
    monkeypatch.setattr(terminal.out, "width", 80)
    assert terminal.fits(narrow.columns, narrow.rows)
    assert not terminal.fits(["a" * 40, "b" * 39], [])
    with terminal.out.capture() as printed:
        terminal.out.print(terminal.filled(narrow.columns, narrow.rows))
    words = {word for row in narrow.rows for cell in row for word in cell.split()}
    assert words <= set(printed.get().split())


def test_labels_that_look_like_references_change_no_need(results: Path) -> None:
    """With both sides fixed no number of seeds would ever be enough."""
    plain = what_is_needed(compare(results, tasks="toy_a").pairs)
    labels = {name: f"{name} (reference)" for name in ALGORITHMS}
    assert what_is_needed(compare(results, tasks="toy_a", labels=labels).pairs) == plain
    one = compare(results, tasks="toy_a", labels={"map_elites": "map_elites (reference)"}).pairs
    assert what_is_needed(one)[1] == "of your own"


def test_only_what_matters_is_printed(comparison: Comparison, results: Path) -> None:
    shown = {e.metric for task in in_brief(comparison).tasks for e in task.entries}
    assert shown < {e.metric for task in comparison.tasks for e in task.entries}
    assert {name for name, metric in METRICS.items() if metric.role == "tested"} - {"seconds"} <= shown
    assert "lucky_share" not in shown
    assert "true_coverage" not in shown  # nobody knows it here
    chosen = compare(results, metrics="lucky_share")
    assert in_brief(chosen) == chosen


def test_json_holds_everything(cli: Cli, results: Path, comparison: Comparison) -> None:
    shutil.copytree(results, cli.folder / "results")
    edited(cli.folder / "results/toy_a/map_elites/seed-3", status="stopped")
    done = cli("compare", "results", "--json", "--task", "toy_b", "--task", "toy_a")
    assert done.returncode == 0
    path = "results/toy_a/map_elites/seed-3"
    assert done.stderr.strip() == f"skipped: {path}: its status is stopped"
    printed = json.loads(done.stdout)
    assert printed["skipped"] == [{"run": path, "reason": "its status is stopped"}]
    assert [task["interval"] for task in printed["tasks"]] == [list(BOUNDS)] * 2
    found = {(e["variant"], e["metric"]): e["estimate"] for e in printed["tasks"][1]["entries"]}
    (entry,) = entries(comparison, task="toy_b", variant="map_elites", metric="qd_score_loss")
    assert found["map_elites", "qd_score_loss"]["iqm"] == entry.estimate.iqm
    assert len(printed["pairs"]) == len(comparison.pairs)
    assert len(printed["aggregate"]["pairs"]) == 3
    assert printed["aggregate"]["metrics"] == dict.fromkeys(TASKS, "corrected_qd_score")


def test_a_fitness_outside_the_interval_is_loud(cli: Cli) -> None:
    make(cli.folder / "results/run", toy("narrow", fitness_bounds=(0.0, 10.0)), corrections=0)
    done = cli("compare", "results", "--out", ".")
    assert done.returncode == 0
    assert load(cli.folder / "results/run").record.totals.highest_fitness > 10
    loud = "warning: a fitness of results/run is outside the task's fitness bounds [0, 10]: its values span ["
    assert loud in done.stderr
    assert (
        "**Warning: a fitness of results/run is outside the task's fitness bounds"
        in (cli.folder / "compare.md").read_text()
    )
    n = done.stderr.count("warning: ")
    assert f"% {n} warnings: see compare.md" in (cli.folder / "compare.tex").read_text()
    assert done.stdout.splitlines()[-1] == "Next: qdbench correct results"


BAD_COMMANDS = {
    "'nowhere' is not a folder": ("nowhere",),
    "'empty' holds no run": ("empty",),
    "no run can be used (stopped/a: its status is stopped)": ("stopped",),
    "no task 'toy_'; did you mean 'toy_a'? there are finished runs of toy_a": ("good", "--task", "toy_"),
    "cannot write into 'good/run.json': 'good/run.json' is not a folder, or it is read-only": (
        "good",
        "--out",
        "good/run.json",
    ),
    "cannot write into 'good/run.json/x': ": ("good", "--out", "good/run.json/x"),
    "the runs of toy_a had different budgets: evaluations 200 (good), 250 (longer)": ("good", "longer"),
    "Invalid value for '--interval'": ("good", "--interval", "mine"),
    "no metric 'coverag'; did you mean 'coverage'? use coverage, ": ("good", "--metrics", "qd_score,coverag"),
    "no algorithm 'map_elite'; did you mean 'map_elites'? there are runs of map_elites": (
        "good",
        "--against",
        "map_elite",
    ),
    "no algorithm 'x'; there are runs of map_elites": ("good", "--labels", "x=X"),
    "labels: 'ME' is neither name=Label nor a file with such lines": ("good", "--labels", "ME"),
}


@pytest.mark.parametrize("sentence", BAD_COMMANDS)
def test_bad_input_is_one_line_and_exit_code_2(
    sentence: str,
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("good", "longer", "stopped/a"):
        shutil.copytree(results / "toy_a/map_elites/seed-0", tmp_path / name)
    edited(tmp_path / "longer", target__evaluations=250, seed=1)
    edited(tmp_path / "stopped/a", status="stopped")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["qdbench", "compare", *BAD_COMMANDS[sentence]])
    with pytest.raises(SystemExit) as exit_code:
        main()
    printed = capsys.readouterr()
    assert exit_code.value.code == 2
    assert sentence in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert printed.out == ""
