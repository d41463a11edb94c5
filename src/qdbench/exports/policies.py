"""Policies outside their run: what is in a file, whatever its format."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cells
from qdbench.checks import checked_count
from qdbench.errors import InvalidInput
from qdbench.exports.facts import PolicyFacts, require_sound_facts
from qdbench.policy import Parameters, Policy
from qdbench.store.files import MOST_JSON, parsed_json
from qdbench.store.npz import Arrays, array_of, finite, within
from qdbench.store.plain import as_json, from_json
from qdbench.tasks.options import remade

if TYPE_CHECKING:
    from qdbench.tasks.contract import Task

FORMAT = 1
"""The version of exported files, counted apart from that of runs."""
Layers = list[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""For each layer weights (n, inputs, outputs) and biases (n, outputs)."""


@dataclass(frozen=True, eq=False)
class ExportedPolicy:
    """One policy or several with all facts to run them, as `qdbench.load_policy` reads them from a file."""

    facts: PolicyFacts = field(repr=False)
    """The task, the observation's layout, the actuators and everything else that a file says."""
    mjcf: str = field(repr=False)
    """The robot as it is simulated, for plain MuJoCo: with timestep, contacts and sensors."""
    elites: Evaluated = field(repr=False)
    """The parameters, and the fitness, descriptor, evaluation numbers and seeds they were found with."""
    cells: Cells = field(repr=False)  #: (n,) the elites' cells
    steps: NDArray[np.int64] = field(repr=False)  #: (n, k) control steps; 0 where there is no evaluation

    def __len__(self) -> int:
        return len(self.elites)

    @property
    def solutions(self) -> Parameters:
        """The parameters, one row per policy: what `task.evaluate` takes."""
        return self.elites.solutions

    @property
    def network(self) -> Policy:
        """The shape of the network."""
        return Policy(self.facts.network.sizes)

    def act(self, observations: NDArray[np.float32], elite: int = 0) -> NDArray[np.float32]:
        """Return the actions of one of the policies for a batch of observations, (batch, actions)."""
        parameters = self.solutions[self._row(elite)]
        batch = len(observations) if isinstance(observations, np.ndarray) and observations.ndim else 0
        return self.network.act(np.broadcast_to(parameters, (batch, len(parameters))), observations)

    def to_torch(self, elite: int = 0) -> Any:
        """Return one of the policies as a `torch.nn.Sequential`, for example to train it further."""
        from qdbench.exports.torch_file import module_of

        return module_of(self, self._row(elite))

    @property
    def task(self) -> Task:
        """The task of the policies; one of your own only by `make_task(trust=True)`."""
        return self.make_task()

    def make_task(self, *, trust: bool = False) -> Task:
        """Return the task, made again as it was; `trust` allows to import a module that the file names."""
        return remade(self.facts.task.source, self.facts.task.options, trust=trust)

    def layers(self) -> Layers:
        """Return the weights and biases of all policies, layer by layer."""
        found, start, sizes = [], 0, self.facts.network.sizes
        for n_in, n_out in pairwise(sizes):
            stop = start + n_in * n_out
            weights = self.solutions[:, start:stop].reshape(-1, n_in, n_out)
            found.append((weights, self.solutions[:, stop : stop + n_out]))
            start = stop + n_out
        return found

    def _row(self, elite: int) -> int:
        row = checked_count("elite", elite, 0)
        if row >= len(self):
            raise InvalidInput(f"elite is {row}, but there are {len(self)}, numbered from 0")
        return row


# What files share

COLUMNS = ("fitness", "descriptors", "evaluations", "seeds", "cells", "steps")


def columns_of(policy: ExportedPolicy) -> dict[str, NDArray[Any]]:
    """Return everything but the parameters that is known of each elite, as arrays."""
    own = {name: getattr(policy.elites, name) for name in COLUMNS[:4]}
    return own | {"cells": policy.cells, "steps": policy.steps}


