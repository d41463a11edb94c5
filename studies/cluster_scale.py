"""How many cores can one run use? Measured constants, and a simulated curve for 8 to 2,048 cores.

    python -m studies.cluster_scale measure --out constants.json
    python -m studies.cluster_scale curve constants.json
    python -m studies.cluster_scale memory --batches 500

`measure` starts a real Ray cluster of two one-CPU nodes on this machine and evaluates batches of ant_omni on
it, and with two local threads. CPU seconds of all processes are counted: of the driver, of Ray, and of the
workers, in which those inside `evaluate` are simulation. Wall-clock times depend on whoever else uses the
machine; CPU seconds hardly do.

`curve` plays the same scheduling (`Chunks`) with these constants. It assumes nodes of 64 equal cores, a
network of 10 Gbit/s that the driver shares among all nodes, episodes of equal length, and a driver on a core
of its own. Efficiency is the share of the time of all cores that is simulation. `whole runs from` is the
number of cores at which whole runs of 8 cores each, as many at once as fit, use them better by a quarter.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import qdbench
from qdbench import stream
from qdbench.algorithms.registry import build, configure
from qdbench.archives.evaluated import Evaluated
from qdbench.experiments.cluster.chunks import Chunks
from qdbench.experiments.plan import Plan
from studies.two_nodes import TwoNodes

NODE_CORES, NETWORK, LATENCY = 64, 1.25e9, 1e-3  # bytes and seconds
WORTH_IT = 0.8
"""Below this share of the efficiency on 8 cores, batches should give way to whole runs of 8 cores each."""
TICKS = os.sysconf("SC_CLK_TCK")


def processes(session: int) -> dict[Path, list[int]]:
    """Return the processes of a session: their folders in /proc, and what `stat` has from the state on."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            _, *fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(fields[2]) == session:
            found[entry] = list(map(int, fields))
    return found


def session_cpu(session: int) -> float:
    """Return the CPU seconds of a session's processes, and of their children that have ended."""
    return sum(sum(fields[10:14]) for fields in processes(session).values()) / TICKS


def memory(*entries: Path) -> float:
    """Return the memory of processes in MB, without the object store, whose size is fixed."""
    found = 0
    for entry in entries:
        with suppress(OSError):  # it has ended
            lines = (entry / "status").read_text().splitlines()
            found += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
    return found / 1024


def ask_and_tell(task: qdbench.Task, n: int, batches: int = 10) -> float:
    """Return the CPU seconds that MAP-Elites takes to ask for and be told a batch."""
    options = configure("map_elites", {"batch_size": str(n)})
    plan = Plan(task=task, task_source=task.name, algorithm="map_elites", options=options, seed=0)
    algorithm, rng = build("map_elites", plan.problem(), 0, options), stream(0, "outcomes")
    low, high = np.array(task.descriptor_bounds).T
    start = time.process_time()
    for i in range(batches):
        solutions, numbers = algorithm.ask(), np.arange(i * n, (i + 1) * n)[:, None]
        told = Evaluated(
            solutions,
            rng.random(n),
            rng.uniform(low, high, (n, len(low))),
            numbers,
            numbers.astype(np.uint64),
        )
        algorithm.tell(told)
    return (time.process_time() - start) / batches


def measured(name: str, n: int, batches: int, steps: int, cluster: TwoNodes) -> dict[str, Any]:
    """Measure batches on two nodes and with two threads, alternating."""
    from qdbench.experiments.evaluators import evaluators_on

    task = qdbench.make(name, episode_length=steps)
    solutions, seeds = task.random_solutions(n, stream(0, "scale")), np.arange(n)
    with evaluators_on("ray") as evaluators:
        crew: Any = evaluators(task)
        crew(solutions, seeds)  # workers start, and the task is compiled
        task.evaluate(solutions[:8], seeds[:8], workers=2)
        found = dict.fromkeys(
            ("ray_wall", "ray_driver", "ray_others", "simulation", "put", "wait", "local_wall", "local_cpu"),
            0.0,
        )
        for _ in range(batches):
            inside = sum(work.cpu_seconds for work in crew.done.values())
            before = time.perf_counter(), time.process_time(), session_cpu(cluster.session)
            put, wait = crew.put_seconds, crew.wait_seconds
            crew(solutions, seeds)
            found["ray_wall"] += time.perf_counter() - before[0]
            found["ray_driver"] += time.process_time() - before[1]
            found["ray_others"] += session_cpu(cluster.session) - before[2]
            found["simulation"] += sum(work.cpu_seconds for work in crew.done.values()) - inside
            found["put"] += crew.put_seconds - put
            found["wait"] += crew.wait_seconds - wait
            before = time.perf_counter(), time.process_time(), 0.0
            task.evaluate(solutions, seeds, workers=2)
            found["local_wall"] += time.perf_counter() - before[0]
            found["local_cpu"] += time.process_time() - before[1]
    total = found["ray_driver"] + found["ray_others"]
    return {
        "task": name, "steps": steps, "batch": n, "batches": batches, "bytes": solutions.nbytes,
        **{key: value / batches for key, value in found.items()},
        "outside": 1 - found["simulation"] / total,
        "wall_ratio": found["ray_wall"] / found["local_wall"],
        "cpu_ratio": total / found["local_cpu"],
        "ask_tell": ask_and_tell(task, n),
    }  # fmt: skip


