"""The machines of a cluster: how many CPUs each has, and whether its results are those of this machine."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray import cloudpickle
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from qdbench.errors import InvalidInput
from qdbench.experiments.environment import versions
from qdbench.store.plain import as_json, differences
from qdbench.store.record import NodeRecord, Versions

PROBE_SECONDS = 120.0
"""A node must answer within this time; its first process has to import all libraries."""


@dataclass(frozen=True)
class Node:
    """A machine of the cluster, or a part of one."""

    id: str
    name: str
    """Its host name; with a part of its id where several nodes have the same."""
    host: str
    cpus: int
    """All that Ray may use."""
    free: int
    """Those that nobody uses now."""


@dataclass(frozen=True)
class About:
    """What a process on a node says of itself."""

    versions: Versions
    host: str


def on_node(node: Node, kind: type, **options: Any) -> Any:
    """Return what starts an actor on a node; if that dies, it stays dead."""
    there: Any = NodeAffinitySchedulingStrategy(node.id, soft=False)
    actors: Any = ray.remote(kind)
    return actors.options(scheduling_strategy=there, max_restarts=0, **options).remote


def pickled(value: Any) -> bytes:
    """Return a value as it travels; also what was defined in a script or a notebook."""
    data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # Ray's copy has no types
    return data


def about_this_process() -> About:
    """Return versions and host; called on the nodes."""
    return About(versions(), platform.node())


class Probe:
    """An actor that only looks."""

    def about(self) -> About:
        """Return versions and host."""
        return about_this_process()


def alive_nodes() -> list[Node]:
    """Return the nodes with CPUs, in a fixed order."""
    known: Any = ray  # these two have no types
    free: dict[str, dict[str, float]] = known._private.state.available_resources_per_node()
    found = [one for one in known.nodes() if one["Alive"] and one["Resources"].get("CPU", 0) >= 1]
    hosts = [one["NodeManagerHostname"] for one in found]
    nodes = [
        Node(
            id=one["NodeID"],
            name=host if hosts.count(host) == 1 else f"{host}/{one['NodeID'][:6]}",
            host=host,
            cpus=int(one["Resources"]["CPU"]),
            free=int(free.get(one["NodeID"], {}).get("CPU", 0)),
        )
        for one, host in zip(found, hosts, strict=True)
    ]
    return sorted(nodes, key=lambda node: (node.host, node.id))


def require_same(nodes: Sequence[Node], *, elsewhere: bool) -> None:
    """Refuse nodes on which results may differ from those of this machine, unless `elsewhere`."""
    probes = [on_node(node, Probe, num_cpus=0)() for node in nodes]
    asked = [probe.about.remote() for probe in probes]
    ready, _ = ray.wait(asked, num_returns=len(asked), timeout=PROBE_SECONDS)
    for node, ref in zip(nodes, asked, strict=True):
        if ref not in ready:
            raise InvalidInput(
                f"node {node.name} did not answer within {PROBE_SECONDS:.0f} s; see Ray's logs there, or "
                "stop Ray on it"
            )
        try:
            there: About = ray.get(ref)
        except ray.exceptions.RayTaskError as error:
            raise InvalidInput(
                f"node {node.name} cannot run qdbench: {in_short(error)}; install the same qdbench there"
            ) from None
        except ray.exceptions.RayError:  # it died: others may be left
            continue
        if problem := "" if elsewhere else unlike(node.name, there.versions):
            raise InvalidInput(problem)


def unlike(name: str, there: Versions) -> str:
    """Return a sentence if results of a node may differ from those of this machine; else nothing."""
    found = differences(there, versions())
    if not found:
        return ""
    return (
        f"node {name} has another CPU or other versions ({'; '.join(found)}); results may not be exactly "
        "the same. Give --elsewhere to use it anyway, or stop Ray on it"
    )


def recorded(node: Node, cpus: int, there: Versions) -> NodeRecord:
    """Return what run.json says of a node."""
    own, others = as_json(versions()), as_json(there)
    return NodeRecord(node.host, cpus, {key: text for key, text in others.items() if text != own[key]})


def in_short(error: BaseException) -> str:
    """Return the last line of what Ray says about a failure on a node."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    words = " ".join(lines[-1].split())
    name = type(cause).__name__
    return words if words.startswith(name) or cause is error else f"{name}: {words}"
