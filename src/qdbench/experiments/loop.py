"""The loop: ask, evaluate, tell, measure, and now and then a checkpoint. Read this first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from qdbench.algorithms.contract import Algorithm, HasArchive
from qdbench.algorithms.state import flatten
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Geometry, Grid
from qdbench.errors import BrokenAlgorithm
from qdbench.experiments.correcting import Corrector
from qdbench.experiments.evaluators import Evaluator
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.plan import Plan
from qdbench.metrics.scores import Scores, best_per_cell, scores
from qdbench.policy import Parameters
from qdbench.store.archive_file import write_archive
from qdbench.store.folder import Checkpoint, RunFolder
from qdbench.store.metrics_file import MetricsFile
from qdbench.store.record import Target, Totals
from qdbench.tasks.contract import Evaluations

CHECKPOINT_SHARE = 0.02
"""Checkpoints may take this share of the time: one that took a second is followed by 50 without."""


@dataclass(frozen=True)
class RunProgress:
    """What a progress bar shows."""

    totals: Totals
    scores: Scores
    n_cells: int | None
    in_flight: int = 0
    """Evaluations of the current batch that are done."""
    correcting: tuple[int, int] | None = None
    """Re-evaluations done and needed, while elites are re-evaluated."""


Listener = Callable[[RunProgress], None]


class Loop:
    """A run in motion."""

    def __init__(self, plan: Plan, algorithm: Algorithm, totals: Totals, evaluate: Evaluator) -> None:
        self.plan, self.algorithm, self.totals, self._evaluate = plan, algorithm, totals, evaluate
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
            listener(RunProgress(self.totals, self.measured, self._n_cells()))
            self.totals.metrics_seconds += time.perf_counter() - start
            if time.monotonic() >= due:
                cost = self.checkpoint(folder, metrics)
                on_checkpoint()
                due = time.monotonic() + max(checkpoint_every, cost / CHECKPOINT_SHARE)

    def _crossed(self, target: Target) -> bool:
        """Return whether the last iteration passed one of the evenly spaced correction points."""
        if not target.evaluations:
            return False
        n = target.corrections.points
        before, now = self.totals.previous_evaluations, self.totals.evaluations
        return before * n // target.evaluations < min(now * n // target.evaluations, n)

    def _correct(self, corrector: Corrector, interrupt: Interrupt, listener: Listener) -> None:
        """Re-evaluate the present elites: outside the budget and outside the clock."""
        start = time.perf_counter()
        collection = self.algorithm.collection()

        def progress(done: int, total: int) -> None:
            listener(RunProgress(self.totals, self.measured, self._n_cells(), correcting=(done, total)))

        try:
            cells = self.geometry.cells(collection.descriptors)
            corrector.correct(self.totals.evaluations, collection, cells, interrupt, progress)
        finally:
            self.totals.correction_seconds += time.perf_counter() - start

    @property
    def geometry(self) -> Geometry:
        """What the algorithm's elites are kept in: its archive's geometry, or the task's grid."""
        return self._grid if self._archive is None else self._archive.geometry

    def checkpoint(self, folder: RunFolder, metrics: MetricsFile) -> float:
        """Write all that is needed to continue; return the seconds it took."""
        start = time.perf_counter()
        metrics.sync()
        arrays, rest = flatten(self.algorithm.state())
        checkpoint = Checkpoint(arrays, rest, self.totals, metrics.written)
        folder.write_checkpoint(self.plan.determinants(), checkpoint)
        cost = time.perf_counter() - start
        self.totals.checkpoint_seconds += cost
        return cost

    def _iterate(self, interrupt: Interrupt, listener: Listener) -> None:
        """One iteration; an interruption is possible only while the batch is evaluated."""
        totals = self.totals
        start = time.perf_counter()
        solutions = self.algorithm.ask()
        self._require_solutions(solutions)
        asked = time.perf_counter()
        seeds = self.plan.seeds(totals.evaluations, len(solutions))
        before = time.perf_counter()

        def progress(done: int, total: int) -> None:
            listener(RunProgress(totals, self.measured, self._n_cells(), in_flight=done))

        with interrupt.allowed():
            evaluation = self._evaluate(solutions, seeds, progress=progress)
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

    def _count(self, evaluation: Evaluations) -> None:
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
        return self.geometry.n_cells

    def write_archive(self, folder: RunFolder) -> None:
        """Write archive.npz: the collection, its cells, and how to find cells again."""
        collection, n = self.algorithm.collection(), self.totals.evaluations
        write_archive(folder.archive_path, self.plan.determinants(), n, collection, self.geometry)

    def _require_solutions(self, solutions: Parameters) -> None:
        if not isinstance(solutions, np.ndarray) or solutions.ndim != 2 or not len(solutions):
            shape = getattr(solutions, "shape", type(solutions).__name__)
            raise BrokenAlgorithm(f"{self.plan.algorithm} asked for {shape} instead of (n, parameters)")
