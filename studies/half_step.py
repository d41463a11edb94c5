"""Would finer physics change the corrected metrics? Final archives, re-simulated at half the step.

    python studies/half_step.py results/laptop/runs

Every elite of every final archive is re-evaluated as often as it was: with other seeds at the task's own
step (what chance alone changes), and with the very seeds of its correction at half the step. A change is
small if the interquartile mean over the replications at half the step lies within the 95 % interval of the
one at the task's own step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qdbench import RobotTask, evaluation_seeds, stream
from qdbench.analysis.collect import collect
from qdbench.analysis.measures import container, final_correction, fixed_interval
from qdbench.analysis.statistics import Estimate, estimate
from qdbench.experiments.corrections import reevaluation_seeds
from qdbench.experiments.loading import StoredRun
from qdbench.experiments.plan import Plan, plan_from
from qdbench.metrics.robustness import Reevaluations, corrected_archive
from qdbench.metrics.scores import scores
from qdbench.seeds import Seeds

METRICS = ("coverage", "qd_score", "max_fitness")
SeedsOf = Callable[[Plan, int, int], Seeds]


def other_seeds(plan: Plan, evaluation: int, n: int) -> Seeds:
    return evaluation_seeds(2**40 + evaluation, n)


def resimulated(run: StoredRun, plan: Plan, task: RobotTask, n: int, seeds_of: SeedsOf) -> Reevaluations:
    elites = run.archive.elites
    keys = elites.evaluations[:, 0].tolist()
    seeds = np.concatenate([seeds_of(plan, key, n) for key in keys])
    result = task.evaluate(np.repeat(elites.solutions, n, axis=0), seeds)
    return Reevaluations(result.fitness.reshape(len(keys), n), result.descriptors.reshape(len(keys), n, -1))


def measured(run: StoredRun, reevaluations: Reevaluations) -> list[float]:
    archive = corrected_archive(container(run, "own"), reevaluations)
    found = scores(archive.elites.fitness, fixed_interval(run))
    return [found.coverage, found.qd_score, found.max_fitness]


def three_ways(run: StoredRun) -> list[list[float]]:
    """As corrected; with other seeds; at half the step."""
    plan, correction = plan_from(run.record, run.record["name"]), final_correction(run)
    task: Any = plan.task
    assert correction is not None, f"{run.path} has no correction of its end"
    finer = replace(task, robot=replace(task.robot, physics_steps=2 * task.robot.physics_steps))
    n = correction.reevaluations.fitness.shape[1]
    return [
        measured(run, correction.reevaluations),
        measured(run, resimulated(run, plan, task, n, other_seeds)),
        measured(run, resimulated(run, plan, finer, n, reevaluation_seeds)),
    ]


def shown(found: Estimate) -> str:
    return f"{found.iqm:.1f} ({found.low:.1f} … {found.high:.1f})"


def main(*paths: str) -> None:
    print("| algorithm | corrected metric | as corrected | other seeds | half the step | within |")
    print("|---|---|---|---|---|---|")
    for variant in collect([Path(path) for path in paths]).variants:
        values = np.array([three_ways(run) for run in variant.runs])  # (replications, ways, metrics)
        for m, metric in enumerate(METRICS):
            ways = [estimate([values[:, way, m]], stream(0, "half step", metric)) for way in range(3)]
            within = ways[0].low <= ways[2].iqm <= ways[0].high
            cells = [variant.label, metric, *map(shown, ways), "yes" if within else "NO"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
