"""Does a cluster change any result? Runs on two nodes, of which one is killed, beside runs at home.

    python -m studies.cluster_kills --kills 10
    python -m studies.cluster_kills --kills 10 --hosts    # as root on Linux

A real Ray cluster of two one-CPU nodes is started on this machine: two raylets, or with --hosts two network
namespaces in which `ray start` was given. First, three algorithms on two tasks are
run at home, with their batches on both nodes, and as whole runs on the nodes: all must have the same archive,
metrics (but for times) and re-evaluations. So must a run while another program fills the object store of both
nodes. Then a run is repeated again and again, and SIGKILL is sent at a
random moment: to the raylet of the second node, to a worker process, or to the command itself, which is then
given again. Every result must be identical, too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from qdbench import stream
from studies.kills import contents
from studies.two_hosts import TwoHosts
from studies.two_nodes import TwoNodes

ALGORITHMS = ("map_elites", "cvt_map_elites", "random_search")
TASKS = ("ant_omni", "hopper_uni")
KINDS = ("the second node", "the second node", "a worker", "the command")
MODES = {"batches": [], "whole runs": ["--jobs", "2"]}
TOO_LATE = "ended before the kill"


def command(task: str, algorithms: tuple[str, ...], seeds: str, out: Path) -> list[str]:
    return [
        sys.executable, "-m", "qdbench", "run", task, *(f"--algorithm={name}" for name in algorithms),
        "--seeds", seeds, "--evaluations", "640", "--batch-size", "128", "--episode-length", "40",
        "--corrections", "2", "--reevaluations", "3", "--checkpoint-every", "1", "--out", str(out),
    ]  # fmt: skip


FILL = """
import numpy, ray, time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
ray.init(log_to_driver=False, configure_logging=False)
class Filler:
    def fill(self):
        self.held = [ray.put(numpy.ones(2**20)) for _ in range(40)]  # 320 MB, of 256
fillers = [ray.remote(Filler).options(num_cpus=0, scheduling_strategy=On(node["NodeID"], False)).remote()
           for node in ray.nodes()]
ray.get([one.fill.remote() for one in fillers])
print("full", flush=True)
time.sleep(600)
"""


def start(words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    """Wait for a command; return what went wrong."""
    _, err = process.communicate(timeout=600)
    return "" if process.returncode == 0 else f"exit code {process.returncode}: {err[-300:]}"


def a_worker() -> int | None:
    """Return the process of a node that evaluates or carries a run."""
    found = subprocess.run(
        ["pgrep", "-f", "^ray::(NodeWorker|Courier)"], capture_output=True, text=True, check=False
    ).stdout.split()
    return int(found[-1]) if found else None


def disturbed(cluster: TwoNodes | TwoHosts, words: list[str], kind: str, out: Path, wait: float) -> str:
    """Kill something when a command has been running for a while; return what went wrong."""
    process = start([*cluster.prefix, *words], cluster.environment)
    while not list(out.rglob("metrics.csv")) and process.poll() is None:
        time.sleep(0.05)
    time.sleep(wait)
    if process.poll() is not None:
        return finished(process) or TOO_LATE
    if kind == "the second node":
        cluster.kill()
    elif kind == "a worker":
        if (worker := a_worker()) is not None:
            os.kill(worker, signal.SIGKILL)
    else:
        process.kill()
        process.communicate()
        process = start([*cluster.prefix, *words], cluster.environment)
    problem = finished(process)
    if kind == "the second node":
        cluster.restart()
    return problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", default=["the second node"], choices=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only-kills", action="store_true")
    parser.add_argument("--hosts", action="store_true", help="two network namespaces with `ray start`")
    chosen = parser.parse_args()
    rng, verdicts = stream(chosen.seed, "cluster kills"), Counter[str]()
    with TwoHosts() if chosen.hosts else TwoNodes() as cluster, tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)

        def judge(label: str, expected: dict[str, bytes], out: Path, problem: str = "") -> None:
            verdict = problem or ("identical" if contents(out) == expected else "other results")
            verdicts[verdict] += 1
            print(f"{label}: {verdict}", flush=True)
            shutil.rmtree(out, ignore_errors=True)

        for task in () if chosen.only_kills else TASKS:
            home = root / f"home-{task}"
            assert not finished(start(command(task, ALGORITHMS, "0", home), {}))
            for mode, more in MODES.items():
                out = root / "cluster"
                words = [*command(task, ALGORITHMS, "0", out), "--on", "ray", *more]
                problem = finished(start([*cluster.prefix, *words], cluster.environment))
                judge(f"{task}, {', '.join(ALGORITHMS)}, {mode}", contents(home), out, problem)
        if not chosen.only_kills:
            filler = subprocess.Popen(
                [*cluster.prefix, sys.executable, "-c", FILL],
                env={**os.environ, **cluster.environment},
                stdout=subprocess.PIPE,
            )
            assert filler.stdout is not None
            assert filler.stdout.readline() == b"full\n"
            out, home = root / "cluster", root / f"home-{TASKS[0]}"
            words = [*cluster.prefix, *command(TASKS[0], ALGORITHMS, "0", out), "--on", "ray"]
            judge("a full object store", contents(home), out, finished(start(words, cluster.environment)))
            filler.kill()
            filler.communicate()
        home = root / "home"
        assert not finished(start(command("ant_omni", ("map_elites",), "0-1", home), {}))
        expected, lasts = contents(home), {}
        for i in range(chosen.kills):
            mode, kind = list(MODES)[i % 2], chosen.kinds[i // 2 % len(chosen.kinds)]
            out = root / f"trial-{i}"
            words = [*command("ant_omni", ("map_elites",), "0-1", out), "--on", "ray", *MODES[mode]]
            if mode not in lasts:  # how long it takes without a kill
                begun = time.monotonic()
                problem = finished(start([*cluster.prefix, *words], cluster.environment))
                judge(f"undisturbed, {mode}", expected, out, problem)
                lasts[mode] = time.monotonic() - begun
            wait, problem = float(rng.random()) * 0.4 * lasts[mode], TOO_LATE
            while problem == TOO_LATE:
                shutil.rmtree(out, ignore_errors=True)
                problem = disturbed(cluster, words, kind, out, wait)
                wait /= 2 if problem == TOO_LATE else 1
            judge(f"{i + 1:3} {mode}, SIGKILL to {kind} after {wait:.1f} s", expected, out, problem)
    print(f"{verdicts['identical']} of {verdicts.total()} identical")
    sys.exit(verdicts["identical"] != verdicts.total())


if __name__ == "__main__":
    main()
