"""What results count as comparable by: fingerprints of terms, functions and subclasses."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdbench import FunctionTask, InvalidInput, RobotTask, make, terms
from qdbench.sources import source_digest


def _nan(moment: terms.Moment, **parameters: float) -> NDArray[np.float64]:
    return np.full(len(moment.steps), np.nan)


MODULE = """
from qdbench import terms

def height(moment):
    return {factor} * moment.state.qpos[:, 2]

def reward(version=None):
    return terms.Reward("height", height, limits=(0, 2), version=version)
"""


def edited(folder: Path, monkeypatch: pytest.MonkeyPatch, factor: int) -> Any:
    name = f"terms_of_{factor}"
    monkeypatch.syspath_prepend(str(folder))
    (folder / f"{name}.py").write_text(MODULE.format(factor=factor))
    return import_module(name)


def fingerprint(reward: terms.Reward) -> str:
    return replace(make("ant_omni"), rewards=(reward,)).fingerprint


def test_an_edited_term_changes_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (edited(tmp_path, monkeypatch, factor) for factor in (1, 2))
    assert fingerprint(one.reward()) == fingerprint(one.reward())
    assert fingerprint(one.reward()) != fingerprint(two.reward())
    assert fingerprint(one.reward(version=1)) == fingerprint(two.reward(version=1))
    assert fingerprint(one.reward(version=1)) != fingerprint(one.reward(version=2))
    assert fingerprint(one.reward()) != fingerprint(replace(one.reward(), limits=(0, 3)))


def test_built_in_terms_count_by_name_version_and_parameters() -> None:
    assert terms.torque(0.5).identity() == {
        "kind": "reward", "name": "torque", "parameters": {"weight": 0.5}, "limits": None, "version": 1,
    }  # fmt: skip
    mine = replace(terms.torque(0.5), function=_nan)
    assert mine.identity()["own version"] == 1
    assert fingerprint(mine) != fingerprint(terms.torque(0.5)) != fingerprint(terms.torque(0.6))
    assert fingerprint(terms.torque(1)) == fingerprint(terms.torque(np.float64(1.0)))
    spelt: list[dict[str, Any]] = [
        {"a": 1, "b": (2, 3)},
        {"a": 1.0, "b": [2.0, 3]},
        {"b": np.array([2, 3]), "a": np.float32(1)},
    ]
    assert len({fingerprint(replace(mine, parameters=parameters)) for parameters in spelt}) == 1


def test_code_without_a_source_asks_for_a_version() -> None:
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec("def f(x): return x[:, 0], x[:, :1]", space)
    with pytest.raises(InvalidInput, match=r"cannot read the source of 'f'.*give version=1"):
        source_digest(space["f"])
    facts: dict[str, Any] = {
        "name": "f", "function": space["f"], "n_parameters": 2,
        "descriptor_bounds": ((0, 1),), "cells": (3,), "fitness_bounds": (0, 1),
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="give version=1"):
        FunctionTask(**facts).fingerprint  # noqa: B018
    assert FunctionTask(**facts, version=1).fingerprint


class Louder(RobotTask):
    def random_solutions(self, n: int, generator: np.random.Generator) -> NDArray[np.float32]:
        return 2 * super().random_solutions(n, generator)


def test_a_subclass_does_not_keep_the_fingerprint() -> None:
    plain = make("hopper_uni")
    facts = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    assert RobotTask(**facts).fingerprint == plain.fingerprint
    assert Louder(**facts).fingerprint != plain.fingerprint
