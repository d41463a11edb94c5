"""check_algorithm finds what only another process or a long trial shows; the command says it in one line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import unreliable
from conftest import ROOT, Cli
from qdbench import BrokenAlgorithm, InvalidInput, UnknownName, check_algorithm


@pytest.mark.parametrize(
    "sound", [unreliable.Sound, unreliable.Means, partial(unreliable.Sound, batch_size=3)]
)
def test_sound_algorithms_pass(sound: Any) -> None:
    check_algorithm(sound)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        ("HashSeed", "in another process it asked for other solutions"),
        ("SetOrder", "in another process it asked for other solutions"),
        ("ProcessId", "in another process it asked for other solutions"),
        ("Address", "in another process it asked for other solutions"),
        ("LateProcessId", "in another process it asked for other solutions"),
        ("LateDoubles", "must return a float32 array"),
        ("OnlyHere", "in another process it failed: .*ask.. raised ZeroDivisionError: not here"),
        ("Raises", "tell.. raised KeyError: 'nothing'"),
        ("NegativeMeans", "the fitness of an elite of several samples is not their mean"),
        ("BestOfTwo", "the fitness of an elite of several samples is not their mean"),
        ("OtherSeeds", "an elite's seeds differ from those of its evaluations"),
        ("Exits", r"^tell\(\) raised SystemExit: 0, in iteration 3, at .*unreliable.py:\d+$"),
        ("ExitsAtOnce", "unreliable:ExitsAtOnce cannot be built: SystemExit"),
        ("Positional", r"keyword-only; put sigma after \*: __init__\(self, problem, seed, \*, sigma=...\)$"),
    ],
)
def test_hidden_breaches_are_found(broken: str, sentence: str) -> None:
    with pytest.raises(BrokenAlgorithm, match=sentence):
        check_algorithm(getattr(unreliable, broken))


@pytest.mark.parametrize(("broken", "line"), [("Raises", "KeyError"), ("RaisesInside", "np.linalg.inv")])
def test_the_line_of_the_algorithm_is_named(broken: str, line: str) -> None:
    """Not that of the library it calls."""
    with pytest.raises(BrokenAlgorithm) as found:
        check_algorithm(getattr(unreliable, broken))
    _, _, number = str(found.value).rpartition(f"{Path(unreliable.__file__).name}:")
    assert line in Path(unreliable.__file__).read_text().splitlines()[int(number) - 1]


@pytest.mark.parametrize(
    ("algorithm", "options", "kind", "sentence"),
    [
        (
            unreliable.Positional,
            {"sigma": 0.2},
            InvalidInput,
            "does not take 'sigma': options are keyword-only",
        ),
        ("unreliable:Positional", {"sigma": 0.2}, InvalidInput, "put sigma after"),
        ("unreliable.py:Sound", {}, InvalidInput, "write unreliable:Sound, without .py"),
        (
            "unreliable",
            {},
            UnknownName,
            "no algorithm 'unreliable'; .*; for a class of .* write unreliable:Class",
        ),
        ("/a/mine.py", {}, UnknownName, "for a class of your own in /a/mine.py write mine:Class"),
        ("a/mine.py:Hill", {}, InvalidInput, "write a.mine:Hill, without .py"),
        (3, {}, InvalidInput, "3 is no algorithm"),
        ("map_elites", {"batch_size": "many"}, InvalidInput, "batch_size is 'many'; give int"),
        ("map_elites", {"batch_size": 2.5}, InvalidInput, "batch_size is 2.5; give int"),
        ("random_search", {"init": "x"}, InvalidInput, "init is 'x'; give lecun or uniform"),
        ("map_elites", {"batch": 3}, UnknownName, "did you mean 'batch_size'"),
        (dict, {}, InvalidInput, "has no signature"),
        (lambda: None, {}, BrokenAlgorithm, "cannot be built: TypeError"),
        (lambda problem, seed: None, {}, BrokenAlgorithm, "lacks one of ask, tell and collection"),
    ],
)
def test_wrong_arguments_are_told(algorithm: Any, options: Any, kind: Any, sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        check_algorithm(algorithm, **options)


def test_the_command_checks_an_algorithm(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", "map_elites", "--set", "batch_size=16")
    assert done.returncode == 0, done.stderr
    first, following = done.stdout.splitlines()
    assert first.startswith("map_elites keeps the contract: ")
    assert following.startswith("Next: qdbench run qdbench.tasks.sphere:task --algorithm map_elites ")
    (tmp_path / "unreliable.py").write_text((ROOT / "tests/unreliable.py").read_text())
    refused = {
        ("unreliable:ProcessId",): "in another process it asked for other solutions",
        ("unreliable:Raises",): "tell() raised KeyError",
        ("unreliable:Nothing",): "cannot load the algorithm",
        ("unreliable:Exits",): "tell() raised SystemExit: 0, in iteration 3, at unreliable.py:",
        ("unreliable:ExitsAtOnce",): "cannot be built: SystemExit",
        ("unreliable:Positional",): "options are keyword-only; put sigma after *",
        ("unreliable:Positional", "--set", "sigma=0.3"): "does not take 'sigma': options are keyword-only",
        ("unreliable",): "write unreliable:Class",
        ("map_elite",): "did you mean 'map_elites'",
        ("map_elites", "--set", "batch_size=0"): "batch_size is 0; give 1 or more",
        ("map_elites", "--set", "batch_size=1,2"): "check one at a time",
    }
    for arguments, sentence in refused.items():
        done = cli("check", *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1
