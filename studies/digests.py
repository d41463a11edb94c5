"""What studies/discrimination.py needs of a run: small enough to be kept when the run itself is gone.

A campaign of many hours can so be made seed by seed, on one machine after the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench.analysis.measured import MeasuredRun, MeasuredTask
from qdbench.analysis.measures import PlacedRun
from qdbench.errors import InvalidInput
from qdbench.store.plain import differences
from studies.campaign import CONTENDERS, Values
from studies.kept import made, task_of, write_numbers

SHOWN = ("coverage", "alive_share", "qd_score", "corrected_qd_score", "max_fitness", "return_rate")
GROWN = ("coverage", "qd_score")


@dataclass(frozen=True)
class Elites:
    """Filled cells of the task's grid, and the fitness in them."""

    cells: NDArray[np.int64]
    fitness: Values


@dataclass(frozen=True)
class Digest:
    """One run."""

    contender: str
    seed: int
    made: dict[str, Any]
    """When, where and with which versions."""
    values: dict[str, float]
    """The final metrics of `SHOWN`."""
    evaluations: Values  #: (iterations,)
    curves: Values  #: (2, iterations), those of `GROWN`
    stored: Elites
    corrected: Elites

    @property
    def key(self) -> tuple[str, int]:
        """What tells apart the runs of a task."""
        return self.contender, self.seed

    def row(self) -> dict[str, float]:
        """Return what is shown of a run: final metrics, and growth since half and three quarters."""
        return {"seed": self.seed, **self.values, **growth(self.evaluations, self.curves)}


def growth(evaluations: Values, curves: Values) -> dict[str, float]:
    """Return by which share coverage and QD score grew since half and since three quarters of the budget."""
    found = {}
    for name, curve in zip(GROWN, curves, strict=True):
        for since, share in (("half", 0.5), ("three_quarters", 0.75)):
            before = curve[np.searchsorted(evaluations, share * evaluations[-1])]
            found[f"{name}_growth_since_{since}"] = curve[-1] / before - 1 if before > 0 else np.nan
    return found


@dataclass(frozen=True)
class Digests:
    """The runs of one task, in the order of contenders and seeds."""

    task: dict[str, Any]
    """Name, version, fingerprint and episode length."""
    interval: tuple[float, float]
    """That of the QD score."""
    shape: tuple[int, ...]
    """Cells along every dimension of the grid."""
    has_border: bool
    """Whether descriptors can lie outside the bounds."""
    runs: tuple[Digest, ...]

    def of(self, contender: str) -> list[Digest]:
        """Return the runs of one contender, by seed."""
        return [run for run in self.runs if run.contender == contender]

    def chosen(self, seeds: Iterable[int]) -> Digests:
        """Return the same with these seeds only."""
        wanted = set(seeds)
        return replace(self, runs=tuple(run for run in self.runs if run.seed in wanted))

    def joined(self, other: Digests) -> Digests:
        """Return these runs and what only the other has; refuse another task."""
        apart = differences(_facts(other), _facts(self))
        if apart:
            raise InvalidInput(f"these runs are not of the same task: {'; '.join(apart)}")
        return replace(self, runs=ordered([*other.runs, *self.runs]))


def _facts(one: Digests) -> dict[str, Any]:
    return {"task": one.task, "interval": list(one.interval), "cells": list(one.shape)}


def ordered(runs: Iterable[Digest]) -> tuple[Digest, ...]:
    """Return runs by contender and seed; of two alike, the last."""
    places = {name: place for place, name in enumerate(CONTENDERS)}
    by_key = {run.key: run for run in runs if run.contender in places}
    return tuple(sorted(by_key.values(), key=lambda run: (places[run.contender], run.seed)))


# From runs


def digests(task: MeasuredTask) -> Digests:
    """Return what the study needs of the measured runs of a task."""
    names = {contender.label: name for name, contender in CONTENDERS.items()}
    record = task.runs[0].record
    return Digests(
        task=task_of(record),
        interval=task.by.interval,
        shape=task.runs[0].grid.shape,
        has_border=not record.facts.counts_steps,
        runs=ordered(
            _digest(names[variant.label], run)
            for variant in task.variants
            if variant.label in names
            for run in variant.runs
        ),
    )


def _digest(contender: str, run: MeasuredRun) -> Digest:
    record, placed = run.run.record, PlacedRun(qdbench.load(run.run.path), "grid")
    stored, point = placed.stored, placed.run.final_point
    after = stored if point is None else placed.corrected(point)
    return Digest(
        contender=contender,
        seed=run.seed,
        made=made(record),
        values={name: run.values.get(name, np.nan) for name in SHOWN},
        evaluations=np.asarray(run.curves.evaluations, np.float64),
        curves=np.stack([run.curves.values[name] for name in GROWN]),
        stored=Elites(stored.cells, stored.elites.fitness),
        corrected=Elites(after.cells, after.elites.fitness),
    )


# Files


def write_digests(path: Path, found: Digests) -> None:
    """Write the digests of one task."""
    write_numbers(path, asdict(found))


def read_digests(path: Path) -> Digests:
    """Read such a file."""
    found = json.loads(path.read_text())
    return Digests(
        task=found["task"],
        interval=tuple(found["interval"]),
        shape=tuple(found["shape"]),
        has_border=found["has_border"],
        runs=tuple(_read_run(run) for run in found["runs"]),
    )


def _read_run(run: dict[str, Any]) -> Digest:
    return Digest(
        contender=run["contender"],
        seed=run["seed"],
        made=run["made"],
        values={name: np.nan if value is None else value for name, value in run["values"].items()},
        evaluations=np.array(run["evaluations"], np.float64),
        curves=np.array(run["curves"], np.float64),
        stored=_read_elites(run["stored"]),
        corrected=_read_elites(run["corrected"]),
    )


def _read_elites(found: dict[str, Any]) -> Elites:
    return Elites(np.array(found["cells"], np.int64), np.array(found["fitness"], np.float64))
