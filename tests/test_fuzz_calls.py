"""The laws of wrong arguments, seeded: Python raises our errors, the command line says one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qdbench
from fuzz_calls import commands, fuzz_commands, fuzz_processes, fuzz_python
from fuzz_targets import file_targets, plain_targets

RESULTS = {"Episode", "Explorer", "StoredArchive", "StoredRun", "TASKS", "Task", "Algorithm"}
"""Public, but nothing that a user calls: what we return, and protocols."""


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder; whatever is written beside it is found."""
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("part", range(4))
def test_python_raises_our_errors_only(inside: Path, part: int) -> None:
    counts, broken = fuzz_python(inside, np.random.default_rng(part), 400)
    assert not broken, "\n".join(broken)
    assert counts.total() == 400
    assert list(inside.parent.iterdir()) == [inside]


@pytest.mark.parametrize("part", range(2))
def test_commands_say_one_sentence(inside: Path, part: int) -> None:
    counts, broken = fuzz_commands(inside, np.random.default_rng(part), 100)
    assert not broken, "\n".join(broken)
    assert counts.total() == 100
    assert list(inside.parent.iterdir()) == [inside]


def test_commands_say_one_sentence_in_a_shell(inside: Path) -> None:
    file_targets(inside)
    broken = fuzz_processes(inside, np.random.default_rng(0), 60)
    assert not broken, "\n".join(broken)


def test_everything_public_is_fuzzed(inside: Path) -> None:
    known = {target.name.split(".")[0].split("(")[0].strip("[]") for target in plain_targets()}
    known |= {target.name.split(".")[0].split("(")[0] for target in file_targets(inside)}
    errors = {name for name in qdbench.__all__ if issubclass(_kind(name), Exception)}
    assert set(qdbench.__all__) - errors - RESULTS <= known
    assert {"run", "verify", "check", "reproduce"} <= set(commands())


def _kind(name: str) -> type:
    found = getattr(qdbench, name)
    return found if isinstance(found, type) else type(found)
