"""Wrong values and wrong types are one sentence of ours; NumPy's numbers are as good as Python's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from fuzz_targets import BOX, PROBLEM, ROBOT, SPHERE, evaluated
from qdbench import Archive, Evaluated, Grid, InvalidInput, Policy, Problem, Robot, UnknownName, terms


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seed": 3.5}, "the seed is 3.5; give a whole number"),
        ({"evaluations": float("nan")}, "evaluations is nan; give a whole number of 1 or more"),
        ({"evaluations": -5}, "evaluations is -5; give"),
        ({"evaluations": 20.0}, "evaluations is 20.0; give"),
        ({"seconds": "3"}, "seconds is '3'; give a finite number of 0 or more"),
        ({"corrections": -1}, "corrections is -1; give"),
        ({"reevaluations": 0, "corrections": 1}, "reevaluations is 0; give"),
        ({"workers": 1.0}, "workers is 1.0; give"),
        ({"task": 3}, "the task is 3; give a name, module:attribute, or an object"),
        ({"algorithm": None}, "None is no algorithm"),
        ({"out": b"x"}, "out is b'x'; give a path"),
        ({"name": 3}, "name is 3; give text"),
        ({"elsewhere": "no"}, "elsewhere is 'no'; give True or False"),
        ({"batch_size": "x"}, "batch_size is 'x'; give int"),
        ({"iso_sigma": object}, "iso_sigma is <class 'object'>; give float"),
    ],
)
def test_run_says_what_is_wrong(arguments: Any, sentence: str, tmp_path: Path) -> None:
    good = {"task": SPHERE, "evaluations": 8, "out": tmp_path / "results"}
    with pytest.raises(InvalidInput, match=sentence):
        qdbench.run(**{**good, **arguments})
    assert not list(tmp_path.iterdir())


def test_numpy_s_numbers_are_as_good_as_python_s(tmp_path: Path) -> None:
    plain: dict[str, Any] = {
        "seed": 3, "evaluations": 16, "corrections": 1, "reevaluations": 2, "workers": 1, "elsewhere": False,
        "batch_size": 8, "initial": 8, "iso_sigma": 0.5,
    }  # fmt: skip
    kinds: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float32}
    numbers = {name: kinds[type(value)](value) for name, value in plain.items()}
    python = qdbench.run(SPHERE, out=tmp_path, **plain)
    numpy = qdbench.run(SPHERE, out=tmp_path / "numpy", **numbers)
    assert numpy.record.determinants == python.record.determinants
    assert numpy.record.target == python.record.target
    assert np.array_equal(numpy.archive.fitness, python.archive.fitness)
    assert qdbench.load(numpy.path).status == "finished"
    three: Any = np.int64(3)
    assert qdbench.stream(three, np.str_("x")).random() == qdbench.stream(3, "x").random()
    shape: Any = np.array([3, 4])
    assert Grid(np.array(BOX), shape) == Grid(BOX, (3, 4))
    assert qdbench.make("ant_omni", episode_length=three).episode_length == 3
    assert Robot(**{**ROBOT, "physics_steps": three + 1, "control_step": np.float64(0.02)}) == Robot(**ROBOT)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("fitness", np.zeros(2), "differ in length: solutions 3, fitness 2"),
        ("solutions", np.zeros((3, 4)), "solutions is an array of float64; give float32"),
        ("descriptors", np.zeros(3), r"descriptors has the shape \(3,\); give 2 axes"),
        ("evaluations", np.zeros((3, 1)), "evaluations is an array of float64; give int64"),
        ("seeds", np.full((3, 1), -1), "seeds is an array of int64; give uint64"),
        ("seeds", np.zeros((3, 2), np.uint64), "every evaluation has a seed"),
        ("fitness", [[1], [2, 3]], "give an array"),
    ],
)
def test_an_archive_takes_only_whole_rows(column: str, value: Any, sentence: str) -> None:
    archive = Archive(Grid(BOX, (3, 3)), 4)
    with pytest.raises(InvalidInput, match=sentence):
        archive.insert(Evaluated(**{**evaluated(), column: value}))
    assert len(archive) == 0
    assert archive.insert(Evaluated(**{**evaluated(), "evaluations": [[0], [1], [2]]})) == 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Grid(((1, 0),), (3,)), r"\(1.0, 0.0\) must be finite and ascending"),
        (lambda: Grid(BOX, (3,)), "for 1 dimensions"),
        (lambda: Grid(BOX * 2, (2**31 - 1,) * 4), "give fewer than 2"),
        (lambda: Grid(BOX, (3, 3)).cells(np.full((1, 2), np.nan)), "without invalid ones"),
        (lambda: Archive(3, 4), "geometry is 3; give a qdbench.Grid"),  # type: ignore[arg-type]
        (lambda: Archive(Grid(BOX, (3, 3)), -1), "n_parameters is -1"),
        (lambda: Problem(**{**PROBLEM, "fitness_bounds": (1, 1)}), "must be finite and ascending"),
        (lambda: Policy((3,)), "inputs and outputs at least"),
        (lambda: Policy((3, 0)), "sizes is 0"),
        (lambda: terms.Block("x", len, size="3"), "size is '3'"),  # type: ignore[arg-type]
        (lambda: terms.Reward("x", len, limits=(1, 0)), r"limits are \(1, 0\)"),
        (lambda: qdbench.load(3), "the folder of a run is 3; give a path"),  # type: ignore[arg-type]
        (lambda: qdbench.measure([]), "give a folder or several"),
        (lambda: qdbench.correct({}), "runs is {}; give a folder"),  # type: ignore[arg-type]
        (lambda: qdbench.evaluation_seeds(0, 10**18), "n is 10+; give"),
    ],
)
def test_wrong_arguments_are_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()


@pytest.mark.parametrize("name", [None, 3, [], b"ant_omni"])
def test_unknown_names_may_be_of_any_type(name: Any) -> None:
    with pytest.raises(UnknownName, match="no task"):
        qdbench.make(name)
    with pytest.raises(UnknownName, match="no scale"):
        qdbench.reproduce(name)
