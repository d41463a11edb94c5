"""Options from the command line: of tasks, of one algorithm or several, and as sweeps."""

from __future__ import annotations

import json

import pytest

import qdbench
from conftest import Cli
from qdbench import InvalidInput, UnknownName
from qdbench.experiments.variants import Setting, read_settings, variants
from qdbench.spelling import spelled
from qdbench.tasks.contract import task_options
from qdbench.tasks.options import read_options, remade
from running import command, folder


@pytest.mark.parametrize("name", qdbench.TASKS)
def test_every_option_of_every_task_can_be_written_down_and_read_back(name: str) -> None:
    task = qdbench.TASKS[name]
    options = task_options(task)
    pairs = [f"{option}={spelled(value)}" for option, value in options.items()]
    assert read_options(task, pairs) == options
    assert remade(name, json.loads(json.dumps(options))).fingerprint == task.fingerprint


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("episode_length=250", {"episode_length": 250}),
        ("reset_noise=0", {"reset_noise": 0.0}),
        ("hidden=8", {"hidden": (8,)}),
        ("hidden=256x256", {"hidden": (256, 256)}),
        ("hidden=", {"hidden": ()}),
        ("cells=20x30", {"cells": (20, 30)}),
        ("descriptor_bounds=-5:5", {"descriptor_bounds": ((-5.0, 5.0), (-5.0, 5.0))}),
        ("descriptor_bounds=-5:5x0:1e1", {"descriptor_bounds": ((-5.0, 5.0), (0.0, 10.0))}),
    ],
)
def test_options_of_a_task_are_read_by_their_type(pair: str, expected: dict[str, object]) -> None:
    assert read_options(qdbench.make("ant_omni"), [pair]) == expected


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("episode_lenth=5", "did you mean 'episode_length'"),
        ("episode_length=five", "write it like episode_length=1000"),
        ("cells=5,5", "write it like cells=100x100"),
        ("descriptor_bounds=5", "write it like descriptor_bounds=-29.7:30.3x-29.7:30.3"),
        ("hidden", "is not NAME=VALUE"),
    ],
)
def test_wrong_options_of_a_task_are_told_with_the_cure(pair: str, sentence: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=sentence):
        read_options(qdbench.make("ant_omni"), [pair])


def test_the_command_line_makes_the_task_that_python_makes(cli: Cli) -> None:
    given = ("--task-set", "hidden=8", "--task-set", "cells=7x7", "--task-set", "reset_noise=0")
    done = cli("evaluate", "walker_uni", "--random", "2", *given, "--episode-length", "20", "--json")
    made = qdbench.make("walker_uni", hidden=(8,), cells=(7, 7), reset_noise=0.0, episode_length=20)
    assert json.loads(done.stdout)["fingerprint"] == made.fingerprint
    twice = cli(
        "evaluate", "ant_omni", "--random", "2", "--task-set", "episode_length=3", "--episode-length", "4"
    )
    assert twice.returncode == 2
    assert "episode_length is given twice" in twice.stderr


def test_settings_are_read_for_one_or_for_all() -> None:
    found = read_settings(["iso_sigma=0.1", "my_qd:Sampling.k=4", "map_elites.initial=7,8"])
    assert found == [
        Setting("", "iso_sigma", ("0.1",)),
        Setting("my_qd:Sampling", "k", ("4",)),
        Setting("map_elites", "initial", ("7", "8")),
    ]
    with pytest.raises(InvalidInput, match="is set twice, to '1' and to '2'"):
        read_settings(["k=1", "k=2"])


def test_what_is_set_for_one_algorithm_counts_there_alone() -> None:
    names = ["map_elites", "cvt_map_elites", "random_search"]
    settings = read_settings(["iso_sigma=0.1", "cvt_map_elites.iso_sigma=0.2", "batch_size=32"])
    found = {variant.algorithm: variant for variant in variants(names, settings)}
    assert [found[name].options.get("iso_sigma") for name in names] == [0.1, 0.2, None]
    assert {variant.options["batch_size"] for variant in found.values()} == {32}
    assert found["random_search"].given == {"batch_size": "32"}
    with pytest.raises(UnknownName, match="--set names an algorithm that is not in this command"):
        variants(names, read_settings(["map_elite.iso_sigma=1"]))
    with pytest.raises(UnknownName, match="no option 'iso_sigma'; random_search takes batch_size, init"):
        variants(names, read_settings(["random_search.iso_sigma=1"]))


def test_a_sweep_makes_one_named_variant_for_every_combination(cli: Cli) -> None:
    found = variants(["map_elites"], read_settings(["iso_sigma=0.1,0.2", "line_sigma=0,1", "initial=9"]), "x")
    assert [variant.name for variant in found] == [
        "x-iso_sigma-0.1-line_sigma-0", "x-iso_sigma-0.1-line_sigma-1",
        "x-iso_sigma-0.2-line_sigma-0", "x-iso_sigma-0.2-line_sigma-1",
    ]  # fmt: skip
    assert {variant.options["initial"] for variant in found} == {9}
    assert [variant.options["line_sigma"] for variant in found] == [0.0, 1.0, 0.0, 1.0]
    start = ["run", "qdbench.tasks.sphere:task", "--evaluations", "128", "--batch-size", "64"]
    done = cli(
        *start, "--algorithm", "map_elites", "--algorithm", "random_search", "--set", "iso_sigma=0.1,0.2"
    )
    assert done.returncode == 0, done.stderr
    assert "map_elites-iso_sigma-0.2: iso_sigma=0.2, batch_size=64" in done.stdout
    assert "random_search: batch_size=64" in done.stdout
    for value in (0.1, 0.2):
        run = qdbench.load(cli.folder / f"results/sphere/map_elites-iso_sigma-{value}/seed-0")
        assert run.record.algorithm.options["iso_sigma"] == value
        assert run.record.variant == f"map_elites-iso_sigma-{value}"


def test_a_setting_for_one_algorithm_from_the_command_line(bench: Cli) -> None:
    done = bench(
        *command("map_elites", "--algorithm", "random_search", "--set", "random_search.init=uniform", n=96)
    )
    assert done.returncode == 0, done.stderr
    assert "random_search: batch_size=48, init=uniform" in done.stdout
    assert qdbench.load(folder(bench, "random_search")).record.algorithm.options["init"] == "uniform"
