"""What studies/discrimination.py needs of a run beyond its metrics: growth, and what is in which cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench.analysis.measured import MeasuredRun
from qdbench.analysis.measures import PlacedRun
from studies.campaign import CONTENDERS, Values
from studies.kept import Known

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


def ordered(runs: Iterable[Digest]) -> tuple[Digest, ...]:
    """Return runs by contender and seed."""
    places = {name: place for place, name in enumerate(CONTENDERS)}
    return tuple(sorted(runs, key=lambda run: (places[run.contender], run.seed)))


def digest(run: MeasuredRun) -> dict[str, Any]:
    """Return what is kept of a run."""
    placed = PlacedRun(qdbench.load(run.run.path), "grid")
    stored, point = placed.stored, placed.run.final_point
    after = stored if point is None else placed.corrected(point)
    archives = {"stored": stored, "corrected": after}
    return {
        "along": {"evaluations": run.curves.evaluations, **{name: run.curves.values[name] for name in GROWN}},
        **{name: {"cells": one.cells, "fitness": one.elites.fitness} for name, one in archives.items()},
    }


def digests(known: Known) -> Digests:
    """Return what the study needs of the contenders' runs, as they were kept."""
    task = known["task"]
    return Digests(
        interval=tuple(task["score_interval"]),
        shape=tuple(task["cells"]),
        has_border=not task["counts_steps"],
        runs=ordered(
            _read(name, int(seed), run)
            for name, contender in CONTENDERS.items()
            for seed, run in known["runs"].get(contender.label, {}).items()
        ),
    )


def _read(contender: str, seed: int, run: dict[str, Any]) -> Digest:
    along = {name: np.array(column, np.float64) for name, column in run["along"].items()}
    return Digest(
        contender=contender,
        seed=seed,
        values={name: np.nan if run[name] is None else run[name] for name in SHOWN},
        evaluations=along["evaluations"],
        curves=np.stack([along[name] for name in GROWN]),
        stored=_elites(run["stored"]),
        corrected=_elites(run["corrected"]),
    )


def _elites(found: dict[str, Any]) -> Elites:
    return Elites(np.array(found["cells"], np.int64), np.array(found["fitness"], np.float64))