def joined(facts: Any, mjcf: str, columns: Arrays, layers: Layers) -> ExportedPolicy:
    """Return what a file holds, every part checked; ValueError where it cannot be so."""
    known: PolicyFacts = from_json(PolicyFacts, facts, "what is said about it")
    policy, dimensions = require_sound_facts(known), len(known.task.cells)
    if len(mjcf) > MOST_JSON:
        raise ValueError(f"its MJCF has more than {MOST_JSON:,} characters")
    fitness = finite(columns, "fitness", (None,))
    n = len(fitness)
    if not n:
        raise ValueError("it has no policy")
    evaluations = within(columns, "evaluations", (n, None), -1, max(known.evaluations, 1))
    if len(layers) != len(policy.sizes) - 1:
        raise ValueError(f"it has {len(layers)} layers, its network {len(policy.sizes) - 1}")
    parts = []
    for i, (n_in, n_out) in enumerate(pairwise(policy.sizes)):
        layer = dict(zip((f"weights {i}", f"biases {i}"), layers[i], strict=True))
        parts.append(array_of(layer, f"weights {i}", np.float32, (n, n_in, n_out)).reshape(n, -1))
        parts.append(array_of(layer, f"biases {i}", np.float32, (n, n_out)))
    solutions = np.concatenate(parts, axis=1)
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError("a parameter is not finite")
    elites = Evaluated(
        solutions,
        fitness,
        finite(columns, "descriptors", (n, dimensions)),
        evaluations,
        array_of(columns, "seeds", np.uint64, evaluations.shape),
    )
    cells = within(columns, "cells", (n,), 0, 2**62)
    steps = within(columns, "steps", evaluations.shape, 0, 2**62)
    return ExportedPolicy(known, mjcf, elites, cells, steps)


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """The columns as JSON holds them, for formats that have room for texts only."""

    fitness: tuple[float, ...]
    descriptors: tuple[tuple[float, ...], ...]
    evaluations: tuple[tuple[int, ...], ...]
    seeds: tuple[tuple[int, ...], ...]
    cells: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]


_KINDS = {"fitness": np.float64, "descriptors": np.float64, "seeds": np.uint64}


def texts_of(policy: ExportedPolicy) -> dict[str, str]:
    """Return what formats without arrays of their own keep as texts, with a checksum over everything."""
    columns = {name: column.tolist() for name, column in columns_of(policy).items()}
    texts = {"facts": json.dumps(as_json(policy.facts)), "elites": json.dumps(columns), "mjcf": policy.mjcf}
    longest = max(texts, key=lambda name: len(texts[name]))
    if len(texts[longest]) > MOST_JSON:
        raise InvalidInput(
            f"{len(policy):,} policies take {len(texts[longest]):,} bytes of text ({longest}), more than "
            f"{MOST_JSON:,}; use the format npz, or export fewer"
        )
    return {"format": str(FORMAT), **texts, "checksum": _checksum(texts, policy.solutions)}


def from_texts(texts: Mapping[str, str], layers: Layers) -> ExportedPolicy:
    """Return what such a file holds, every part checked."""
    listed = from_json(_Columns, parsed_json(texts["elites"]), "the elites")
    columns = {
        column.name: np.array(getattr(listed, column.name), _KINDS.get(column.name, np.int64))
        for column in fields(_Columns)
    }
    policy = joined(parsed_json(texts["facts"]), texts["mjcf"], columns, layers)
    if texts.get("checksum") != _checksum(texts, policy.solutions):
        raise ValueError("its checksum does not fit")
    return policy


def _checksum(texts: Mapping[str, str], solutions: Parameters) -> str:
    crc = 0
    for name in ("facts", "elites", "mjcf"):
        crc = zlib.crc32(texts[name].encode(), crc)
    return f"{zlib.crc32(np.ascontiguousarray(solutions, '<f4').data, crc):08x}"
