"""Runs that cannot be lost: real kills, real signals, real files, the real command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from qdbench import DamagedFile, FunctionTask, InvalidInput, QdbenchError, stream
from qdbench.algorithms import registry
from qdbench.experiments.loop import CHECKPOINT_SHARE, COLUMNS
from qdbench.experiments.store import RunFolder

# a noisy task that fails now and then, slow enough to be killed in the middle
TASKS = """
import numpy as np
from qdbench import FunctionTask

def sphere(solutions, seeds):
    x = solutions.astype(np.float64)
    for _ in range(6):
        x = np.sin(np.arcsin(np.clip(x, -1, 1)))
    noise = (seeds % np.uint64(1000)).astype(np.float64) / 1e4
    fitness = -np.square(x).sum(axis=1) + noise
    fitness[seeds % np.uint64(50) == 0] = np.nan
    return fitness, x[:, :2] + noise[:, None]

def limits(**others):
    return dict(n_parameters=400, descriptor_bounds=((-1, 1), (-1, 1)), fitness_bounds=(-400, 1), **others)

task = FunctionTask(name="sphere", function=sphere, noisy=True, cells=(12, 12), **limits())
"""
TIMES = ("seconds", "simulation_seconds", "algorithm_seconds")


@pytest.fixture
def bench(cli: Cli) -> Cli:
    (cli.folder / "mine.py").write_text(TASKS)
    return cli


def command(algorithm: str, *more: str, n: int = 9600, seed: int = 3) -> list[str]:
    return [
        "run", "mine:task", "--algorithm", algorithm, "--seed", str(seed), "--evaluations", str(n),
        "--batch-size", "48", "--checkpoint-every", "0", *more,
    ]  # fmt: skip


def folder(cli: Cli, algorithm: str, seed: int = 3, out: str = "results") -> Path:
    return cli.folder / out / "sphere" / algorithm / f"seed-{seed}"


def results(path: Path) -> dict[str, Any]:
    """Everything that must not depend on interruptions."""
    run = qdbench.load(path)
    assert run.status == "finished"
    archive = run.archive
    elites = {field.name: getattr(archive.elites, field.name) for field in fields(archive.elites)}
    arrays = {**elites, "cells": archive.cells, **archive.geometry, **run.metrics}
    exact = {name: array.tobytes() for name, array in arrays.items() if name not in TIMES}
    return {"kind": archive.kind, **archive.about, **exact}


def rows(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_rows(process: subprocess.Popen[str], path: Path, n: int) -> None:
    deadline = time.monotonic() + 60
    while rows(path) < n and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize("algorithm", registry.algorithms())
def test_killed_runs_resume_to_the_same_bits(algorithm: str, bench: Cli) -> None:
    n = 9600 if algorithm in registry.BUILT_IN else 1200  # pyribs takes its time
    done = bench(*command(algorithm, "--out", "whole", n=n))
    assert done.returncode == 0, done.stderr
    expected = results(folder(bench, algorithm, out="whole"))
    path = folder(bench, algorithm)
    rng = stream(0, "kills", algorithm)
    kills = 0
    n_kills = 3 if algorithm in registry.BUILT_IN else 2
    for moment in sorted(rng.integers(2, n // 48 - 5, size=n_kills).tolist()):
        process = bench.start(*command(algorithm, n=n))
        wait_for_rows(process, path / "metrics.csv", moment)
        time.sleep(rng.random() * 0.02)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    assert qdbench.load(path).status == "running"
    assert bench("resume", str(path)).returncode == 0
    assert results(path) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_within_a_second_and_keep_the_last_iteration(number: int, bench: Cli) -> None:
    process = bench.start(*command("map_elites", "--seeds", "3-5", n=10**7)[:4], *SLOW)
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 20)
    process.send_signal(number)
    start = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - start < 1.5
    assert process.returncode == 128 + number
    assert "the same command continues" in err
    assert "Traceback" not in err
    run = qdbench.load(path)
    assert run.status == "stopped"
    assert run.metrics["evaluations"][-1] == run.record["totals"]["evaluations"]
    assert run.archive.about["n_evaluations"] == run.record["totals"]["evaluations"]
    saved = RunFolder(path).read_checkpoint()
    assert saved is not None
    assert saved[1]["totals"]["evaluations"] == run.record["totals"]["evaluations"]
    assert not folder(bench, "map_elites", 4).exists()
    reached = int(run.metrics["evaluations"][-1]) + 480
    seconds = run.metrics["seconds"]
    assert bench("resume", str(path), "--evaluations", str(reached)).returncode == 0
    assert np.array_equal(qdbench.load(path).metrics["seconds"][: len(seconds)], seconds)
    bench(*command("map_elites", "--out", "whole", n=reached))
    assert results(path) == results(folder(bench, "map_elites", out="whole"))


SLOW = ["--seeds", "3-5", "--evaluations", "10000000", "--batch-size", "48"]


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


def test_the_same_command_skips_resumes_and_extends(bench: Cli) -> None:
    first = bench(*command("cvt_map_elites", n=480))
    again = bench(*command("cvt_map_elites", n=480))
    assert "finished" in first.stdout
    assert "skipped" in again.stdout
    smaller = bench(*command("cvt_map_elites", n=96))
    assert "skipped" in smaller.stdout
    assert "finished" in bench(*command("cvt_map_elites", n=960)).stdout
    bench(*command("cvt_map_elites", "--out", "whole", n=960))
    assert results(folder(bench, "cvt_map_elites")) == results(folder(bench, "cvt_map_elites", out="whole"))


def test_several_algorithms_and_seeds_in_parallel_give_the_same(bench: Cli) -> None:
    many = ["--algorithm", "random_search", "--batch-size", "48", "--evaluations", "480"]
    start = ["run", "mine:task", "--algorithm", "map_elites"]
    one_by_one = bench(*start, "--seeds", "0-1", *many, "--workers", "1")
    together = bench(*start, "--seeds", "0,1", *many, "--jobs", "3", "--out", "jobs")
    assert one_by_one.returncode == together.returncode == 0, together.stderr
    for algorithm in ("map_elites", "random_search"):
        for seed in (0, 1):
            path = folder(bench, algorithm, seed)
            assert results(path) == results(folder(bench, algorithm, seed, out="jobs"))
    here = qdbench.load(folder(bench, "map_elites", 0, out="jobs")).record["environments"][-1]
    assert here["jobs"] == 3
    seeds = [qdbench.load(folder(bench, a, 0)).archive.elites.seeds for a in ("map_elites", "random_search")]
    assert not np.isin(seeds[0], seeds[1]).any()


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


BROKEN = '''
from qdbench.algorithms.random_search import RandomSearch

class Breaks(RandomSearch):
    """Breaks after a while."""

    def tell(self, evaluated):
        super().tell(evaluated)
        if self._iteration == 5:
            raise ZeroDivisionError("five is\\ntoo many")
'''


def test_a_failing_run_does_not_stop_the_others(bench: Cli) -> None:
    (bench.folder / "broken.py").write_text(BROKEN)
    done = bench(*command("broken:Breaks", "--algorithm", "random_search", n=480))
    assert done.returncode == 1
    assert "ZeroDivisionError: five is too many" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    path = folder(bench, "broken.Breaks")
    record = qdbench.load(path).record
    assert record["status"] == "failed"
    assert "five is too many" in record["reason"]
    assert "Traceback" in (path / "error.txt").read_text()
    assert qdbench.load(folder(bench, "random_search")).status == "finished"


def test_an_algorithm_of_ones_own_runs_by_name(bench: Cli) -> None:
    (bench.folder / "own.py").write_text(BROKEN.replace("== 5", "== 500"))
    done = bench(*command("own:Breaks", n=480))
    assert done.returncode == 0, done.stderr
    assert qdbench.load(folder(bench, "own.Breaks")).status == "finished"


def test_an_installed_package_can_announce_algorithms(bench: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.folder / "own.py").write_text(BROKEN.replace("== 5", "== 500"))
    installed = bench.folder / "plug_in-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    entries = "[qdbench.algorithms]\nannounced = own:Breaks\nmap_elites = own:Nothing\nlost = own:Nothing\n"
    (installed / "entry_points.txt").write_text(entries)
    monkeypatch.setenv("PYTHONPATH", str(bench.folder))
    listed = {entry["algorithm"]: entry for entry in json.loads(bench("algorithms", "--json").stdout)}
    assert listed["announced"]["what"] == "Breaks after a while."
    assert "cannot load" in listed["lost"]["what"]  # a broken plug-in hides no other
    assert "iso_sigma" in listed["map_elites"]["options"]  # and replaces none of ours
    assert bench(*command("announced", n=96)).returncode == 0
    assert qdbench.load(folder(bench, "announced")).status == "finished"


def test_two_processes_cannot_share_a_folder(bench: Cli) -> None:
    first = bench.start(*command("map_elites", n=10**7))
    wait_for_rows(first, folder(bench, "map_elites") / "metrics.csv", 3)
    second = bench(*command("map_elites", n=10**7))
    first.kill()
    first.communicate()
    assert second.returncode == 1
    assert "is in use by another process" in second.stderr


def test_a_folder_with_another_run_is_refused_before_any_work(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    before = results(folder(bench, "map_elites"))
    for change in (["--set", "iso_sigma=0.1"], ["--set", "initial=7"]):
        done = bench(*command("random_search", "--algorithm", "map_elites", *change, n=96))
        assert done.returncode == 2
        assert f"{change[1].split('=')[0]} " in done.stderr
        assert "--name" in done.stderr
    assert not folder(bench, "random_search").exists()
    assert results(folder(bench, "map_elites")) == before
    assert bench(*command("map_elites", "--set", "iso_sigma=0.1", "--name", "bold", n=96)).returncode == 0
    beside = folder(bench, "map_elites-bold")
    assert qdbench.load(beside).record["algorithm"]["options"]["iso_sigma"] == 0.1
    assert bench("resume", str(beside), "--evaluations", "192").returncode == 0


def finished(tmp_path: Path, **options: Any) -> Path:
    namespace: dict[str, Any] = {}
    exec(TASKS, namespace)
    options = {"evaluations": 96, "batch_size": 16} | options
    return qdbench.run(namespace["task"], out=tmp_path, **options).path


def damages(data: bytes) -> list[bytes]:
    """Cut short, made longer, and with single bits flipped."""
    rng = stream(0, "damage")
    places = rng.integers(len(data), size=40).tolist()
    flipped = [data[:i] + bytes([data[i] ^ (1 << (i % 8))]) + data[i + 1 :] for i in places]
    return [data[:-1], data[: len(data) // 2], b"", data + b"1,2\n", *flipped]


@pytest.mark.parametrize("name", ["run.json", "metrics.csv", "archive.npz", "checkpoint.npz"])
def test_damaged_files_are_named_and_never_used(name: str, tmp_path: Path) -> None:
    """Either the damage is noticed, or it hit a byte that means nothing (such as a time in a zip file)."""
    path = finished(tmp_path)
    good = {file.name: file.read_bytes() for file in path.iterdir()}
    target = 192 if name == "checkpoint.npz" else 96
    expected = results(finished(tmp_path, evaluations=target))
    noticed = 0
    for damaged in damages(good[name]):
        for file, data in good.items():
            (path / file).write_bytes(data)
        (path / name).write_bytes(damaged)
        sentence = complaint(lambda: results(finished(tmp_path, evaluations=target)), expected)
        if sentence is not None:
            noticed += 1
            assert name in sentence
            assert "was not used" in sentence
            assert "\n" not in sentence
    assert noticed >= 30


def complaint(act: Callable[[], Any], expected: Any) -> str | None:
    """Return what an action complains of, or None where it gives what is expected."""
    try:
        assert act() == expected
    except QdbenchError as error:
        return str(error)
    return None


def rewrite(path: Path, **changes: Any) -> None:
    from qdbench.experiments.files import read_json, write_json

    write_json(path, read_json(path) | changes)


def test_another_format_or_task_version_is_refused(tmp_path: Path) -> None:
    path = finished(tmp_path)
    record = qdbench.load(path).record
    rewrite(path / "run.json", task=record["task"] | {"version": 2})
    with pytest.raises(QdbenchError, match="task version 2, here 1"):
        finished(tmp_path)
    rewrite(path / "run.json", task=record["task"], format=7)
    with pytest.raises(DamagedFile, match="has format 7, this qdbench reads format 1"):
        qdbench.load(path)


def test_a_run_begun_elsewhere_asks_for_a_flag(bench: Cli) -> None:
    process = bench.start(*command("map_elites", n=10**7))
    path = folder(bench, "map_elites")
    wait_for_rows(process, path / "metrics.csv", 20)
    process.terminate()
    process.communicate()
    record = qdbench.load(path).record
    other = [{**record["environments"][0], "cpu": "Abacus 3000", "mujoco": "3.9.9"}]
    rewrite(path / "run.json", environments=other)
    target = ["--evaluations", str(record["totals"]["evaluations"] + 48)]
    refused = bench("resume", str(path), *target)
    assert refused.returncode == 2
    assert "Abacus 3000" in refused.stderr
    assert "bits may differ" in refused.stderr
    assert bench("resume", str(path), "--elsewhere", *target).returncode == 0
    environments = qdbench.load(path).record["environments"]
    assert [e["cpu"] for e in environments] == ["Abacus 3000", record["environments"][0]["cpu"]]


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


def test_extending_a_finished_run_elsewhere_asks_for_the_flag(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    path = folder(bench, "map_elites")
    environments = qdbench.load(path).record["environments"]
    rewrite(path / "run.json", environments=[{**environments[0], "numpy": "1.0"}])
    assert bench(*command("map_elites", n=96)).returncode == 0  # nothing to do
    assert bench(*command("map_elites", n=192)).returncode == 2
    assert bench(*command("map_elites", "--elsewhere", n=192)).returncode == 0


ODD = """
import enum, functools
from qdbench.algorithms.random_search import RandomSearch

