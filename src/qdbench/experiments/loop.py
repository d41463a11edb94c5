"""The loop: ask, evaluate, tell, measure, and now and then a checkpoint. Read this first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.algorithms.contract import Algorithm, HasArchive, SavesState
from qdbench.algorithms.state import flatten
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Geometry, Grid
from qdbench.checks import checked_solutions, usable
from qdbench.errors import BrokenAlgorithm, DamagedFile, InvalidInput
from qdbench.experiments.correcting import Corrector
from qdbench.experiments.evaluators import Evaluator, interruptible, where_of
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.plan import Plan
from qdbench.experiments.steps_made import StepsMade
from qdbench.experiments.true_elites import broken_rule, require_true_elites
from qdbench.metrics.lives import lived
from qdbench.metrics.scores import Scores, fittest, scores
from qdbench.policy import Parameters
from qdbench.seeds import Seeds
from qdbench.store.archive_file import write_archive
from qdbench.store.folder import Checkpoint, RunFolder
from qdbench.store.metrics_file import MetricsFile
from qdbench.store.npz import compact
from qdbench.store.plain import as_json
from qdbench.store.record import Target, Totals
from qdbench.store.told_log import Told, ToldLog, checksum
from qdbench.tasks.contract import score_interval

SAME = ("evaluations", "previous_evaluations", "steps", "invalid", "lowest_fitness", "highest_fitness")
CLOCK = ("seconds", "simulation_seconds", "algorithm_seconds")
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
    replaying: bool = False
    """Whether the algorithm is told again what it was told before an interruption."""
    row: Mapping[str, float] | None = None
    """The new row of metrics.csv, when an iteration is complete."""
    where: str = ""
    """The machines of a cluster that work on it; empty if it is this one."""


Listener = Callable[[RunProgress], None]


class Loop:
    """A run in motion."""

    def __init__(
        self,
        plan: Plan,
        algorithm: Algorithm,
        totals: Totals,
        log: ToldLog,
        evaluate: Evaluator,
        *,
        reached: Totals,
        steps: StepsMade,
        measured_until: int = 0,
    ) -> None:
        """Begin or go on: the run had `reached` that far, `totals` is where the algorithm is.

        `steps` are those of the evaluations that the algorithm knows. The rows of the first `measured_until`
        iterations are written already.
        """
        self.plan, self.algorithm, self.totals = plan, algorithm, totals
        self._log, self._evaluate, self._steps = log, evaluate, steps
        self._reached, self._measured_until, self._is_back = reached, measured_until, False
        self._replayed = False  # whether the last iteration was told again
        self._grid = Grid(plan.task.descriptor_bounds, plan.task.cells)
        self._interval = score_interval(plan.task)
        self._episode_length = plan.determinants().task.episode_length
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
        on_saved: Callable[[], None],
        corrector: Corrector | None = None,
    ) -> bool:
        """Iterate until the target is reached (True) or an interruption came (False).

        `on_saved` is called after every checkpoint, and when the run is where it had been.
        """
        due = time.monotonic() + checkpoint_every
        while True:
            try:
                if self.totals.iteration == self._reached.iteration:
                    self._require_same_place()
                    self._is_back = True
                    on_saved()
                done = not self.is_behind and target.reached(self.totals)
                if corrector is not None and not self.is_behind and (done or self._crossed(target)):
                    self._correct(corrector, interrupt, listener)  # also what an interruption left undone
                if done:
                    return True
                self._iterate(interrupt, listener)
            except Interrupted:
                return False
            if self.totals.iteration <= self._measured_until:
                continue
            start = time.perf_counter()
            row = self._row()
            metrics.append(row)
            listener(self._progress(row=row, replaying=self._replayed))
            self.totals.metrics_seconds += time.perf_counter() - start
            if time.monotonic() >= due and not self.is_behind:
                cost = self.checkpoint(folder, metrics)
                on_saved()
                due = time.monotonic() + max(checkpoint_every, cost / CHECKPOINT_SHARE)

    @property
    def is_behind(self) -> bool:
        """Whether the algorithm is not yet back where the run had been."""
        return not self._is_back

    def _require_same_place(self) -> None:
        """What was told must lead to where the run had been; else it is not what it was told.

        Where a part of the log was lost and simulated again, the clock goes on from what was measured before.
        """
        found, before = as_json(self.totals), as_json(self._reached)
        others = [name for name in SAME if found[name] != before[name]]
        if others:
            raise DamagedFile(
                f"{self._log.path} is damaged and was not used: it leads to {others[0].replace('_', ' ')} "
                f"{found[others[0]]}, the run had {before[others[0]]}"
            )
        if self._measured_until == self._reached.iteration:
            for name in CLOCK:
                setattr(self.totals, name, getattr(self._reached, name))

    def _progress(self, **news: Any) -> RunProgress:
        n_cells, where = self.geometry.n_cells, where_of(self._evaluate)
        return RunProgress(self.totals, self.measured, n_cells, where=where, **news)

    def _crossed(self, target: Target) -> bool:
        """Return whether the last iteration passed one of the evenly spaced correction points."""
        if not target.evaluations:
            return False
        n = target.corrections.points
        before, now = self.totals.previous_evaluations, self.totals.evaluations
        return before * n // target.evaluations < min(now * n // target.evaluations, n)

    def _correct(self, corrector: Corrector, interrupt: Interrupt, listener: Listener) -> None:
        """Re-evaluate the present elites; it counts neither as evaluations nor as time."""
        start = time.perf_counter()
        collection = self.algorithm.collection()

        def progress(done: int, total: int) -> None:
            listener(self._progress(correcting=(done, total)))

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
        self._log.sync()
        arrays, rest = (
            flatten(self.algorithm.state()) if isinstance(self.algorithm, SavesState) else ({}, None)
        )
        steps = self._steps.all if rest is not None else self._steps.all[:0]
        folder.write_checkpoint(
            self.plan.determinants(),
            Checkpoint(self.totals, metrics.written, self._log.offset, arrays, rest, steps),
        )
        cost = time.perf_counter() - start
        self.totals.checkpoint_seconds += cost
        return cost

    def _iterate(self, interrupt: Interrupt, listener: Listener) -> None:
        """One iteration; an interruption is possible only while the batch is evaluated."""
        totals = self.totals
        start = time.perf_counter()
        solutions = self.algorithm.ask()
        asked = time.perf_counter()
        self._require_solutions(solutions)
        batch, seeds = checksum(solutions), self.plan.seeds(totals.evaluations, len(solutions))
        known = self._log.next()
        self._replayed = known is not None
        before = time.perf_counter()
        if known is None:
            fitness, descriptors, steps = self._simulate(solutions, seeds, interrupt, listener)
        else:
            interrupt.check()
            self._require_same_batch(known, batch, len(solutions))
            fitness, descriptors, steps = known.fitness, known.descriptors, known.steps
        simulated = time.perf_counter()
        numbers = np.arange(totals.evaluations, totals.evaluations + len(solutions))
        told = Evaluated(solutions, fitness, descriptors, numbers[:, None], seeds[:, None])
        telling = time.perf_counter()
        self.algorithm.tell(told)
        end = time.perf_counter()
        if known is None:
            totals.simulation_seconds += simulated - before
            totals.algorithm_seconds += (asked - start) + (end - telling)
            totals.seconds += end - start
            clock = (totals.seconds, totals.simulation_seconds, totals.algorithm_seconds)
            self._log.append(Told(totals.iteration + 1, batch, *clock, fitness, descriptors, steps))
        else:
            totals.seconds, totals.simulation_seconds = known.seconds, known.simulation_seconds
            totals.algorithm_seconds = known.algorithm_seconds
            listener(self._progress(replaying=True))
        self._count(told, steps)
        if not self.is_behind:
            require_true_elites(self.plan.algorithm, self.algorithm.collection(), told, self._log)

    def _simulate(
        self, solutions: Parameters, seeds: Seeds, interrupt: Interrupt, listener: Listener
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
        """Evaluate a batch; return fitness and descriptors, NaN where invalid, and the steps made."""

        def progress(done: int, total: int) -> None:
            interrupt.check()  # where a signal must not be raised
            listener(self._progress(in_flight=done))

        try:
            with interruptible(self._evaluate, interrupt):
                found = self._evaluate(solutions, seeds, progress=progress)
        except InvalidInput:
            self._require_usable(solutions)
            raise
        valid = found.valid & usable(found.fitness, found.descriptors)
        fitness = np.where(valid, found.fitness, np.nan)
        descriptors = np.where(valid[:, None], found.descriptors, np.nan)
        return fitness, descriptors, compact(found.steps)

    def _require_same_batch(self, known: Told, batch: int, n: int) -> None:
        """Never attach what was once found out to other solutions."""
        iteration = self.totals.iteration + 1
        if known.iteration != iteration:
            raise DamagedFile(
                f"{self._log.path} is damaged and was not used: it has iteration {known.iteration} where "
                f"{iteration} is due"
            )
        if known.asked != batch or len(known.fitness) != n:
            raise BrokenAlgorithm(
                f"{self.plan.algorithm} cannot be resumed from {self._log.path}: told the same as before, it "
                f"asks for other solutions in iteration {iteration}. Is it deterministic, and is its code "
                "unchanged?"
            )

    def _count(self, told: Evaluated, steps: NDArray[Any]) -> None:
        totals, valid = self.totals, told.valid
        self._steps.add(steps)
        totals.iteration += 1
        totals.previous_evaluations = totals.evaluations
        totals.evaluations += len(valid)
        totals.steps += int(steps.sum())
        totals.invalid += int(len(valid) - valid.sum())
        if valid.any():
            fitness = told.fitness[valid]
            totals.lowest_fitness = float(np.fmin(totals.lowest_fitness, fitness.min()))
            totals.highest_fitness = float(np.fmax(totals.highest_fitness, fitness.max()))

    def _measure(self) -> tuple[Scores, Scores]:
        """Measure the algorithm on its own archive, and its collection on the task's grid."""
        collection, archive = self.algorithm.collection(), self._archive
        own = None if archive is None else self._scores(archive.elites)
        if archive is not None and own is not None and archive.geometry == self._grid:
            elites = archive.elites
            if len(elites) == len(collection) and np.shares_memory(elites.fitness, collection.fitness):
                return own, own  # its archive is the task's grid
        rows = fittest(collection.fitness, self._grid.cells(collection.descriptors))
        on_grid = self._scores(collection, rows)
        return own or on_grid, on_grid

    def _scores(self, elites: Evaluated, rows: slice | NDArray[np.intp] = slice(None)) -> Scores:
        if self._episode_length is None:
            return scores(elites.fitness[rows], self._interval)
        numbers = elites.evaluations[rows]
        alive = lived(self._steps.of(numbers), numbers, self._episode_length)
        return scores(elites.fitness[rows], self._interval, alive)

    @property
    def _archive(self) -> Archive | None:
        return self.algorithm.archive if isinstance(self.algorithm, HasArchive) else None

    def _row(self) -> dict[str, int | float]:
        self.measured, on_grid = self._measure()
        row = {**asdict(self.totals), **asdict(self.measured)}
        return row | {f"grid_{name}": value for name, value in asdict(on_grid).items()}

    def write_archive(self, folder: RunFolder) -> None:
        """Write archive.npz: the collection, its cells, and how to find cells again."""
        collection, n = self.algorithm.collection(), self.totals.evaluations
        steps = self._steps.of(collection.evaluations)
        write_archive(folder.archive_path, self.plan.determinants(), n, collection, self.geometry, steps)

    def _require_solutions(self, solutions: Parameters) -> None:
        if not isinstance(solutions, np.ndarray) or solutions.ndim != 2 or not len(solutions):
            shape = getattr(solutions, "shape", type(solutions).__name__)
            raise broken_rule(self.plan.algorithm, f"asked for {shape} instead of (n, parameters)")

    def _require_usable(self, solutions: Parameters) -> None:
        """Say so when it is the solutions that could not be evaluated."""
        task = self.plan.task
        try:
            checked_solutions(task.name, solutions, task.n_parameters)
        except InvalidInput as error:
            raise broken_rule(self.plan.algorithm, f"asked for what cannot be evaluated: {error}") from error
