"""All metrics of a stored run, computed from its files, on any interval and geometry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Geometry, has_cells_of
from qdbench.metrics.deviations import deviations
from qdbench.metrics.lives import lived, lived_again, mostly
from qdbench.metrics.metric import CURVES, METRICS, SELF_NORMALISED, corrected, loss, per_cell
from qdbench.metrics.rarefied import RAREFIED_TO, RarefiedLoss, rarefied_losses
from qdbench.metrics.reproducibility import reproduced
from qdbench.metrics.returns import Elites, returns
from qdbench.metrics.robustness import Reevaluations, corrected_archive, extrapolated, losses, placed
from qdbench.metrics.scores import (
    Scores,
    fittest,
    mean_normalised_fitness,
    qd_score_from_sums,
    scores,
    self_normalised_from_sums,
    self_normalised_qd_score,
)
from qdbench.store.corrections_file import CorrectionPoint
from qdbench.store.loading import StoredRun

Interval = tuple[float, float]
On = Literal["own", "grid"]
"""The geometry that elites are measured on: that of the algorithm's own archive, or the task's grid.

An archive with other cells than those of the task's grid, or of our CVT with as many, is measured on the
grid in any case: who chooses the cells could choose the score.
"""

_SUMS = ("sum_fitness", "min_fitness", "max_fitness")
_PER_CELL = ("coverage", "qd_score", "corrected_coverage", "corrected_qd_score")


@dataclass(frozen=True, eq=False)
class Curves:
    """The metrics of a run at every iteration, and the corrected ones at its correction points."""

    evaluations: NDArray[np.float64]  #: (iterations,)
    seconds: NDArray[np.float64]  #: (iterations,)
    values: dict[str, NDArray[np.float64]]  #: by name from CURVES or SELF_NORMALISED, (iterations,)
    corrected_evaluations: NDArray[np.float64]  #: (points,)
    corrected_seconds: NDArray[np.float64]  #: (points,)
    corrected: dict[str, NDArray[np.float64]]  #: by the same names, (points,)


def fixed_interval(run: StoredRun) -> Interval:
    """Return the task's fixed interval of the QD score: calibrated, and the same for all runs of a task."""
    return run.record.facts.score_interval


def possible_interval(run: StoredRun) -> Interval:
    """Return the interval of all possible fitness, which algorithms know."""
    return run.record.task.fitness_bounds


def pooled_interval(runs: Iterable[StoredRun]) -> Interval:
    """Return the range of all fitness values of all evaluations of these runs, as in the paper's appendix."""
    totals = [run.record.totals for run in runs]
    known = [t for t in totals if not np.isnan(t.lowest_fitness)]
    if not known:
        return np.nan, np.nan
    return min(t.lowest_fitness for t in known), max(t.highest_fitness for t in known)


