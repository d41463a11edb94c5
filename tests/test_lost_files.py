"""A finished run whose files were lost, damaged or exchanged: made again exactly, or refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_resuming import ThreeMethods

import qdbench
from conftest import Cli
from fuzz_files import NAMES, Fuzz
from qdbench import QdbenchError
from qdbench.experiments.loop import Loop
from qdbench.store.files import read_json
from running import command, finished, folder, results, rewrite

WITH_STATE_OR_WITHOUT = pytest.mark.parametrize("algorithm", ["map_elites", ThreeMethods])


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


@WITH_STATE_OR_WITHOUT
@pytest.mark.parametrize("way", ["lost", "damaged"])
@pytest.mark.parametrize("name", ["metrics.csv", "archive.npz", "checkpoint.npz"])
def test_what_was_lost_is_made_again(name: str, way: str, algorithm: Any, tmp_path: Path) -> None:
    path = finished(tmp_path, algorithm=algorithm)
    good, expected = files(path), results(path)
    (path / name).unlink()
    if way == "damaged":
        (path / name).write_bytes(good[name][:-1])
    again = finished(tmp_path, algorithm=algorithm)
    assert again == path
    assert results(path) == expected
    assert files(path)["metrics.csv"] == good["metrics.csv"]  # with the times that were measured then
    assert files(path)["told.log"] == good["told.log"]
    longer = finished(tmp_path, algorithm=algorithm, evaluations=192)
    whole = finished(tmp_path / "whole", algorithm=algorithm, evaluations=192)
    assert results(longer) == results(whole)


@WITH_STATE_OR_WITHOUT
@pytest.mark.parametrize("names", list(combinations(["metrics.csv", "archive.npz", "checkpoint.npz"], 2)))
def test_the_log_alone_is_enough(names: tuple[str, ...], algorithm: Any, tmp_path: Path) -> None:
    path = finished(tmp_path, algorithm=algorithm)
    expected = results(path)
    for name in names:
        (path / name).unlink()
    finished(tmp_path, algorithm=algorithm)
    assert results(path) == expected


@WITH_STATE_OR_WITHOUT
@pytest.mark.parametrize("name", ["metrics.csv", "checkpoint.npz"])
def test_without_the_log_the_sentence_says_what_is_lost(name: str, algorithm: Any, tmp_path: Path) -> None:
    path = finished(tmp_path, algorithm=algorithm)
    (path / "told.log").unlink()
    (path / name).unlink()
    before = files(path)
    with pytest.raises(QdbenchError, match=f"{name}.*told.log does not hold the run from its start"):
        finished(tmp_path, algorithm=algorithm, evaluations=192)
    assert {**files(path), "told.log": b""} == {**before, "told.log": b""}


def test_an_archive_is_made_again_without_the_log(tmp_path: Path) -> None:
    path = finished(tmp_path)
    expected = results(path)
    (path / "told.log").unlink()
    (path / "archive.npz").unlink()
    finished(tmp_path)
    assert results(path) == expected


SEVERAL_SAMPLES = ("me_sampling", "extract_me", "adaptive_sampling", "archive_sampling")


@pytest.mark.parametrize("algorithm", SEVERAL_SAMPLES)
@pytest.mark.parametrize("then", ["goes on", "is killed"])
def test_a_run_goes_on_without_its_log(
    algorithm: str, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its checkpoint; also if it is killed before the next one."""
    options: dict[str, Any] = {"samples": 4} if algorithm == "me_sampling" else {}
    expected = results(finished(tmp_path / "whole", algorithm=algorithm, evaluations=960, **options))
    path = finished(tmp_path, algorithm=algorithm, evaluations=480, **options)
    (path / "told.log").unlink()
    if then == "is killed":
        with monkeypatch.context() as patch:
            patch.setattr(Loop, "checkpoint", _killed)
            with pytest.raises(KeyboardInterrupt):
                finished(tmp_path, algorithm=algorithm, evaluations=960, **options)
    assert results(finished(tmp_path, algorithm=algorithm, evaluations=960, **options)) == expected


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_log_that_was_cut_is_simulated_again(tmp_path: Path) -> None:
    path = finished(tmp_path)
    data, expected = files(path), results(path)
    (path / "told.log").write_bytes(data["told.log"][: len(data["told.log"]) // 2])
    (path / "metrics.csv").unlink()
    finished(tmp_path)
    assert results(path) == expected
    seconds = qdbench.load(path).metrics["seconds"]
    assert (np.diff(seconds) > 0).all()


def test_the_commands_exit_code_tells_whether_it_could_be_mended(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    path = folder(bench, "map_elites")
    rows = (path / "metrics.csv").read_bytes()
    (path / "metrics.csv").unlink()
    shown = bench("show", str(path))
    assert shown.returncode == 2
    assert "metrics.csv" in shown.stderr
    mended = bench("resume", "--trust", str(path))
    assert mended.returncode == 0
    assert "finished" in mended.stdout
    assert (path / "metrics.csv").read_bytes() == rows
    (path / "metrics.csv").unlink()
    (path / "told.log").unlink()
    for again in (["resume", "--trust", str(path)], command("map_elites", n=96)):
        failed = bench(*again)
        assert failed.returncode == 1
        assert "does not hold the run from its start" in failed.stderr


def test_a_forged_log_does_not_lead_to_the_run(tmp_path: Path) -> None:
    """The log of a run under the same name and seed, with another function: its elites are others."""
    one, two = (finished(tmp_path / name, algorithm=ThreeMethods) for name in "ab")
    record = read_json(two / "run.json")
    totals = record["totals"] | {"highest_fitness": record["totals"]["highest_fitness"] + 1}
    rewrite(two / "run.json", totals=totals)
    (two / "checkpoint.npz").unlink()
    (two / "archive.npz").unlink()
    with pytest.raises(QdbenchError, match=r"told.log is damaged.*it leads to highest fitness"):
        finished(tmp_path / "b", algorithm=ThreeMethods)
    assert read_json(two / "run.json")["status"] == "finished"
    assert results(one)


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzz]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)  # no power is cut here
        yield Fuzz(tmp_path_factory.mktemp("swapped"))


# of the first run: other seed, other options, other version, other container, without a state, earlier
@pytest.mark.parametrize("other", [1, 2, 3, 4, 6, 7, 8])
def test_files_of_two_runs_never_mix(other: int, fuzz: Fuzz) -> None:
    """Every file, and every pair of files, of another run or an earlier moment."""
    fuzz.violations.clear()
    sample, foreign = fuzz.samples[0], fuzz.foreign[other]
    for names in (*combinations(NAMES, 1), *combinations(NAMES, 2)):
        for act in ("read", "measured", "corrected", "again", "later"):
            fuzz.swap(sample, {name: foreign[name] for name in names}, act)
    assert fuzz.violations == []


def test_an_archive_of_another_episode_length_is_refused(tmp_path: Path) -> None:
    paths = [
        qdbench.run(
            replace(qdbench.TASKS["ant_omni"], episode_length=length), evaluations=4, batch_size=4,
            out=tmp_path / str(length), workers=1,
        ).path
        for length in (5, 6)
    ]  # fmt: skip
    (paths[0] / "archive.npz").write_bytes((paths[1] / "archive.npz").read_bytes())
    with pytest.raises(QdbenchError, match="task options episode_length 6, here 5"):
        qdbench.load(paths[0]).archive  # noqa: B018
