"""The loop: ask, evaluate, tell, measure, and now and then a checkpoint. Read this first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from qdbench.algorithms.contract import Algorithm, HasArchive
from qdbench.archives.archive import Archive, Geometry
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Grid
from qdbench.archives.stored import Container
from qdbench.errors import BrokenAlgorithm, InvalidInput
from qdbench.experiments.corrections import Corrector
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.plan import Plan
from qdbench.experiments.store import MetricsFile, RunFolder
from qdbench.metrics.scores import Scores, best_per_cell, scores
from qdbench.policy import Parameters
from qdbench.tasks.contract import Evaluation

CHECKPOINT_SHARE = 0.02
"""Checkpoints may take this share of the time: one that took a second is followed by 50 without."""


@dataclass
class Totals:
    """How far a run has come, and where its time went; kept in every checkpoint."""

    iteration: int = 0
    evaluations: int = 0
    previous_evaluations: int = 0
    """Before the last iteration."""
    steps: int = 0
    invalid: int = 0
    lowest_fitness: float = np.nan
    """Of all valid evaluations so far, as `highest_fitness`; NaN while there is none."""
    highest_fitness: float = np.nan
    seconds: float = 0.0
    """Asking, evaluating, telling and what holds them together; nothing of what follows below."""
    simulation_seconds: float = 0.0
    algorithm_seconds: float = 0.0
    metrics_seconds: float = 0.0
    checkpoint_seconds: float = 0.0
    setup_seconds: float = 0.0
    correction_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON holds them: it has no NaN."""
        return {key: None if value != value else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, numbers: Mapping[str, Any]) -> Totals:
        """Return what `to_json` wrote."""
        known: dict[str, Any] = {key: np.nan if value is None else value for key, value in numbers.items()}
        return cls(**known)


@dataclass(frozen=True)
class Corrections:
    """When elites are re-evaluated, and how often."""

    moments: int = 0
    """Evenly spaced in evaluations; the last is the end. An iteration that passes several is one moment."""
    reevaluations: int = 50


@dataclass(frozen=True)
class Target:
    """When a run ends, with the iteration that reaches either of these; and what is corrected until then."""

    evaluations: int | None = None
    seconds: float | None = None
    corrections: Corrections = Corrections()

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 <= self.seconds < float("inf"):
            raise InvalidInput(f"seconds is {self.seconds}; give a number of 0 or more")

    def reached(self, totals: Totals) -> bool:
        """Return whether the run has come far enough."""
        return (self.evaluations is not None and totals.evaluations >= self.evaluations) or (
            self.seconds is not None and totals.seconds >= self.seconds
        )


@dataclass(frozen=True)
class Snapshot:
    """What a progress bar shows."""

    totals: Totals
    scores: Scores
    n_cells: int | None
    in_flight: int = 0
    """Evaluations of the current batch that are done."""
    correcting: tuple[int, int] | None = None
    """Re-evaluations done and needed, while elites are re-evaluated."""


Listener = Callable[[Snapshot], None]
COLUMNS = (
    "iteration", "evaluations", "steps", "seconds", "simulation_seconds", "algorithm_seconds",
    "coverage", "qd_score", "max_fitness", "sum_fitness", "min_fitness",
    "grid_coverage", "grid_qd_score", "grid_max_fitness", "grid_sum_fitness", "grid_min_fitness",
    "lowest_fitness", "highest_fitness", "invalid",
)  # fmt: skip


