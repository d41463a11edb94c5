"""Files that were damaged, or made elsewhere: named in one sentence, never silently used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qdbench
from conftest import Cli
from qdbench import DamagedFile, QdbenchError, stream
from qdbench.store.files import read_json, write_json
from qdbench.store.folder import RunFolder
from running import command, finished, folder, results, rewrite, wait_for_rows


def damages(data: bytes) -> list[bytes]:
    """Cut short, made longer, and with single bits flipped."""
    rng = stream(0, "damage")
    places = rng.integers(len(data), size=40).tolist()
    flipped = [data[:i] + bytes([data[i] ^ (1 << (i % 8))]) + data[i + 1 :] for i in places]
    return [data[:-1], data[: len(data) // 2], b"", data + b"1,2\n", *flipped]


def read(path: Path, name: str) -> Any:
    """Read one file of a run."""
    record = qdbench.load(path).record
    if name == "checkpoint.npz":
        return repr(RunFolder(path).read_checkpoint(record.determinants))
    return results(path)


@pytest.mark.parametrize("name", ["run.json", "metrics.csv", "archive.npz", "checkpoint.npz"])
def test_damaged_files_are_named_and_never_used(name: str, tmp_path: Path) -> None:
    """Either the damage is noticed, or it hit a byte that means nothing (such as a time in a zip file).

    Running again makes all but run.json again; the results are those of the run that was never damaged.
    """
    path = finished(tmp_path)
    good = {file.name: file.read_bytes() for file in path.iterdir()}
    as_read = read(path, name)
    target = 192 if name == "checkpoint.npz" else 96
    expected = results(finished(tmp_path, evaluations=target))
    noticed = mended = 0
    for damaged in damages(good[name]):
        for file, data in good.items():
            (path / file).write_bytes(data)
        (path / name).write_bytes(damaged)
        sentence = complaint(lambda: read(path, name), as_read)
        if sentence is not None:
            noticed += 1
            assert name in sentence
            assert "was not used" in sentence
            assert "\n" not in sentence
        refused = complaint(lambda: results(finished(tmp_path, evaluations=target)), expected)
        mended += refused is None
        assert refused is None or name == "run.json"
    assert noticed >= 30
    assert mended == 44 or name == "run.json"


def complaint(act: Callable[[], Any], expected: Any) -> str | None:
    """Return what an action complains of, or None where it gives what is expected."""
    try:
        assert act() == expected
    except QdbenchError as error:
        return str(error)
    return None


def test_another_format_or_task_version_is_refused(tmp_path: Path) -> None:
    path = finished(tmp_path)
    task = read_json(path / "run.json")["task"]
    rewrite(path / "run.json", task=task | {"version": 2})
    with pytest.raises(QdbenchError, match="task version 2, here 1"):
        finished(tmp_path)
    content = read_json(path / "run.json") | {"task": task}
    for found, words in ((7, "of a later"), (1, "of an earlier")):
        write_json(path / "run.json", {**content, "format": found})
        with pytest.raises(
            DamagedFile, match=f"has format {found}, {words} qdbench; this one reads format 3"
        ):
            qdbench.load(path)


def test_a_run_begun_elsewhere_asks_for_a_flag(bench: Cli) -> None:
    process = bench.start(*command("map_elites", n=10**7))
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 20)
    process.terminate()
    process.communicate()
    record = qdbench.load(path).record
    first = read_json(path / "run.json")["environments"][0]
    rewrite(path / "run.json", environments=[{**first, "cpu": "Abacus 3000", "mujoco": "3.9.9"}])
    target = ["--evaluations", str(record.totals.evaluations + 48)]
    refused = bench("resume", "--trust", str(path), *target)
    assert refused.returncode == 2
    assert "Abacus 3000" in refused.stderr
    assert "resuming may not reproduce it exactly" in refused.stderr
    assert bench("resume", "--trust", str(path), "--elsewhere", *target).returncode == 0
    environments = qdbench.load(path).record.environments
    assert [e.cpu for e in environments] == ["Abacus 3000", record.environments[0].cpu]


def test_extending_a_finished_run_elsewhere_asks_for_the_flag(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    path = folder(bench, "map_elites")
    environments = read_json(path / "run.json")["environments"]
    rewrite(path / "run.json", environments=[{**environments[0], "numpy": "1.0"}])
    assert bench(*command("map_elites", n=96)).returncode == 0  # nothing to do
    assert bench(*command("map_elites", n=192)).returncode == 2
    assert bench(*command("map_elites", "--elsewhere", n=192)).returncode == 0