def measure(chosen: argparse.Namespace) -> None:
    found = []
    with TwoNodes() as cluster:
        os.environ.update(cluster.environment)
        for name, n in itertools.product(chosen.tasks, chosen.sizes):
            one = measured(name, n, chosen.batches, chosen.episode_length, cluster)
            found.append(one)
            print(in_words(one), flush=True)
    chosen.out.write_text(json.dumps(found, indent=1))


def bounded(chosen: argparse.Namespace) -> None:
    """Print the memory of the command and of the cluster during many batches of two steps."""
    from qdbench.experiments.evaluators import evaluators_on

    task = qdbench.make(chosen.task, episode_length=2)
    solutions, seeds = task.random_solutions(chosen.size, stream(0, "scale")), np.arange(chosen.size)
    with TwoNodes() as cluster:
        os.environ.update(cluster.environment)
        with evaluators_on("ray") as evaluators:
            crew = evaluators(task)
            print("| batches | command (MB) | all processes of the cluster (MB) |\n|---|---|---|")
            for i in range(1, chosen.batches + 1):
                crew(solutions, seeds)
                if i == 1 or i % max(1, chosen.batches // 10) == 0:
                    here, there = memory(Path("/proc/self")), memory(*processes(cluster.session))
                    print(f"| {i} | {here:.0f} | {there:.0f} |", flush=True)


def in_words(one: dict[str, Any]) -> str:
    return (
        f"{one['task']}, batch {one['batch']}: per batch {one['ray_driver'] + one['ray_others']:.2f} CPU s "
        f"with Ray, of which {one['outside']:.1%} outside simulation (driver {one['ray_driver']:.3f} s), "
        f"{one['local_cpu']:.2f} with two threads (ratio {one['cpu_ratio']:.3f}); wall-clock ratio "
        f"{one['wall_ratio']:.2f}; of {one['ray_wall']:.2f} s the driver waited {one['wait']:.2f} s and "
        f"serialised for {one['put']:.4f} s"
    )


def batch_seconds(one: dict[str, Any], n: int, nodes: Sequence[int]) -> float:
    """Return how long a batch takes on nodes with so many cores, by the scheduling of `Crew`."""
    each = one["simulation"] / one["batch"]  # CPU seconds of an episode
    row = one["bytes"] / one["batch"]
    per_chunk = one["ray_driver"] / max(1, n_chunks(one["batch"], (1, 1)))
    chunks, total = Chunks(n, int(row)), sum(nodes)
    driver: float = one["ask_tell"] * n / one["batch"]
    free = [(driver, i) for i in range(len(nodes))]
    heapq.heapify(free)
    end: float = driver
    while free:
        when, node = heapq.heappop(free)
        chunk = chunks.take(nodes[node], total, idle=True)
        if chunk is None:
            end = max(end, when)
            continue
        driver = max(driver, when) + per_chunk + len(chunk) * row / NETWORK
        rounds = -(-len(chunk) // nodes[node])
        heapq.heappush(free, (max(when, driver + LATENCY) + rounds * each, node))
        end = max(end, driver)
    return end


def n_chunks(n: int, nodes: Sequence[int]) -> int:
    chunks, found = Chunks(n, 4), 0
    while chunks.take(nodes[found % len(nodes)], sum(nodes), idle=True) is not None:
        found += 1
    return found


def efficiency(one: dict[str, Any], n: int, cores: int) -> float:
    nodes = [min(NODE_CORES, cores)] * max(1, cores // NODE_CORES)
    alone: float = n * one["simulation"] / one["batch"]
    return alone / (cores * batch_seconds(one, n, nodes))


def curve(chosen: argparse.Namespace) -> None:
    known = json.loads(chosen.constants.read_text())
    for one in known:
        predicted, found = batch_seconds(one, one["batch"], (1, 1)), one["ray_wall"]
        share = (
            one["ray_driver"] + one["ray_others"]
        ) / 2  # two cores do all the work, if nobody else has any
        print(
            f"{one['task']}, batch {one['batch']}, two one-core nodes: predicted {predicted:.2f} s, measured "
            f"{found:.2f} s of wall-clock time; {share:.2f} s of CPU time on each core"
        )
    cores = [2**k for k in range(3, 12)]
    for name, one in {one["task"]: one for one in known}.items():  # the last and largest batch of each task
        print(f"\nefficiency of batches of {name}, {one['steps']} steps\n")
        print(f"| batch | {' | '.join(f'{c:,}' for c in cores)} | whole runs from |")
        print(f"|{'---|' * (len(cores) + 2)}")
        for n in (256, 1024, 4096, 16384):
            values = [efficiency(one, n, c) for c in cores]
            better = (c for c, value in zip(cores, values, strict=True) if value < WORTH_IT * values[0])
            print(f"| {n:,} | {' | '.join(f'{value:.0%}' for value in values)} | {next(better, '-')} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("measure")
    first.add_argument("--tasks", nargs="+", default=["ant_omni"])
    first.add_argument("--sizes", type=int, nargs="+", default=[256, 1024])
    first.add_argument("--batches", type=int, default=10)
    first.add_argument("--episode-length", type=int, default=250)
    first.add_argument("--out", type=Path, default=Path("constants.json"))
    first.set_defaults(do=measure)
    second = commands.add_parser("curve")
    second.add_argument("constants", type=Path)
    second.set_defaults(do=curve)
    third = commands.add_parser("memory")
    third.add_argument("--task", default="ant_omni")
    third.add_argument("--size", type=int, default=256)
    third.add_argument("--batches", type=int, default=100)
    third.set_defaults(do=bounded)
    chosen = parser.parse_args()
    chosen.do(chosen)


if __name__ == "__main__":
    main()