Colour = enum.Enum("Colour", "RED")

class WithEnum(RandomSearch):
    def __init__(self, problem, seed, *, colour=Colour.RED): super().__init__(problem, seed)

class WithTuple(RandomSearch):
    def __init__(self, problem, seed, *, sizes=(1, 2), batch_size: int = 48):
        super().__init__(problem, seed, batch_size=batch_size); hash(sizes)

class BadHint(RandomSearch):
    def __init__(self, problem, seed, *, a: "1 +" = 3): super().__init__(problem, seed)

class Leaves(RandomSearch):
    def tell(self, evaluated): raise SystemExit("bye")
"""


def test_odd_algorithms_are_run_or_refused_without_a_traceback(bench: Cli) -> None:
    (bench.folder / "odd.py").write_text(ODD)
    start = ["run", "mine:task", "--evaluations", "96", "--algorithm"]
    refused = {"odd:WithEnum": "cannot hold", "builtins:dict": "signature", "odd:Nothing": "cannot load"}
    for name, sentence in refused.items():
        done = bench(*start, name)
        assert done.returncode == 2, name
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
    assert bench(*start, "odd:BadHint").returncode == 0
    assert bench(*start, "odd:WithTuple").returncode == 0
    assert bench("resume", str(folder(bench, "odd.WithTuple", 0)), "--evaluations", "192").returncode == 0
    left = bench(*start, "odd:Leaves", "--algorithm", "random_search")
    assert left.returncode == 1
    assert "SystemExit: bye" in left.stderr
    assert qdbench.load(folder(bench, "random_search", 0)).status == "finished"


BAD_INPUT = {
    "batch_size is 0; give 1 or more": ["run", "ant_omni", "--set", "batch_size=0", "--evaluations", "9"],
    "2**63": ["run", "ant_omni", "--seed", "18446744073709551616", "--evaluations", "9"],
    "seconds is inf": ["run", "ant_omni", "--seconds", "inf"],
    "needs an end": ["run", "ant_omni"],
    "no algorithm 'map_elite'; did you mean 'map_elites'": [
        "run", "ant_omni", "--algorithm", "map_elite", "--evaluations", "9",
    ],
    "no task 'ant_omny'; did you mean 'ant_omni'": ["run", "ant_omny", "--evaluations", "9"],
    "no option 'iso_sigm'; did you mean 'iso_sigma'": [
        "run", "ant_omni", "--set", "iso_sigm=1", "--evaluations", "9",
    ],
    "iso_sigma is 'big'; give float": ["run", "ant_omni", "--set", "iso_sigma=big", "--evaluations", "9"],
    "batch_size is 'nan'; give int": ["run", "ant_omni", "--set", "batch_size=nan", "--evaluations", "9"],
    "is not OPTION=VALUE": ["run", "ant_omni", "--set", "iso_sigma", "--evaluations", "9"],
    "is set twice": ["run", "ant_omni", "--set", "batch_size=4", "--batch-size", "5", "--evaluations", "9"],
    "init is 'wide'; give lecun or uniform": [
        "run", "ant_omni", "--algorithm", "random_search", "--set", "init=wide", "--evaluations", "9",
    ],
    "give --seed or --seeds": ["run", "ant_omni", "--seed", "1", "--seeds", "0-9", "--evaluations", "9"],
    "'9-0' is not a list of seeds": ["run", "ant_omni", "--seeds", "9-0", "--evaluations", "9"],
    "'a' is not a list of seeds": ["run", "ant_omni", "--seeds", "a", "--evaluations", "9"],
    "at most 10000": ["run", "ant_omni", "--seeds", "0-99999", "--evaluations", "9"],
    "--evaluations": ["run", "ant_omni", "--evaluations", "0"],
    "--seconds": ["run", "ant_omni", "--seconds", "-1"],
    "--jobs": ["run", "ant_omni", "--jobs", "0", "--evaluations", "9"],
    "workers is 0": ["run", "ant_omni", "--workers", "0", "--evaluations", "9"],
    "episode_length is 0": ["run", "ant_omni", "--episode-length", "0", "--evaluations", "9"],
    "cannot name a folder": ["run", "ant_omni", "--name", "../up", "--evaluations", "9"],
    "cannot load the algorithm 'no.where:X'": [
        "run", "ant_omni", "--algorithm", "no.where:X", "--evaluations", "9",
    ],
    "is not the folder of a run": ["resume", "nowhere"],
    "Missing argument": ["resume"],
}  # fmt: skip


@pytest.mark.parametrize("sentence", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(sentence: str, cli: Cli) -> None:
    done = cli(*BAD_INPUT[sentence])
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (cli.folder / "results").exists()


@pytest.mark.parametrize("algorithm", registry.algorithms())
def test_metrics_are_those_of_the_archive(algorithm: str, tmp_path: Path) -> None:
    """The last row, computed again from archive.npz alone."""
    path = finished(tmp_path, algorithm=algorithm, evaluations=640, batch_size=64)
    run = qdbench.load(path)
    assert tuple(run.metrics) == COLUMNS
    last = {name: values[-1] for name, values in run.metrics.items()}
    with np.load(path / "archive.npz") as file:
        fitness, descriptors, cells = file["fitness"], file["descriptors"], file["cells"]
        assert len(np.unique(cells)) == len(cells)
        assert file["solutions"].dtype == np.float32
        assert set(file["kind"].tolist().split()) <= {"grid", "cvt", "unstructured"}
    low, high = -400.0, 1.0
    assert last["coverage"] == len(fitness)
    assert last["max_fitness"] == fitness.max()
    assert last["min_fitness"] == fitness.min()
    assert last["qd_score"] == pytest.approx(((fitness - low) / (high - low)).sum(), rel=1e-12)
    best: dict[tuple[int, ...], float] = {}
    for place, value in zip(np.clip((descriptors + 1) / 2 * 12, 0, 11).astype(int), fitness, strict=True):
        best[tuple(place)] = max(value, best.get(tuple(place), -np.inf))
    assert last["grid_coverage"] == len(best)
    assert last["grid_sum_fitness"] == pytest.approx(sum(best.values()), rel=1e-12)
    assert last["grid_max_fitness"] == max(best.values())
    assert last["invalid"] == run.record["totals"]["invalid"] > 0
    assert last["lowest_fitness"] <= last["min_fitness"] <= last["max_fitness"] <= last["highest_fitness"]
    assert (np.diff(run.metrics["seconds"]) > 0).all()
    if algorithm != "map_elites_unstructured":  # which turns away what is near to two elites, however fit
        assert last["max_fitness"] == last["highest_fitness"]
        assert (np.diff(run.metrics["qd_score"]) >= 0).all()
    totals = run.record["totals"]
    parts = totals["simulation_seconds"] + totals["algorithm_seconds"] + run.record["rest_seconds"]
    assert parts == pytest.approx(totals["seconds"])


def test_a_run_reads_into_pandas(tmp_path: Path) -> None:
    run = qdbench.load(finished(tmp_path))
    frame = run.to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == 6
    assert frame["evaluations"].tolist() == [16, 32, 48, 64, 80, 96]


def test_a_run_in_which_everything_is_invalid_ends_well(tmp_path: Path) -> None:
    task = FunctionTask(
        name="hopeless",
        function=lambda x: (np.full(len(x), np.nan), np.zeros((len(x), 1))),
        n_parameters=2,
        descriptor_bounds=((0, 1),),
        cells=(5,),
        fitness_bounds=(0, 1),
    )
    run = qdbench.run(task, evaluations=512, out=tmp_path)
    assert run.record["totals"]["invalid"] == 512
    assert run.record["totals"]["lowest_fitness"] is None
    assert run.metrics["coverage"].tolist() == [0, 0]
    assert np.isnan(run.metrics["max_fitness"]).all()
    assert len(run.archive.elites) == 0
    text = (run.path / "run.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_seconds_end_a_run_and_continue_over_a_resume(tmp_path: Path) -> None:
    first = qdbench.load(finished(tmp_path, evaluations=None, seconds=0.05))
    assert first.metrics["seconds"][-2] < 0.05 <= first.metrics["seconds"][-1]
    longer = qdbench.load(finished(tmp_path, evaluations=None, seconds=0.1))
    n = len(first.metrics["seconds"])
    assert np.array_equal(longer.metrics["seconds"][:n], first.metrics["seconds"])
    assert (np.diff(longer.metrics["seconds"]) > 0).all()
    with pytest.raises(InvalidInput, match="needs an end"):
        finished(tmp_path, evaluations=None)


def test_checkpoints_cost_a_bounded_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one takes, the next comes so much later that the share stays small."""
    from qdbench.experiments.store import RunFolder

    plain, calls = RunFolder.write_checkpoint, []

    def slow(self: RunFolder, *arguments: Any) -> None:
        calls.append(time.monotonic())
        while time.monotonic() < calls[-1] + 0.01:
            pass
        plain(self, *arguments)

    monkeypatch.setattr(RunFolder, "write_checkpoint", slow)
    from qdbench.experiments import session

    settings = session.Settings
    monkeypatch.setattr(
        "qdbench.experiments.runs.Settings", lambda **kw: settings(**{**kw, "checkpoint_every": 0.0})
    )
    finished(tmp_path, evaluations=None, seconds=1.5)
    assert len(calls) >= 2  # some on the way
    gaps = np.diff(calls[:-1])
    assert (gaps >= 0.01 / CHECKPOINT_SHARE).all()
