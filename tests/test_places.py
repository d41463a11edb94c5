"""Folders of new runs: refused, before anything is written, if they cannot be made or hold other options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import qdbench
from conftest import Cli
from qdbench import InvalidInput
from qdbench.experiments.environment import versions
from running import command, finished, folder, results
from toy_runs import edited, toy

HILL = """
from qdbench.algorithms.random_search import RandomSearch

class Hill(RandomSearch):
    def __init__(self, problem, seed, *, sigma: float = 0.05, batch_size: int = 48):
        super().__init__(problem, seed, batch_size=batch_size)
"""


def contents(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


def test_another_seed_with_another_option_value_needs_a_name(bench: Cli) -> None:
    (bench.folder / "my_algorithm.py").write_text(HILL)
    start = ["run", "mine:task", "--algorithm", "my_algorithm:Hill", "--evaluations", "96"]
    assert bench(*start, "--seeds", "0-1", "--set", "sigma=0.02").returncode == 0
    before = contents(bench.folder / "results")
    refused = bench(*start, "--seeds", "5")
    assert refused.returncode == 2
    assert refused.stderr == (
        "qdbench: results/sphere/my_algorithm.Hill has runs with sigma 0.02, here 0.05; give --name to use "
        "another folder\n"
    )
    assert contents(bench.folder / "results") == before
    assert bench(*start, "--seeds", "5", "--set", "sigma=0.02").returncode == 0
    assert bench(*start, "--seeds", "5", "--name", "usual").returncode == 0
    assert bench("compare", "results").returncode == 0


def test_a_suite_refuses_them_too(bench: Cli) -> None:
    start = ("suite", "random_search", "--tasks", "hopper_uni", "--no-replays")
    assert bench(*start, "--seeds", "100", "--set", "init=uniform").returncode == 0
    refused = bench(*start, "--seeds", "101")
    assert refused.returncode == 2
    assert (
        "hopper_uni/random_search has runs with init 'uniform', here 'lecun'; give --name" in refused.stderr
    )
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"options": {"iso_sigma": 0.1}}, "has runs with iso_sigma 0.005, here 0.1; give --name"),
        ({"task": {"cells": (5, 5)}}, r"has runs with task cells \[9, 7\], here \[5, 5\]"),
        ({"task": {"version": 7}}, "has runs with task fingerprint '"),
    ],
)
def test_python_refuses_runs_of_another_variant_beside(
    changed: dict[str, Any], words: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"evaluations": 50, "batch_size": 50, "out": tmp_path}
    qdbench.run(toy("toy_a"), seed=0, **given)
    with pytest.raises(InvalidInput, match=words):
        qdbench.run(toy("toy_a", **changed.get("task", {})), seed=1, **given, **changed.get("options", {}))
    assert [path.name for path in tmp_path.glob("*/*/seed-*")] == ["seed-0"]
    assert qdbench.run(toy("toy_a"), seed=1, **given).status == "finished"


def test_what_has_begun_is_continued_whatever_lies_beside(tmp_path: Path) -> None:
    """As an earlier version made it: two seeds with two values. And another budget is no other variant."""
    first, second = finished(tmp_path, seed=0), finished(tmp_path, seed=1)
    edited(first, algorithm__options__iso_sigma=0.1)
    assert finished(tmp_path, seed=1, evaluations=192) == second
    with pytest.raises(InvalidInput, match=re.escape("iso_sigma 0.1, here 0.005")):
        finished(tmp_path, seed=2)
    edited(first, algorithm__options__iso_sigma=0.005)
    finished(tmp_path, seed=2, evaluations=48)


def test_fingerprints_of_another_mujoco_and_damaged_runs_are_in_nobodys_way(tmp_path: Path) -> None:
    first, damaged = finished(tmp_path, seed=0), finished(tmp_path, seed=1)
    edited(first, task__fingerprint="0123456789abcdef", environments__0__mujoco="0.1")
    (damaged / "run.json").write_text("no record")
    assert qdbench.load(finished(tmp_path, seed=2)).status == "finished"
    edited(first, environments__0__mujoco=versions().mujoco)
    with pytest.raises(InvalidInput, match="task fingerprint '0123456789abcdef'"):
        finished(tmp_path, seed=3)


def test_corrected_runs_with_other_options_name_the_cure_at_once(bench: Cli) -> None:
    correct = ("--corrections", "1", "--reevaluations", "2")
    assert bench(*command("map_elites", *correct, n=96)).returncode == 0
    before = results(folder(bench, "map_elites"))
    refused = bench(*command("map_elites", *correct, "--set", "iso_sigma=0.1", n=96))
    assert refused.returncode == 2
    sentence = "seed-3 holds another run (algorithm options iso_sigma 0.005, here 0.1); give --name"
    assert sentence in refused.stderr
    assert "delete" not in refused.stderr
    assert results(folder(bench, "map_elites")) == before


NO_FOLDERS = {
    "taken.txt": "cannot write into 'taken.txt': it is not a folder; give another --out",
    "taken.txt/below": "cannot write into 'taken.txt': it is not a folder",
    "dangling": "cannot write into 'dangling': it is not a folder",
    "/proc/qdbench": "cannot write into '/proc': No such file or directory; give",
}


@pytest.mark.parametrize("out", NO_FOLDERS)
def test_an_impossible_folder_is_bad_input(out: str, tmp_path: Path, bench: Cli) -> None:
    if out.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("needs /proc, where nobody can make a folder")
    (tmp_path / "taken.txt").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = contents(tmp_path)
    refused = bench(*command("map_elites", "--out", out, n=96))
    assert refused.returncode == 2
    assert NO_FOLDERS[out] in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert [name for name in contents(tmp_path) if "__pycache__" not in name] == before
