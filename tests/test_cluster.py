"""Runs on a real Ray cluster: two nodes on this machine, or one that the command starts itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import qdbench
from conftest import Cli
from running import results, rows
from studies.two_nodes import TwoNodes

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray has no wheel for this Python or system")

TASKS = """
import os, time
import numpy as np
from qdbench import FunctionTask
from beside import PAUSE

def sphere(solutions, seeds):
    time.sleep(PAUSE * len(solutions))
    x = solutions.astype(np.float64)
    noise = (seeds % np.uint64(1000)).astype(np.float64) / 1e4
    return -np.square(x).sum(axis=1) + noise, x[:, :2] + noise[:, None]

def deadly(solutions, seeds):
    if (solutions[:, 0] > 0.98).any():
        os.kill(os.getpid(), 9)
    return sphere(solutions, seeds)

def wrong(solutions, seeds):
    raise ArithmeticError("this task is wrong")

def made(name, function):
    return FunctionTask(
        name=name, function=function, noisy=True, cells=(8, 8), version=1, n_parameters=40,
        descriptor_bounds=((-1, 1), (-1, 1)), fitness_bounds=(-40, 1),
    )

task, deadly_task, wrong_task = made("sphere", sphere), made("deadly", deadly), made("wrong", wrong)
"""
SMALL = ["--batch-size", "64", "--corrections", "2", "--reevaluations", "3", "--checkpoint-every", "0"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[TwoNodes]:
    with TwoNodes() as two:
        yield two


@pytest.fixture
def bench(cli: Cli, cluster: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command in a folder with tasks of its own, where `--on ray` means the two nodes."""
    (cli.folder / "mine.py").write_text(TASKS)
    (cli.folder / "beside.py").write_text("PAUSE = 0.002\n")
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    return cli


def command(*more: str, task: str = "mine:task", n: int = 640) -> list[str]:
    return ["run", task, "--evaluations", str(n), *SMALL, *more]


def found(cli: Cli, out: str, seed: int = 0, algorithm: str = "map_elites") -> Path:
    return cli.folder / out / "sphere" / algorithm / f"seed-{seed}"


def all_results(path: Path) -> dict[str, object]:
    made = qdbench.load(path).corrections
    assert made is not None
    return results(path) | {"corrected": made.fitness.tobytes(), "steps of corrected": made.steps.tobytes()}


def test_batches_and_whole_runs_are_those_of_one_machine(bench: Cli) -> None:
    algorithms = ["--algorithm", "map_elites", "--algorithm", "cvt_map_elites"]
    assert bench(*command(*algorithms, "--out", "home")).returncode == 0
    spread = bench(*command(*algorithms, "--out", "batches", "--on", "ray"))
    assert spread.returncode == 0, spread.stderr
    whole = bench(*command(*algorithms, "--out", "runs", "--on", "ray", "--jobs", "2"))
    assert whole.returncode == 0, whole.stderr
    for algorithm in ("map_elites", "cvt_map_elites"):
        expected = all_results(found(bench, "home", algorithm=algorithm))
        for out in ("batches", "runs"):
            assert all_results(found(bench, out, algorithm=algorithm)) == expected
    last = qdbench.load(found(bench, "batches")).record.environments[-1]
    assert last.workers == len(last.nodes) in (1, 2)
    assert {(node.cpus, *node.differs) for node in last.nodes} == {(1,)}
    assert qdbench.load(found(bench, "runs")).record.environments[-1].nodes == ()


@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["batches", "whole runs"])
def test_a_killed_node_changes_nothing(bench: Cli, cluster: TwoNodes, more: tuple[str, ...]) -> None:
    (bench.folder / "beside.py").write_text("PAUSE = 0.0001\n")
    assert bench(*command("--seeds", "0-1", "--out", "home")).returncode == 0
    (bench.folder / "beside.py").write_text("PAUSE = 0.005\n")
    words = command("--seeds", "0-1", "--out", "killed", "--on", "ray", *more)
    process = bench.start(*words)
    deadline = time.monotonic() + 60
    while rows(found(bench, "killed") / "metrics.csv") < 3:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    cluster.kill()
    try:
        _, err = process.communicate(timeout=100)
    finally:
        cluster.restart()
    assert process.returncode == 0, err
    for seed in (0, 1):
        assert all_results(found(bench, "killed", seed)) == all_results(found(bench, "home", seed))