class Loop:
    """A run in motion."""

    def __init__(self, plan: Plan, algorithm: Algorithm, totals: Totals, workers: int | None) -> None:
        self.plan, self.algorithm, self.totals, self.workers = plan, algorithm, totals, workers
        self._grid = Grid(plan.task.descriptor_bounds, plan.task.cells)
        self.measured = self._measure()[0]

    def run(
        self,
        target: Target,
        folder: RunFolder,
        metrics: MetricsFile,
        interrupt: Interrupt,
        *,
        checkpoint_every: float,
        listener: Listener,
        on_checkpoint: Callable[[], None],
        corrector: Corrector | None = None,
    ) -> bool:
        """Iterate until the target is reached (True) or an interruption came (False)."""
        due = time.monotonic() + checkpoint_every
        while True:
            try:
                done = target.reached(self.totals)
                if corrector is not None and (done or self._crossed(target)):
                    self._correct(corrector, interrupt, listener)  # also what an interruption left undone
                if done:
                    return True
                self._iterate(interrupt, listener)
            except Interrupted:
                return False
            start = time.perf_counter()
            metrics.append(self._row())
            listener(Snapshot(self.totals, self.measured, self._n_cells()))
            self.totals.metrics_seconds += time.perf_counter() - start
            if time.monotonic() >= due:
                cost = self.checkpoint(folder, metrics)
                on_checkpoint()
                due = time.monotonic() + max(checkpoint_every, cost / CHECKPOINT_SHARE)

    def _crossed(self, target: Target) -> bool:
        """Return whether the last iteration passed one of the evenly spaced moments of the corrections."""
        if not target.evaluations:
            return False
        n = target.corrections.moments
        before, now = self.totals.previous_evaluations, self.totals.evaluations
        return before * n // target.evaluations < min(now * n // target.evaluations, n)

    def _correct(self, corrector: Corrector, interrupt: Interrupt, listener: Listener) -> None:
        """Re-evaluate the elites of this moment: outside the budget and outside the clock."""
        start = time.perf_counter()
        collection = self.algorithm.collection()

        def progress(done: int, total: int) -> None:
            listener(Snapshot(self.totals, self.measured, self._n_cells(), correcting=(done, total)))

        try:
            cells = self._geometry.cells(collection.descriptors)
            corrector.take(self.totals.evaluations, collection, cells, interrupt, progress)
        finally:
            self.totals.correction_seconds += time.perf_counter() - start

    @property
    def container(self) -> Container:
        """What the algorithm's elites are kept in: its archive's shape, or the task's grid."""
        return Container(self._geometry.kind, self._geometry.arrays())

    @property
    def _geometry(self) -> Geometry:
        return self._grid if self._archive is None else self._archive.geometry

    def checkpoint(self, folder: RunFolder, metrics: MetricsFile) -> float:
        """Write all that is needed to continue; return the seconds it took."""
        start = time.perf_counter()
        metrics.sync()
        meta = {"totals": self.totals.to_json(), "metrics": {"bytes": metrics.n_bytes, "crc32": metrics.crc}}
        folder.write_checkpoint(self.algorithm.state(), {**meta, "determinants": self.plan.determinants()})
        cost = time.perf_counter() - start
        self.totals.checkpoint_seconds += cost
        return cost

    def _iterate(self, interrupt: Interrupt, listener: Listener) -> None:
        """One iteration; an interruption is possible only while the batch is evaluated."""
        totals, task = self.totals, self.plan.task
        start = time.perf_counter()
        solutions = self.algorithm.ask()
        self._require_solutions(solutions)
        asked = time.perf_counter()
        seeds = self.plan.seeds(totals.evaluations, len(solutions))
        before = time.perf_counter()

        def progress(done: int, total: int) -> None:
            listener(Snapshot(totals, self.measured, self._n_cells(), in_flight=done))

        with interrupt.allowed():
            evaluation = task.evaluate(solutions, seeds, workers=self.workers, progress=progress)
        simulated = time.perf_counter()
        numbers = np.arange(totals.evaluations, totals.evaluations + len(solutions))
        told = Evaluated(
            solutions, evaluation.fitness, evaluation.descriptors, numbers[:, None], seeds[:, None]
        )
        telling = time.perf_counter()
        self.algorithm.tell(told)
        end = time.perf_counter()
        totals.simulation_seconds += simulated - before
        totals.algorithm_seconds += (asked - start) + (end - telling)
        totals.seconds += end - start
        self._count(evaluation)

    def _count(self, evaluation: Evaluation) -> None:
        totals, valid = self.totals, evaluation.valid
        totals.iteration += 1
        totals.previous_evaluations = totals.evaluations
        totals.evaluations += len(valid)
        totals.steps += int(evaluation.steps.sum())
        totals.invalid += int(len(valid) - valid.sum())
        if valid.any():
            fitness = evaluation.fitness[valid]
            totals.lowest_fitness = float(np.fmin(totals.lowest_fitness, fitness.min()))
            totals.highest_fitness = float(np.fmax(totals.highest_fitness, fitness.max()))

    def _measure(self) -> tuple[Scores, Scores]:
        """Measure the algorithm on its own container, and its collection on the task's grid."""
        interval = self.plan.task.fitness_bounds
        collection = self.algorithm.collection()
        archive = self._archive
        if archive is None:
            on_grid = scores(best_per_cell(collection, self._grid), interval)
            return on_grid, on_grid
        elites = archive.elites
        own = scores(elites.fitness, interval)
        same = len(elites) == len(collection) and np.shares_memory(elites.fitness, collection.fitness)
        if archive.geometry == self._grid and same:
            return own, own  # its container is the task's grid
        return own, scores(best_per_cell(collection, self._grid), interval)

    @property
    def _archive(self) -> Archive | None:
        return self.algorithm.archive if isinstance(self.algorithm, HasArchive) else None

    def _row(self) -> dict[str, int | float]:
        self.measured, on_grid = self._measure()
        row = {**asdict(self.totals), **asdict(self.measured)}
        return row | {f"grid_{name}": value for name, value in asdict(on_grid).items()}

    def _n_cells(self) -> int | None:
        return self._geometry.n_cells

    def archive_arrays(self) -> dict[str, Any]:
        """Return what archive.npz holds: the collection, its cells, and how to find cells again."""
        collection = self.algorithm.collection()
        geometry = self._geometry
        return {
            "kind": geometry.kind,
            **geometry.arrays(),
            "cells": geometry.cells(collection.descriptors),
            "samples": collection.samples,
            **{field.name: getattr(collection, field.name) for field in fields(collection)},
        }

    def _require_solutions(self, solutions: Parameters) -> None:
        if not isinstance(solutions, np.ndarray) or solutions.ndim != 2 or not len(solutions):
            shape = getattr(solutions, "shape", type(solutions).__name__)
            raise BrokenAlgorithm(f"{self.plan.algorithm} asked for {shape} instead of (n, parameters)")