class PlacedRun:
    """The elites of a run in one geometry. Every archive is built once, when it is first needed."""

    def __init__(self, run: StoredRun, on: On = "own") -> None:
        self.run = run
        self.has_other_cells = on == "own" and not has_cells_of(run.geometry, run.grid)
        own = on == "own" and not self.has_other_cells
        self.geometry: Geometry = run.geometry if own else run.grid
        self.n_cells = run.grid.n_cells
        self._prefix = "" if own else "grid_"
        self._corrected: dict[int, Archive] = {}

    @cached_property
    def stored(self) -> Archive:
        """The final archive."""
        return self.run.archive.placed(self.geometry)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The rows of archive.npz that count: the fittest of every cell, if there are cells.

        An algorithm without an archive of its own may return several solutions of one cell.
        """
        archive = self.run.archive
        return self._counted(archive.fitness, archive.descriptors)

    def _counted(self, fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> NDArray[np.intp]:
        return fittest(fitness, self.geometry.cells(descriptors))

    @property
    def fitness(self) -> NDArray[np.float64]:
        """The fitness of the final elites."""
        return self.run.archive.fitness[self.rows]

    @property
    def alive(self) -> NDArray[np.bool_] | None:
        """Which of the final elites lived to the end; None if the task has no episodes."""
        archive = self.run.archive
        return lived(
            archive.steps[self.rows], archive.evaluations[self.rows], self.run.record.task.episode_length
        )

    @property
    def points(self) -> list[CorrectionPoint]:
        """The correction points up to the end of the run."""
        found, end = self.run.corrections, self.run.metrics["evaluations"][-1]
        return [] if found is None else [point for point in found.points if point.evaluations <= end]

    def corrected(self, point: CorrectionPoint) -> Archive:
        """Return the corrected archive of a correction point."""
        if point.evaluations not in self._corrected:
            again = self.reevaluations(point)
            self._corrected[point.evaluations] = corrected_archive(self.geometry, again)
        return self._corrected[point.evaluations]

    def reevaluations(self, point: CorrectionPoint) -> Reevaluations:
        """Return the re-evaluations of the elites of a correction point: of those that count."""
        assert self.run.corrections is not None, "a point belongs to corrections"
        again, rows = self.run.corrections.reevaluations(point), self._rows_at(point)
        return Reevaluations(again.fitness[rows], again.descriptors[rows])

    def _rows_at(self, point: CorrectionPoint) -> NDArray[np.intp]:
        return self._counted(point.fitness, point.descriptors)

    def final(self, interval: Interval) -> dict[str, float]:
        """Return the final metrics; corrected ones are NaN if the final elites were not re-evaluated."""
        last = {name: float(self.run.metrics[name][-1]) for name in ("seconds", "evaluations")}
        before, point = scores(self.fitness, interval, self.alive), self.run.final_point
        found = {**_plain(before), SELF_NORMALISED: self_normalised_qd_score(self.fitness)}
        found |= {name: getattr(before, name) for name in ("alive_coverage", "alive_qd_score")}
        found["alive_share"] = before.alive_coverage / before.coverage if before.coverage else np.nan
        found |= self._true(interval)
        found |= {name: np.nan for name, metric in METRICS.items() if metric.needs_correction}
        found |= {} if point is None else self._of_correction(point, interval)
        found |= {per_cell(name): found[name] / self.n_cells for name in _PER_CELL}
        return found | last

    def _of_correction(self, point: CorrectionPoint, interval: Interval) -> dict[str, float]:
        again, left = self.reevaluations(point), self.corrected(point).elites
        lives = self._lives(point)
        alive = None if lives is None else mostly(lives)[left.evaluations[:, 0]]
        after = scores(left.fitness, interval, alive)
        fixed = fixed_interval(self.run)  # losses always use it, whatever the interval of the scores
        lost = asdict(losses(scores(self.fitness, fixed), scores(left.fitness, fixed)))
        limit = extrapolated(self.geometry, again, interval, self.corrected(point))
        of_fitness, of_descriptor = deviations(again)
        return {
            **{corrected(name): value for name, value in _plain(after).items()},
            **{loss(name): lost[name] for name in CURVES},
            "corrected_alive_share": np.nan if lives is None or not lives.size else float(lives.mean()),
            "corrected_alive_qd_score": after.alive_qd_score,
            **self._alone(point, interval),
            "lost_elites": float(again.lost),
            "extrapolated_coverage": limit.coverage,
            "extrapolated_qd_score": limit.qd_score,
            "fitness_deviation": of_fitness,
            "descriptor_deviation": of_descriptor,
        }

    def _true(self, interval: Interval) -> dict[str, float]:
        """Return the scores of the archive of all elites at their exact means; NaN if they are not known."""
        known = self.run.expected()
        if known is None:
            return {"true_coverage": np.nan, "true_qd_score": np.nan}
        counted = (column[self.rows] for column in known)
        found = scores(placed(self.geometry, *counted).elites.fitness, interval)
        return {"true_coverage": float(found.coverage), "true_qd_score": found.qd_score}

    def _alone(self, point: CorrectionPoint, interval: Interval) -> dict[str, float]:
        """Return what re-evaluations tell of every elite; all but QD scores are on the fixed interval."""
        rows, again, fixed = self._rows_at(point), self.reevaluations(point), fixed_interval(self.run)
        elites = Elites(point.fitness[rows], point.descriptors[rows])
        (thinned,) = self.rarefied(point, [RAREFIED_TO])
        lost = {f"rarefied_{loss(name)}": value for name, value in asdict(thinned).items()}
        steady = reproduced(self.geometry, elites, again, fixed, interval)
        return lost | asdict(returns(self.geometry, elites, again, fixed)) | asdict(steady)

    def rarefied(self, point: CorrectionPoint, sizes: Iterable[int]) -> list[RarefiedLoss]:
        """Return the expected losses of so many elites, drawn at random, on the fixed interval."""
        fitness, again = point.fitness[self._rows_at(point)], self.reevaluations(point)
        return rarefied_losses(self.geometry, fitness, again, fixed_interval(self.run), sizes)

    def _lives(self, point: CorrectionPoint) -> NDArray[np.bool_] | None:
        """Return which re-evaluations lived to the end, (n, N); None if the task has no episodes."""
        made, length = self.run.corrections, self.run.record.task.episode_length
        if made is None or length is None:
            return None
        rows = point.rows[self._rows_at(point)]
        return lived_again(made.steps[rows], ~np.isnan(made.fitness[rows]), length)

    def curves(self, interval: Interval) -> Curves:
        """Return the metrics at every iteration and correction point.

        On another interval than the task's, the QD score of an iteration is NaN if a fitness was outside.
        """
        metrics = self.run.metrics
        coverage = metrics[f"{self._prefix}coverage"].astype(np.float64)
        total, least, most = (metrics[f"{self._prefix}{name}"] for name in _SUMS)
        if interval == fixed_interval(self.run):
            score = metrics[f"{self._prefix}qd_score"]
        else:
            score = qd_score_from_sums(coverage, total, least, most, interval)
        values = {
            "coverage": coverage,
            "qd_score": score,
            "max_fitness": most.astype(np.float64),
            SELF_NORMALISED: self_normalised_from_sums(coverage, total, least, most),
        }
        fitness = [self.corrected(point).elites.fitness for point in self.points]
        measured = [
            _plain(scores(f, interval)) | {SELF_NORMALISED: self_normalised_qd_score(f)} for f in fitness
        ]
        places = np.array([point.evaluations for point in self.points], np.float64)
        evaluations, seconds = (metrics[name].astype(np.float64) for name in ("evaluations", "seconds"))
        return Curves(
            evaluations,
            seconds,
            values,
            places,
            np.interp(places, evaluations, seconds),
            {name: np.array([m[name] for m in measured], np.float64) for name in values},
        )


def final(run: StoredRun, interval: Interval, on: On = "own") -> dict[str, float]:
    """Return the final metrics of a run; corrected ones are NaN if the elites were not re-evaluated."""
    return PlacedRun(run, on).final(interval)


def curves(run: StoredRun, interval: Interval, on: On = "own") -> Curves:
    """Return the metrics of a run at every iteration and correction point."""
    return PlacedRun(run, on).curves(interval)


def _plain(found: Scores) -> dict[str, float]:
    return {
        "coverage": float(found.coverage),
        "qd_score": found.qd_score,
        "max_fitness": found.max_fitness,
        "mean_fitness": mean_normalised_fitness(found.qd_score, found.coverage),
    }