def test_the_same_command_continues_after_a_kill_of_itself(bench: Cli) -> None:
    (bench.folder / "beside.py").write_text("PAUSE = 0.005\n")
    words = command("--out", "again", "--on", "ray")
    process = bench.start(*words)
    while rows(found(bench, "again") / "metrics.csv") < 4:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    (bench.folder / "beside.py").write_text("PAUSE = 0.0001\n")
    assert bench(*words).returncode == 0
    assert bench(*command("--out", "home")).returncode == 0
    assert all_results(found(bench, "again")) == all_results(found(bench, "home"))


def test_a_solution_that_kills_its_worker_is_named(bench: Cli) -> None:
    size = ["--evaluations", "6400", "--batch-size", "8"]
    ended = bench("run", "mine:deadly_task", *size, "--out", "deadly", "--on", "ray")
    assert ended.returncode == 1
    assert re.search(r"solution \d+ of the batch killed its worker 3 times", ended.stderr)
    run = qdbench.load(bench.folder / "deadly/deadly/map_elites/seed-0")
    assert run.status == "failed"


def test_a_task_that_raises_on_a_node_is_reported_as_at_home(bench: Cli) -> None:
    reasons = []
    for out, more in (("home", ()), ("batches", ("--on", "ray")), ("runs", ("--on", "ray", "--jobs", "2"))):
        ended = bench(*command("--out", out, *more, task="mine:wrong_task"))
        assert ended.returncode == 1
        folder = Path(out) / "wrong/map_elites/seed-0"
        assert "this task is wrong" in (bench.folder / folder / "error.txt").read_text()
        (line,) = [line for line in ended.stderr.splitlines() if line.startswith("failed: ")]
        reasons.append(line.replace(str(Path(out)), "OUT"))
        assert f"see {folder / 'error.txt'}" in line
    assert len(set(reasons)) == 1, reasons


def test_correcting_on_a_cluster_gives_the_same(bench: Cli) -> None:
    plain = ["run", "mine:task", "--evaluations", "320", "--batch-size", "64"]
    assert bench(*plain, "--out", "home").returncode == 0
    assert bench(*plain, "--out", "spread").returncode == 0
    assert bench("correct", "home", "--trust", "--reevaluations", "7").returncode == 0
    spread = bench("correct", "spread", "--trust", "--reevaluations", "7", "--on", "ray")
    assert spread.returncode == 0, spread.stderr
    assert all_results(found(bench, "spread")) == all_results(found(bench, "home"))


def test_a_node_that_computes_otherwise_is_refused_by_name(bench: Cli, cluster: TwoNodes) -> None:
    cluster.kill()
    cluster.restart(OPENBLAS_CORETYPE="Nehalem")
    try:
        refused = bench(*command("--out", "refused", "--on", "ray"))
        allowed = bench(*command("--out", "allowed", "--on", "ray", "--elsewhere"))
    finally:
        cluster.kill()
        cluster.restart()
    assert refused.returncode == 2
    assert re.search(
        r"qdbench: node \S+ has another CPU or other versions \(blas '.*Nehalem'", refused.stderr
    )
    assert not (bench.folder / "refused").exists()
    assert allowed.returncode == 0, allowed.stderr
    nodes = qdbench.load(found(bench, "allowed")).record.environments[-1].nodes
    assert sorted(list(node.differs) for node in nodes) == [[], ["blas"]]


