"""How far do a run's elites get with finer physics, or with softer contacts?

    python studies/how_far.py results/laptop/runs/ant_omni/map_elites/seed-3 --steps 5 10 20
    python studies/how_far.py results/laptop/runs/ant_omni/map_elites/seed-3 --steps 5 10 20 --contacts 0.1

For every number of physics steps per control step: the mean, over elites, of the distance from the start to
the elite's mean end over its seeds; the corrected coverage of these elites; the mean fitness.
`--contacts` sets the time constant of contacts and joint limits, in seconds.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import Any

import numpy as np

from qdbench import evaluation_seeds, load
from qdbench.metrics.robustness import Reevaluations, corrected_archive


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run")
    parser.add_argument("--steps", type=int, nargs="+", required=True)
    parser.add_argument("--elites", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--other-seeds", type=int, default=0, help="a number to shift all seeds by")
    parser.add_argument("--contacts", type=float)
    chosen = parser.parse_args()
    run = load(chosen.run)
    task: Any = run.task
    assert task.fingerprint == run.record.task.fingerprint, "the run is of another version of its task"
    robot = task.robot
    if chosen.contacts is not None:
        softer = rf'\g<1>="{chosen.contacts} 1"'
        robot = replace(robot, mjcf=re.sub(r'(solref|solreflimit)="[\d.]+ 1"', softer, robot.mjcf))
    elites = run.archive.elites
    some = np.random.default_rng(0).permutation(len(elites))[: chosen.elites]
    n = chosen.seeds
    seeds = np.concatenate([evaluation_seeds(int(i) + chosen.other_seeds, n) for i in some])
    print("| physics steps | mean distance (m) | corrected coverage | mean fitness |\n|---|---|---|---|")
    for steps in chosen.steps:
        finer = replace(task, robot=replace(robot, physics_steps=steps))
        result = finer.evaluate(np.repeat(elites.solutions[some], n, axis=0), seeds)
        again = Reevaluations(result.fitness.reshape(-1, n), result.descriptors.reshape(len(some), n, -1))
        distance = np.linalg.norm(np.nanmean(again.descriptors, axis=1), axis=1).mean()
        coverage = len(corrected_archive(run.geometry, again).elites)
        fitness = np.nanmean(result.fitness)
        print(f"| {steps} | {distance:.2f} | {coverage} | {fitness:.1f} |", flush=True)


if __name__ == "__main__":
    main()
