"""Links, left-overs, and file systems without locks."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import qdbench
from qdbench import InvalidInput, QdbenchError
from qdbench.store.folder import RunFolder, folders_without_record, run_folders
from running import finished, results


def test_runs_behind_links_are_found_once(tmp_path: Path) -> None:
    real = finished(tmp_path / "real")
    results_folder = tmp_path / "results"
    results_folder.mkdir()
    (results_folder / "linked").symlink_to(real.parent, target_is_directory=True)
    (results_folder / "loop").symlink_to(results_folder, target_is_directory=True)
    (results_folder / "again").symlink_to(real, target_is_directory=True)
    (results_folder / "broken").symlink_to(tmp_path / "nowhere")
    (found,) = run_folders([results_folder])
    assert found.samefile(real)
    assert run_folders([tmp_path]) == [real]  # by its own path, where it has one
    assert len(qdbench.measure(results_folder).runs) == 1
    (real / "run.json").unlink()
    assert [path.samefile(real) for path in folders_without_record([results_folder])] == [True]


@pytest.mark.parametrize("name", ["metrics.csv", "told.log", "error.txt", ".run.json.1"])
def test_a_link_where_a_run_begins_is_not_followed(name: str, tmp_path: Path) -> None:
    path = finished(tmp_path / "expected")
    begun = tmp_path / "begun/sphere/map_elites/seed-0"
    begun.mkdir(parents=True)
    mine, nowhere = tmp_path / "mine.txt", tmp_path / "nowhere"
    mine.write_text("not yours")
    (begun / name).symlink_to(mine)
    assert results(finished(tmp_path / "begun")) == results(path)
    assert mine.read_text() == "not yours"
    dangling = tmp_path / "dangling/sphere/map_elites/seed-0"
    dangling.mkdir(parents=True)
    (dangling / name).symlink_to(nowhere)
    assert results(finished(tmp_path / "dangling")) == results(path)
    assert not nowhere.exists()


def test_only_our_own_left_overs_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "sphere/map_elites/seed-0"
    path.mkdir(parents=True)
    ours = [".run.json.123", ".archive.npz.4", ".checkpoint.npz.77", ".corrected.npz.5", ".error.txt.6"]
    theirs = [".notes.txt.2024", ".run.json.bak", ".run.json.12x", "run.json.1", ".archive.npz.1.txt"]
    for name in (*ours, *theirs):
        (path / name).write_text("x")
    finished(tmp_path)
    left = {file.name for file in path.iterdir()}
    assert left >= set(theirs)
    assert not left & set(ours)


@pytest.mark.parametrize("name", ["run.json", "metrics.csv", "archive.npz"])
def test_a_pipe_or_a_device_is_not_read(name: str, tmp_path: Path) -> None:
    path = finished(tmp_path)
    for make in (os.mkfifo, lambda file: file.symlink_to("/dev/zero"), os.mkdir):
        file = path / name
        file.rmdir() if file.is_dir() else file.unlink()
        make(file)
        with pytest.raises(QdbenchError, match=f"{name} is damaged and was not used: it is not a file"):
            results(path)


NO_LOCKS = [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS]


@pytest.mark.parametrize("number", NO_LOCKS, ids=lambda number: errno.errorcode[number])
def test_file_systems_without_locks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    expected = results(finished(tmp_path / "expected"))
    monkeypatch.setattr(fcntl, "flock", flock)
    path = finished(tmp_path)
    assert results(path) == expected
    held, folder = path / ".lock-held", RunFolder(path)
    assert not held.exists()
    with folder.locked():
        assert held.read_text() == f"{os.getpid()} {platform.node()}\n"
        with (
            pytest.raises(InvalidInput, match=f"in use by process {os.getpid()} on .*delete"),
            folder.locked(),
        ):
            pass
    assert not held.exists()
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    for text, sentence in (
        (f"{gone.stdout.strip()} {platform.node()}\n", "which was killed; delete .*lock-held and try again"),
        ("17 far.away\n", "in use by process 17 on far.away; if it has ended there, delete .*lock-held"),
        ("\x1b[31m", "in use by another process; if there is none, delete .*lock-held"),
    ):
        held.write_text(text)
        with pytest.raises(InvalidInput, match=sentence), folder.locked():
            pass
        assert held.read_text() == text