def descendants(pid: int) -> set[int]:
    """Return all processes below one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def listening(pids: set[int]) -> set[str]:
    """Return the addresses on which processes listen, as /proc/net has them."""
    links = set()
    for pid in pids:
        try:
            links |= {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            continue
    tables = [Path(f"/proc/net/{name}").read_text().splitlines() for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    return {line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in links}


LOOPBACK = ("0100007F:", "0000000000000000FFFF00000100007F:", "00000000000000000000000001000000:")


def folders_of(pids: set[int]) -> list[Path]:
    """Return the temporary folders of some processes; other tests run beside, and have theirs."""
    return [path for pid in pids for path in Path(tempfile.gettempdir()).glob(f"qdbench-*-{pid}-*")]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["batches", "whole runs"])
def test_ctrl_c_saves_and_leaves_nothing_behind(
    bench: Cli, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    for name in ("RAY_ADDRESS", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name)
    (bench.folder / "beside.py").write_text("PAUSE = 0.005\n")
    process = bench.start(*command("--out", "own", "--on", "ray", *more))
    while rows(found(bench, "own") / "metrics.csv") < 4:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    ours = descendants(process.pid)
    assert folders_of({process.pid, *ours})
    addresses = listening({process.pid, *ours})
    assert addresses
    assert all(address.startswith(LOOPBACK) for address in addresses), addresses
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - begun < 15
    assert "The same command continues" in err
    assert qdbench.load(found(bench, "own")).status == "stopped"
    deadline = time.monotonic() + 10
    while left := {pid for pid in ours if Path(f"/proc/{pid}").exists() and not is_zombie(pid)}:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert not folders_of({process.pid, *ours})
    (bench.folder / "beside.py").write_text("PAUSE = 0.0001\n")
    assert bench(*command("--out", "own")).returncode == 0  # the same run goes on without a cluster
    assert bench(*command("--out", "home")).returncode == 0
    assert all_results(found(bench, "own")) == all_results(found(bench, "home"))


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_what_cannot_be_used_is_said_in_one_sentence(bench: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*more: str) -> str:
        ended = bench(*command("--out", "none", *more))
        assert ended.returncode == 2, ended.stderr
        assert ended.stderr.count("\n") == 1
        assert not (bench.folder / "none").exists()
        return ended.stderr

    assert "give ray, or ray://HOST:PORT" in refused("--on", "spark")
    assert "no Ray cluster answers at 127.0.0.1:9" in refused("--on", "ray://127.0.0.1:9")
    assert "no node of the cluster has 7 free CPUs" in refused("--on", "ray", "--jobs", "2", "--workers", "7")
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "busy\n"
        assert "the cluster has no free CPU" in refused("--on", "ray")
        other.communicate("\n")
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:10001")
    assert "which is for Ray's client" in refused("--on", "ray")
    (bench.folder / "ray.py").write_text("raise ImportError('no such wheel')")
    assert "pip install 'qdbench[ray]'" in refused("--on", "ray")


BUSY = """
import ray
ray.init(log_to_driver=False, logging_level="ERROR")
class Idle:
    def here(self): return 1
held = [ray.remote(num_cpus=1)(Idle).remote() for _ in range(2)]
ray.get([one.here.remote() for one in held])
print("busy", flush=True)
input()
"""


def test_python_has_the_same_option_and_a_full_object_store_makes_chunks_smaller(bench: Cli) -> None:
    script = """
import json, mine, qdbench, ray
from ray.exceptions import ObjectStoreFullError, OutOfDiskError

def run(out, on="ray"):
    return qdbench.run(mine.task, seed=3, evaluations=192, batch_size=64, out=out, on=on)

def put(value):
    if value.nbytes > most:
        refused.append(refused.pop(0))
        raise refused[0]("full")
    return usual(value)

run("home", None)
usual, n_nodes = ray.put, len(run("python").record.environments[-1].nodes)
ray.put, refused = put, [ObjectStoreFullError, OutOfDiskError]
most = 500  # three solutions
run("full")
most = 0
try:
    run("none")
except qdbench.QdbenchError as error:
    print(json.dumps([n_nodes, str(error)]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=bench.folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    n_nodes, error = json.loads(ended.stdout)
    assert 1 <= n_nodes <= 2  # a short run may end before the second has started
    assert "not one solution fits" in error
    for out in ("python", "full"):
        assert results(found(bench, out, 3)) == results(found(bench, "home", 3))
