"""Runs that cannot be lost: real kills, real signals, a full disk."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import stream
from qdbench.algorithms import registry
from qdbench.experiments import job
from qdbench.experiments.loop import CHECKPOINT_SHARE
from qdbench.store.folder import RunFolder
from running import SLOW, command, finished, folder, results, wait_for_rows


@pytest.mark.parametrize("algorithm", registry.algorithms())
def test_killed_runs_resume_to_the_same_bits(
    algorithm: str, bench: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 9600 if algorithm in registry.BUILT_IN else 720  # pyribs takes its time
    if algorithm == "cma_mae":  # every process would compile the same code as cma_me's
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = bench(*command(algorithm, "--out", "whole", n=n))
    assert done.returncode == 0, done.stderr
    expected = results(folder(bench, algorithm, out="whole"))
    path = folder(bench, algorithm)
    rng = stream(0, "kills", algorithm)
    kills = 0
    n_kills = 3 if algorithm in registry.BUILT_IN else 1 if algorithm == "cma_me" else 2
    n_rows = len(qdbench.load(folder(bench, algorithm, out="whole")).metrics["evaluations"])
    for moment in sorted(rng.integers(2, n_rows - 5, size=n_kills).tolist()):
        process = bench.start(*command(algorithm, n=n))
        wait_for_rows(process, path / "metrics.csv", moment)
        time.sleep(rng.random() * 0.02)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    assert qdbench.load(path).status == "running"
    assert bench("resume", "--trust", str(path)).returncode == 0
    assert results(path) == expected


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_within_a_second_and_keep_the_last_iteration(number: int, bench: Cli) -> None:
    process = bench.start("run", "mine:task", *SLOW)
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 20)
    process.send_signal(number)
    start = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - start < 1.5
    assert process.returncode == 128 + number
    assert "The same command continues" in err
    assert "Traceback" not in err
    run = qdbench.load(path)
    assert run.status == "stopped"
    assert run.metrics["evaluations"][-1] == run.record.totals.evaluations
    assert run.archive.n_evaluations == run.record.totals.evaluations
    saved = RunFolder(path).read_checkpoint(run.record.determinants)
    assert saved is not None
    assert saved.totals.evaluations == run.record.totals.evaluations
    assert not folder(bench, "map_elites", 4).exists()
    reached = int(run.metrics["evaluations"][-1]) + 480
    seconds = run.metrics["seconds"]
    assert bench("resume", "--trust", str(path), "--evaluations", str(reached)).returncode == 0
    assert np.array_equal(qdbench.load(path).metrics["seconds"][: len(seconds)], seconds)
    bench(*command("map_elites", "--out", "whole", n=reached))
    assert results(path) == results(folder(bench, "map_elites", out="whole"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_more_signals_do_not_disturb_the_saving(number: int, bench: Cli) -> None:
    process = bench.start("run", "mine:task", *SLOW)
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 20)
    process.send_signal(number)
    while process.poll() is None and qdbench.load(path).status == "running":
        process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number)  # the latter when all is saved
    assert "Traceback" not in err
    run = qdbench.load(path)
    assert run.status == "stopped"
    reached = run.record.totals.evaluations + 480
    assert bench("resume", "--trust", str(path), "--evaluations", str(reached)).returncode == 0
    bench(*command("map_elites", "--out", "whole", n=reached))
    assert results(path) == results(folder(bench, "map_elites", out="whole"))


FROM_PYTHON = """
import qdbench, mine
qdbench.run(mine.task, seed=3, batch_size=48, evaluations=10**7)
"""


def test_a_run_from_python_is_saved_and_then_the_signal_takes_effect(bench: Cli) -> None:
    path = folder(bench, "map_elites")
    process = subprocess.Popen([sys.executable, "-c", FROM_PYTHON], cwd=bench.folder, text=True)
    wait_for_rows(process, path / "metrics.csv", 20)
    process.terminate()
    assert process.wait(timeout=30) == -signal.SIGTERM
    run = qdbench.load(path)
    assert run.status == "stopped"
    assert run.archive.n_evaluations == run.record.totals.evaluations


def test_what_a_kill_left_half_written_is_removed(bench: Cli) -> None:
    assert bench(*command("map_elites", n=480)).returncode == 0
    path = folder(bench, "map_elites")
    half_written = [path / f".{name}.4242" for name in ("checkpoint.npz", "archive.npz", "run.json")]
    for file in half_written:
        file.write_bytes(b"PK half of it")
    kept = path / ".my.notes"
    kept.write_text("not ours")
    assert bench(*command("map_elites", n=960)).returncode == 0
    assert not any(file.exists() for file in half_written)
    assert kept.exists()
    bench(*command("map_elites", "--out", "whole", n=960))
    assert results(path) == results(folder(bench, "map_elites", out="whole"))


@pytest.mark.alone
def test_a_robot_task_stops_within_a_second(bench: Cli) -> None:
    process = bench.start("run", "ant_omni", "--evaluations", "100000", "--batch-size", "64")
    path = bench.folder / "results/ant_omni/map_elites/seed-0"
    wait_for_rows(process, path / "metrics.csv", 2)
    process.send_signal(signal.SIGTERM)
    start = time.monotonic()
    process.communicate(timeout=30)
    assert time.monotonic() - start < 1.5
    assert process.returncode == 128 + signal.SIGTERM
    assert qdbench.load(path).status == "stopped"


def test_parallel_runs_end_with_their_parent(bench: Cli) -> None:
    process = bench.start("run", "mine:task", "--jobs", "2", *SLOW)
    for seed in (3, 4):
        wait_for_rows(process, folder(bench, "map_elites", seed) / "metrics.csv", 5)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    paths = [folder(bench, "map_elites", seed) for seed in (3, 4)]
    while {qdbench.load(path).status for path in paths} != {"stopped"}:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("delay", [0.1, 0.8, 1.3])
def test_parallel_runs_that_have_hardly_begun_stop_quietly(bench: Cli, delay: float) -> None:
    process = bench.start("run", "mine:task", "--jobs", "2", *SLOW)
    time.sleep(delay)
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert "failed" not in err
    assert process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)  # the latter before Python listens


def test_parallel_runs_stop_together(bench: Cli) -> None:
    process = bench.start("run", "mine:task", "--jobs", "2", *SLOW)
    for seed in (3, 4):
        wait_for_rows(process, folder(bench, "map_elites", seed) / "metrics.csv", 5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert {qdbench.load(folder(bench, "map_elites", seed)).status for seed in (3, 4)} == {"stopped"}
    assert "not begun" in out


def test_a_full_disk_ends_the_run_with_the_last_good_state(bench: Cli) -> None:
    """A limit on the size of files stands for the disk: writing fails half-way, as it would there."""
    path = folder(bench, "map_elites")
    assert bench(*command("map_elites", n=480)).returncode == 0
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    expected = results(path)
    limit = len(before["checkpoint.npz"]) + 20_000
    program = (
        "import resource, sys, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        f"sys.argv = ['qdbench', *{command('map_elites', n=48000)!r}]; import qdbench.cli; qdbench.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=bench.folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr or "disk full" in done.stderr
    assert not list(path.glob(".*.npz.*"))
    assert bench(*command("map_elites", n=9600)).returncode == 0
    bench(*command("map_elites", "--out", "whole", n=9600))
    assert results(path) == results(folder(bench, "map_elites", out="whole")) != expected


def test_an_unwritable_folder_is_one_sentence(bench: Cli) -> None:
    (bench.folder / "results").write_text("a file where a folder should be")
    done = bench(*command("map_elites", n=96))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "results" in done.stderr


def test_checkpoints_cost_a_bounded_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one takes, the next comes so much later that the share stays small."""
    plain, calls = RunFolder.write_checkpoint, []

    def slow(self: RunFolder, *arguments: Any) -> None:
        calls.append(time.monotonic())
        while time.monotonic() < calls[-1] + 0.01:
            pass
        plain(self, *arguments)

    monkeypatch.setattr(RunFolder, "write_checkpoint", slow)
    settings = job.Settings
    monkeypatch.setattr(
        "qdbench.experiments.runs.Settings", lambda **kw: settings(**{**kw, "checkpoint_every": 0.0})
    )
    finished(tmp_path, evaluations=None, seconds=1.5)
    assert len(calls) >= 2  # some on the way
    gaps = np.diff(calls[:-1])
    assert (gaps >= 0.01 / CHECKPOINT_SHARE).all()
