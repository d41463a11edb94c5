"""One task whose runs cannot be compared does not take down the others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import qdbench
from conftest import Cli
from html_page import parsed
from qdbench import InvalidInput
from toy_runs import edited, entries, make, toy

REASON = "the runs of map_elites on toy_b have different options: batch_size 50 ("


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("left out") / "results"
    for task in ("toy_a", "toy_b"):
        for seed in range(2):
            make(out / task / str(seed), toy(task), seed=seed, corrections=1)
    edited(out / "toy_b/1", algorithm__options__batch_size=25)
    return out


def test_the_task_is_named_and_the_others_are_compared(made: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    measured = qdbench.measure(made, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)
    assert [task.task for task in measured.tasks] == ["toy_a"]
    (one,) = measured.left_out
    assert one.task == "toy_b"
    assert one.reason.startswith(REASON)
    assert measured.warnings == [f"toy_b is left out: {one.reason}"]
    found = qdbench.compare(measured, out=tmp_path)
    assert found.left_out == (one,)
    assert entries(found) == entries(qdbench.compare(made / "toy_a"))
    assert "## Tasks left out" in (tmp_path / "compare.md").read_text()
    assert "% toy_b is left out: the runs of map_elites" in (tmp_path / "compare.tex").read_text()


def test_all_commands_go_on_without_it(made: Path, cli: Cli) -> None:
    shutil.copytree(made, cli.folder / "results")
    done = cli("compare", "results", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"warning: toy_b is left out: {REASON}")
    assert json.loads(done.stdout)["left_out"][0]["task"] == "toy_b"
    done = cli("report", "results", "--out", "page.html")
    assert done.returncode == 0, done.stderr
    assert f"toy_b is left out: {REASON}" in done.stderr
    header = next(parsed((cli.folder / "page.html").read_text()).all("header")).text
    assert f"toy_b is left out: {REASON}" in header
    done = cli("plot", "results", "--out", "figures")
    assert done.returncode == 0, done.stderr
    assert f"toy_b is left out: {REASON}" in done.stderr
    assert {path.name.split("-")[0] for path in (cli.folder / "figures").iterdir()} == {"toy_a"}


def test_if_no_task_is_left_it_is_an_error(made: Path, cli: Cli) -> None:
    with pytest.raises(InvalidInput, match="the runs of map_elites on toy_b have different options"):
        qdbench.compare(made / "toy_b")
    shutil.copytree(made, cli.folder / "results")
    edited(cli.folder / "results/toy_a/1", target__evaluations=300)
    for command in ("compare", "plot", "report"):
        done = cli(command, "results")
        assert done.returncode == 2
        (line,) = done.stderr.strip().splitlines()
        assert "the runs of toy_a had different budgets" in line
        assert line.endswith("; 1 more task cannot be compared")
