"""A connection to a Ray cluster: the one the user names, or one of our own on this machine."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdbench.checks import checked_text, checked_workers
from qdbench.errors import InvalidInput
from qdbench.experiments.cluster.code import copied, own_modules
from qdbench.experiments.cluster.left_over import remove_left_over
from qdbench.sources import import_problem

REACH_SECONDS = 5.0
STORE_BYTES = 2**30
"""Shared memory of a cluster of our own, at most: chunks in flight need far less."""
_TOKEN = secrets.token_hex(32)  # Ray keeps the first it reads: one for all clusters of this process
OWN_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # as fast as without Ray, also beside other programs
}
OWN = "qdbench-ray-"
"""How the folders of our own clusters begin; the number of the process follows."""


def checked_on(on: str) -> str | None:
    """Return the address HOST:PORT that `on` names; None for `ray` alone."""
    text = checked_text("on", on)
    match = re.fullmatch(r"ray|ray://(\[[0-9a-fA-F:]+\]|[^\s/:]+):(\d{1,5})", text)
    if match is None:
        raise InvalidInput(f"on is {text!r}; give ray, or ray://HOST:PORT with the address of a cluster")
    return None if match[1] is None else f"{match[1]}:{match[2]}"


@dataclass(frozen=True)
class Cluster:
    """A cluster while this process is connected to it."""

    elsewhere: bool
    """Use nodes with another CPU or other versions, too."""
    own: bool
    """It was started by this process, on this machine."""


@contextmanager
def connected(on: str, *, cpus: int | None = None, elsewhere: bool = False) -> Iterator[Cluster]:
    """Connect to a cluster, or start one with so many CPUs; what was started here is ended.

    The nodes get the code of all modules of the user that have been imported by now.
    """
    address = checked_on(on) or os.environ.get("RAY_ADDRESS") or None
    _require_ray()
    import ray

    from qdbench.experiments.cluster.nodes import alive_nodes, require_same

    with ExitStack() as stack:
        own = False
        if not ray.is_initialized():  # else the user has connected already, and it stays so
            own = address is None
            stack.enter_context(_quiet())
            stack.enter_context(_signals_kept())
            code = stack.enter_context(copied(own_modules()))
            shipped = {} if code is None else {"runtime_env": {"working_dir": str(code)}}
            stack.enter_context(_started(cpus, shipped) if address is None else _joined(address, shipped))
        nodes = alive_nodes()
        if not any(node.free for node in nodes):
            raise InvalidInput(
                "the cluster has no free CPU; wait for its other jobs, or add a node with `ray start`"
            )
        require_same(nodes, elsewhere=elsewhere)
        yield Cluster(elsewhere, own)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Ray print nothing about nodes that die: the run goes on, and its progress shows the nodes."""
    from ray._private import worker

    logging.getLogger("ray").setLevel(logging.ERROR)
    usual = worker.print_to_stdstream
    worker.print_to_stdstream = lambda data, ignore_prefix: None
    try:
        yield
    finally:
        worker.print_to_stdstream = usual


def _require_ray() -> None:
    try:
        import ray  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"--on ray needs the extra 'ray': pip install 'qdbench[ray]' ({import_problem(error, 'ray')})"
        ) from None


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Give back the handlers of signals that Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _environment(**changes: str | None) -> Iterator[None]:
    """Set environment variables, and put back what was there; None: Ray may set it."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update({name: value for name, value in changes.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _joined(address: str, shipped: dict[str, Any]) -> Iterator[None]:
    """Be connected to the cluster at an address."""
    import ray

    _require_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, **shipped)
    except Exception as error:  # Ray has no common class for what can go wrong here
        reason = " ".join(str(error).split())[:400] or type(error).__name__
        raise InvalidInput(
            f"cannot use the Ray cluster at {address}: {reason}. This machine must be a node of the cluster: "
            f"see `ray start --address={address}`"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _require_reachable(address: str) -> None:
    """Say at once that nobody listens at an address; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():  # auto, for example
        return
    if address.startswith("ray:"):
        raise InvalidInput(
            f"RAY_ADDRESS is {address}, which is for Ray's client; give HOST:PORT of the cluster itself "
            "(port 6379 unless chosen), on a machine that is a node of it"
        )
    from ray._private import services

    try:
        there = services.resolve_ip_for_localhost(host.strip("[]"))  # Ray itself never uses 127.0.0.1
        socket.create_connection((there, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"no Ray cluster answers at {address} ({error}); is it running, and is that the port of "
            "`ray start --head` (6379 unless chosen)?"
        ) from None


@contextmanager
def _started(cpus: int | None, shipped: dict[str, Any]) -> Iterator[None]:
    """Have a cluster of our own: on loopback only, and gone afterwards with all its files."""
    import ray
    from ray._private import ray_constants

    remove_left_over(OWN, _short_folder())
    folder = Path(tempfile.mkdtemp(prefix=f"{OWN}{os.getpid()}-", dir=_short_folder()))
    reachable = ray_constants.ENABLE_RAY_CLUSTER
    try:
        with _environment(**OWN_SETTINGS, RAY_AUTH_TOKEN=_TOKEN, RAY_AUTH_MODE=None):
            ray_constants.ENABLE_RAY_CLUSTER = False  # as on macOS and Windows: the address is 127.0.0.1
            try:
                ray.init(
                    address="local",
                    num_cpus=cpus or checked_workers(None),
                    object_store_memory=STORE_BYTES,
                    include_dashboard=False,
                    log_to_driver=False,
                    configure_logging=False,
                    _temp_dir=str(folder),
                    **shipped,
                )
                nodes: Any = ray.nodes  # it has no types
                if any(one["NodeManagerAddress"] != "127.0.0.1" for one in nodes()):
                    raise InvalidInput("Ray listens beyond this machine; start it yourself with `ray start`")
                yield
            finally:
                ray.shutdown()
                ray_constants.ENABLE_RAY_CLUSTER = reachable
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _short_folder() -> str:
    """Return where sockets can be: their whole path may have 107 characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 30 or not os.access("/tmp", os.W_OK) else "/tmp"
