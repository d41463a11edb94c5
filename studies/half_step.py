"""Would finer physics change the corrected metrics? Final archives, re-simulated at half the step.

    python studies/half_step.py results/laptop/runs --samples 8

Every elite of every final archive is re-evaluated with the same seeds as in its correction, all or the first
`--samples` of them, which then count at either step.
A change is small if the interquartile mean over the replications at half the step lies within the 95 %
interval of the one at the task's own step. What other seeds alone change is told by as many further samples
of the correction, at the task's step, where it has them.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qdbench import stream
from qdbench.analysis.collect import collect
from qdbench.analysis.measures import fixed_interval
from qdbench.analysis.statistics import Estimate, estimate
from qdbench.experiments.plan import plan_from
from qdbench.metrics.robustness import Reevaluations, corrected_archive
from qdbench.metrics.scores import scores
from qdbench.store.loading import StoredRun

METRICS = ("coverage", "qd_score", "max_fitness")


def resimulated(run: StoredRun, n: int) -> Reevaluations:
    plan = plan_from(run.record.determinants, run.record.name)
    task: Any = plan.task
    assert task.fingerprint == run.record.task.fingerprint, f"{run.path} is of another task version"
    finer = replace(task, robot=replace(task.robot, physics_steps=2 * task.robot.physics_steps))
    elites = run.archive.elites
    keys = elites.evaluations[:, 0].tolist()
    seeds = np.concatenate([plan.reevaluation_seeds(key, n) for key in keys])
    result = finer.evaluate(np.repeat(elites.solutions, n, axis=0), seeds)
    return Reevaluations(result.fitness.reshape(len(keys), n), result.descriptors.reshape(len(keys), n, -1))


def measured(run: StoredRun, reevaluations: Reevaluations) -> list[float]:
    archive = corrected_archive(run.geometry, reevaluations)
    found = scores(archive.elites.fitness, fixed_interval(run))
    return [found.coverage, found.qd_score, found.max_fitness]


def compared(run: StoredRun, samples: int | None) -> list[list[float]]:
    """As corrected, at half the step, and as corrected with other samples (NaN where there are too few)."""
    point, corrections = run.final_point, run.corrections
    assert point is not None, f"{run.path} has no correction of its end"
    assert corrections is not None
    again = corrections.reevaluations(point)
    usual = again[:samples]
    n = usual.fitness.shape[1]
    others = again[n : 2 * n]
    control = measured(run, others) if others.fitness.shape[1] == n else [np.nan] * len(METRICS)
    return [measured(run, usual), measured(run, resimulated(run, n)), control]


def shown(found: Estimate) -> str:
    return f"{found.iqm:.1f} ({found.low:.1f} … {found.high:.1f})" if found.iqm == found.iqm else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--samples", type=int)
    chosen = parser.parse_args()
    print("| algorithm | corrected metric | at the task's step | at half the step | within | other seeds |")
    print("|" + "---|" * 6)
    for variant in collect(chosen.paths).variants:
        values = np.array([compared(run, chosen.samples) for run in variant.runs])
        for m, metric in enumerate(METRICS):
            usual, finer, others = (
                estimate(column, stream(0, "half step", metric)) for column in values[:, :, m].T
            )
            within = "yes" if usual.low <= finer.iqm <= usual.high else "NO"
            numbers = f"{shown(usual)} | {shown(finer)} | {within} | {shown(others)}"
            print(f"| {variant.label} | {metric} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
