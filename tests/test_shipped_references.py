"""Every reference file of the package is sound; and runs made again equal it.

By default only the cheapest tasks are made again; `make references-check` makes all again.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import qdbench
from conftest import ROOT
from qdbench.metrics.metric import CURVES, corrected, loss
from qdbench.paper.references import task_record, usable_references
from qdbench.paper.suite_scales import REPORTED_SEEDS, SUITE_SCALES
from qdbench.store.reference_file import SHIPPED, read_reference
from qdbench.tasks.contract import score_interval
from remaking import apart, is_same_class, remade

README = ROOT / "README.md"
FILES = sorted(SHIPPED.rglob("*.json"))
MOST_BYTES = 3_000_000
CHEAP = ("hopper_uni",)
REMADE = tuple(qdbench.TASKS) if os.environ.get("QDBENCH_REFERENCES") == "all" else CHEAP


def test_all_files_can_be_used_and_are_small(capsys: pytest.CaptureFixture[str]) -> None:
    found = usable_references()
    assert found.problems == ()
    assert len(found.found) == len(FILES)
    assert sum(path.stat().st_size for path in FILES) < MOST_BYTES
    if not FILES:
        with capsys.disabled():
            print("\nno reference results are shipped yet: nothing to check")


@pytest.mark.parametrize("scale", ["quick", "standard"])
def test_the_readme_shows_the_leaderboard_as_it_is(scale: str) -> None:
    found = re.search(f"<!-- leaderboard: {scale} -->\n(.*?)\n<!-- end -->", README.read_text(), re.DOTALL)
    if not any(path.is_relative_to(SHIPPED / f"{scale}-v{SUITE_SCALES[scale].version}") for path in FILES):
        assert found is None  # none is shipped yet
        return
    assert found is not None
    assert found[1] == qdbench.leaderboard(scale).markdown()


@pytest.mark.parametrize("path", FILES or [None], ids=str)
def test_a_file_is_sound_and_says_where_it_comes_from(path: Path | None) -> None:
    if path is None:
        assert not FILES  # none is shipped yet
        return
    one = read_reference(path)
    assert path == SHIPPED / one.where
    scale = SUITE_SCALES[one.scale.name]
    assert one.scale.version == scale.version
    now = task_record(one.task.name, scale.tasks[one.task.name].episode_length)
    assert one.task.version == now.version, "results of an old task: make them again"
    assert one.task.options == now.options
    task = qdbench.make(one.task.name, episode_length=one.task.options["episode_length"])
    assert one.facts.score_interval == score_interval(task), "an old interval: measure the runs again"
    if one.last_environment.mujoco == version("mujoco"):
        assert one.task.fingerprint == now.fingerprint
    assert shlex.split(one.command)[:2] == ["qdbench", "suite"]
    for where in one.environments:
        assert where.host == ""
        assert all((where.qdbench, where.mujoco, where.numpy, where.cpu))
    raw = json.loads(path.read_text())
    for run in raw["runs"]:
        assert run["seed"] < REPORTED_SEEDS
        require_consistent(dict(zip(raw["metrics"], run["values"], strict=True)), run)


def require_consistent(values: dict[str, Any], run: dict[str, Any]) -> None:
    """Finals follow from curves, and losses from finals."""
    for name in CURVES:
        assert values[name] == pytest.approx(run["along"][name][-1])
        assert values[corrected(name)] == pytest.approx(run["corrected"][name][-1])
    for name in ("coverage", "qd_score"):
        before, after, lost = values[name], values[corrected(name)], values[loss(name)]
        if lost is not None and not isnan(lost):
            assert lost == pytest.approx((before - after) / before, abs=1e-9)


@pytest.mark.parametrize("task", REMADE)
def test_a_run_made_again_equals_the_shipped_one(task: str, tmp_path: Path) -> None:
    path = SHIPPED / f"quick-v{SUITE_SCALES['quick'].version}/{task}/map_elites.json"
    if not path.exists():
        assert path not in FILES  # none is shipped yet
        return
    one = read_reference(path)
    run = one.runs[0]
    assert run.seed == 0
    found = remade(one, run, tmp_path)
    assert apart(one, run, found, exactly=is_same_class(one, run)) == {}
