"""A real Ray cluster of two nodes on this machine, whose second node can be killed and started again.

    with TwoNodes() as cluster:
        ...  # RAY_ADDRESS=cluster.address qdbench run ... --on ray
        cluster.kill()
        cluster.restart()

It lives in a process of its own, so that whoever uses it imports nothing of Ray.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_health_check_period_ms": "1000",  # a dead node is noticed sooner than by default
    "RAY_health_check_failure_threshold": "3",
}
LOOPBACK = {
    **QUIET,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}  # as there, nothing listens beyond this machine


class TwoNodes:
    """Two nodes with so many CPUs each."""

    prefix = ()
    """What makes a command run on the first node: nothing."""

    def __init__(self, *cpus: int) -> None:
        self.cpus = cpus or (1, 1)

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp(prefix="two-nodes-", dir="/tmp")  # short, for the sockets in it
        os.mkdir(f"{self._folder}/ray")
        self._process = subprocess.Popen(
            [sys.executable, __file__, *map(str, self.cpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **LOOPBACK, "RAY_TMPDIR": self._folder},
            start_new_session=True,  # Ctrl-C in a terminal is not for the cluster
        )
        self.session = self._process.pid  # all its processes belong to it
        self.address = self._answer()
        self.environment = {**LOOPBACK, "RAY_ADDRESS": self.address}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)  # its input ends, and so does it
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the second node: its raylet gets SIGKILL."""
        self._tell("kill")

    def restart(self, **environment: str) -> None:
        """Start a second node again, whose processes have these environment variables."""
        self._tell(" ".join(["restart", *(f"{name}={value}" for name, value in environment.items())]))

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        assert self._answer() == word

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("> "):
                return line[2:].strip()
        raise RuntimeError("the cluster has ended")


def serve(cpus: Sequence[int]) -> None:
    from ray.cluster_utils import Cluster

    first = {"num_cpus": cpus[0], "include_dashboard": False, "object_store_memory": 2**28}
    cluster: Any = Cluster(initialize_head=True, head_node_args=first)
    try:
        second = [cluster.add_node(num_cpus=n, object_store_memory=2**28) for n in cpus[1:]]
        print(f"> {cluster.address}", flush=True)
        for line in sys.stdin:
            word, *more = line.split()
            if word == "restart":
                before = dict(os.environ)
                os.environ.update(dict(pair.split("=") for pair in more))
                second = [cluster.add_node(num_cpus=cpus[1], object_store_memory=2**28)]
                os.environ.clear()
                os.environ.update(before)
            elif word == "kill":
                os.kill(second[0].all_processes["raylet"][0].process.pid, signal.SIGKILL)
                cluster.remove_node(second.pop(), allow_graceful=False)
            print(f"> {line.strip()}", flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    serve([int(word) for word in sys.argv[1:]])
