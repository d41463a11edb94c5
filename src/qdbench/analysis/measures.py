"""All metrics of a run after the fact, from its files alone, on any interval and container."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.stored import Container
from qdbench.experiments.corrections import Correction
from qdbench.experiments.loading import StoredRun
from qdbench.metrics.deviations import deviations
from qdbench.metrics.robustness import corrected_archive, losses, split_half
from qdbench.metrics.scores import (
    Scores,
    fittest,
    mean_normalised_fitness,
    scores,
    self_normalised_from_sums,
    self_normalised_qd_score,
)

Interval = tuple[float, float]
On = Literal["own", "grid"]
"""What elites are measured on: the algorithm's own container, or the task's grid."""

CURVES = ("coverage", "qd_score", "max_fitness")
SELF_NORMALISED = "self_normalised_qd_score"


@dataclass(frozen=True, eq=False)
class Curves:
    """A run's metrics along the way; the corrected ones at the moments they were taken."""

    evaluations: NDArray[np.float64]  #: (iterations,)
    seconds: NDArray[np.float64]  #: (iterations,)
    values: dict[str, NDArray[np.float64]]  #: by name from CURVES or SELF_NORMALISED, (iterations,)
    corrected_evaluations: NDArray[np.float64]  #: (snapshots,)
    corrected_seconds: NDArray[np.float64]  #: (snapshots,)
    corrected: dict[str, NDArray[np.float64]]  #: by the same names, (snapshots,)


def fixed_interval(run: StoredRun) -> Interval:
    """Return the task's own interval of the QD score, the same for every run of a task's version."""
    low, high = run.record["task"]["fitness_bounds"]
    return float(low), float(high)


def pooled_interval(runs: Iterable[StoredRun]) -> Interval:
    """Return the range of all fitness values of all individuals of these runs, the paper's appendix's."""
    totals = [run.record["totals"] for run in runs]
    lows = [t["lowest_fitness"] for t in totals if t["lowest_fitness"] is not None]
    highs = [t["highest_fitness"] for t in totals if t["highest_fitness"] is not None]
    return (float(min(lows)), float(max(highs))) if lows else (np.nan, np.nan)


def container(run: StoredRun, on: On) -> Container:
    """Return the container a run is measured on: what `metrics.csv` has its columns of."""
    if on == "own":
        return run.archive.container
    bounds = np.array(run.record["task"]["options"]["descriptor_bounds"], np.float64)
    return Container(
        "grid", {"descriptor_bounds": bounds, "shape": np.array(run.archive.about["grid_shape"])}
    )


def final(run: StoredRun, interval: Interval, on: On = "own") -> dict[str, float]:
    """Return a run's metrics at its end; corrected ones and losses are NaN where nothing was re-evaluated."""
    prefix = "" if on == "own" else "grid_"
    last = {name: float(values[-1]) for name, values in run.metrics.items()}
    fitness = placed_fitness(run, on)
    before = _from_sums(last, prefix, interval)
    found = {**_plain(before), SELF_NORMALISED: self_normalised_qd_score(fitness)}
    correction = final_correction(run)
    after = None if correction is None else corrected_scores(run, correction, interval, on)
    names = ("coverage", "qd_score", "max_fitness", "mean_fitness")
    found |= {f"corrected_{name}": np.nan if after is None else _plain(after)[name] for name in names}
    fixed = fixed_interval(run)  # of a loss, whatever the interval of the scores
    lost = None if after is None else asdict(losses(_on(before, fixed), _on(after, fixed)))
    found |= {f"{name}_loss": np.nan if lost is None else lost[name] for name in CURVES}
    found["lost_elites"] = np.nan if correction is None else float(correction.reevaluations.lost)
    where = container(run, on)
    halves = None if correction is None else split_half(where, correction.reevaluations, interval)
    found["split_half_coverage"] = np.nan if halves is None else halves.coverage
    found["split_half_qd_score"] = np.nan if halves is None else halves.qd_score
    spread = (np.nan, np.nan) if correction is None else deviations(correction.reevaluations)
    found["fitness_deviation"], found["descriptor_deviation"] = spread
    found["seconds"] = last["seconds"]
    found["evaluations"] = last["evaluations"]
    return found


def curves(run: StoredRun, interval: Interval, on: On = "own") -> Curves:
    """Return a run's metrics along the way."""
    prefix = "" if on == "own" else "grid_"
    metrics = run.metrics
    low, high = interval
    coverage = metrics[f"{prefix}coverage"].astype(np.float64)
    total, least, most = (metrics[f"{prefix}{name}_fitness"] for name in ("sum", "min", "max"))
    values = {
        "coverage": coverage,
        "qd_score": (total - coverage * low) / (high - low),
        "max_fitness": most.astype(np.float64),
        SELF_NORMALISED: self_normalised_from_sums(coverage, total, least, most),
    }
    stored = run.corrections.snapshots if run.corrections is not None else ()
    snapshots = [s for s in stored if s.evaluations <= metrics["evaluations"][-1]]
    fitness = [corrected_fitness(run, snapshot, on) for snapshot in snapshots]
    measured = [_plain(scores(f, interval)) | {SELF_NORMALISED: self_normalised_qd_score(f)} for f in fitness]
    moments = np.array([snapshot.evaluations for snapshot in snapshots], np.float64)
    evaluations, seconds = (metrics[name].astype(np.float64) for name in ("evaluations", "seconds"))
    return Curves(
        evaluations,
        seconds,
        values,
        moments,
        np.interp(moments, evaluations, seconds),
        {name: np.array([m[name] for m in measured], np.float64) for name in values},
    )


def final_correction(run: StoredRun) -> Correction | None:
    """Return the correction of the final archive, if there is one."""
    end = run.record["totals"]["evaluations"]
    stored = run.corrections.snapshots if run.corrections is not None else ()
    return next((snapshot for snapshot in stored if snapshot.evaluations == end), None)


def corrected_scores(run: StoredRun, correction: Correction, interval: Interval, on: On = "own") -> Scores:
    """Return the scores of the corrected archive of one moment."""
    return scores(corrected_fitness(run, correction, on), interval)


def corrected_fitness(run: StoredRun, correction: Correction, on: On = "own") -> NDArray[np.float64]:
    """Return the fitness of the elites of the corrected archive of one moment."""
    return corrected_archive(container(run, on), correction.reevaluations).elites.fitness.copy()


def placed_fitness(run: StoredRun, on: On = "own") -> NDArray[np.float64]:
    """Return the fitness of the elites of the final archive, the fittest of every cell where there are any.

    An algorithm without an archive of its own may hand over several solutions of one cell.
    """
    cells = container(run, on).empty_archive().geometry.cells(run.archive.descriptors)
    return fittest(run.archive.fitness, cells)


def _from_sums(last: dict[str, float], prefix: str, interval: Interval) -> Scores:
    low, high = interval
    n, total = int(last[f"{prefix}coverage"]), last[f"{prefix}sum_fitness"]
    return Scores(
        n,
        (total - n * low) / (high - low),
        last[f"{prefix}max_fitness"],
        total,
        last[f"{prefix}min_fitness"],
    )


def _on(found: Scores, interval: Interval) -> Scores:
    low, high = interval
    return replace(found, qd_score=(found.sum_fitness - found.coverage * low) / (high - low))


def _plain(found: Scores) -> dict[str, float]:
    return {
        "coverage": float(found.coverage),
        "qd_score": found.qd_score,
        "max_fitness": found.max_fitness,
        "mean_fitness": mean_normalised_fitness(found.qd_score, found.coverage),
    }
