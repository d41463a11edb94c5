"""Two hosts on this machine: real `ray start` in two network namespaces, joined by a cable. As root on Linux.

    with TwoHosts() as cluster:
        ...  # [*cluster.prefix, "qdbench", "run", ..., "--on", "ray"], with cluster.environment
        cluster.kill()     # the second host loses its cable and its power at once
        cluster.restart()

The second host has its own address, name, processes, /tmp and shared memory. The first one has its own
address and the files of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from studies.two_nodes import QUIET

NAMES = ("qdbench-first", "qdbench-second")
ADDRESSES = ("10.77.13.1", "10.77.13.2")
PORT = 6379
RAY = str(Path(sys.executable).with_name("ray"))
ALONE = "mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /dev/shm && hostname second-host && exec "
"""What the second host does before it starts Ray."""


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


class TwoHosts:
    """Two hosts with one CPU each."""

    prefix = ("ip", "netns", "exec", NAMES[0])
    """What makes a command run on the first host."""
    address = f"{ADDRESSES[0]}:{PORT}"

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp(prefix="two-hosts-", dir="/tmp")
        self.environment = {**QUIET, "RAY_ADDRESS": self.address, "RAY_TMPDIR": self._folder}
        self._remove_network()
        for name in NAMES:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        self._plug_in()
        head = ["--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={self._folder}"]
        self._first = self._start([*self.prefix, *self._ray(0, *head)])
        self._wait_for_port()
        self.restart()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._second.kill()
        self._second.wait(60)
        self._first.terminate()
        self._first.wait(60)
        self._remove_network()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """Let the second host vanish: nothing it sends arrives any more, not even that it is gone."""
        ip("-n", NAMES[1], "link", "set", "cable", "down")
        self._second.kill()  # the first process of its namespace: the kernel ends all others
        self._second.wait(60)

    def restart(self) -> None:
        """Start the second host; return when it is a node of the cluster."""
        ip("-n", NAMES[1], "link", "set", "cable", "up")
        self._wait_for(1)  # a host that vanished is missed only after some seconds
        words = " ".join(self._ray(1, f"--address={self.address}"))
        own = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--kill-child", "--fork", "--mount-proc"]
        self._second = self._start(["ip", "netns", "exec", NAMES[1], *own, "sh", "-c", ALONE + words])
        self._wait_for(2)

    def _ray(self, host: int, *more: str) -> list[str]:
        store = f"--object-store-memory={2**28}"
        return [RAY, "start", f"--node-ip-address={ADDRESSES[host]}", "--num-cpus=1", store, "--block", *more]

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            env={**os.environ, **QUIET},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _wait_for(self, n_nodes: int) -> None:
        deadline = time.monotonic() + 60
        while self._nodes() != n_nodes:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the cluster did not have {n_nodes} nodes within a minute")
            time.sleep(0.5)

    def _nodes(self) -> int:
        """Return how many nodes are alive, as a process on the first host sees it."""
        code = "import ray; ray.init(log_to_driver=False); print(sum(n['Alive'] for n in ray.nodes()))"
        environment = {**os.environ, **self.environment}
        words = [*self.prefix, sys.executable, "-c", code]
        found = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return int(found.stdout.split()[0])  # Ray may print more

    def _wait_for_port(self) -> None:
        code = f"import socket; socket.create_connection(('{ADDRESSES[0]}', {PORT}), 1)"
        deadline = time.monotonic() + 60
        while subprocess.run([*self.prefix, sys.executable, "-c", code], capture_output=True).returncode:
            if time.monotonic() > deadline or self._first.poll() is not None:
                raise RuntimeError("`ray start --head` did not listen within a minute")
            time.sleep(0.5)

    @staticmethod
    def _plug_in() -> None:
        peer = ["type", "veth", "peer", "name", "cable", "netns", NAMES[1]]
        ip("link", "add", "cable", "netns", NAMES[0], *peer)
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")

    @staticmethod
    def _remove_network() -> None:
        for name in NAMES:
            ip("netns", "del", name, check=False)
