"""By how much can a score be raised without a better algorithm?

    python -m studies.raised_scores cells      # cells of one's own
    python -m studies.raised_scores noisy      # one noisy policy, handed over under many seeds
    python -m studies.raised_scores lucky --runs results/standard/runs/ant_omni  # the highest of noisy means

`cells` and `noisy` make short runs of their own; `lucky` reads those of other studies.
"""

from __future__ import annotations

import argparse
import tempfile
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench import Archive, Grid, Problem, RobotTask, StoredRun, stream
from qdbench.algorithms.map_elites import MapElites
from qdbench.analysis.collect import collect
from qdbench.analysis.measures import PlacedRun, fixed_interval
from qdbench.archives.geometry import Cvt, Geometry
from qdbench.metrics.deviations import deviations_of_each
from qdbench.metrics.returns import Elites, returned
from qdbench.metrics.robustness import Reevaluations, by_samples, corrected_archive, placed
from qdbench.metrics.scores import scores
from qdbench.paper.suite_scales import SUITE_SCALES
from qdbench.tasks.known_truth import KNOWN_TRUTH
from studies.campaign import command, interval, markdown, seed_list

ARM, CELLS, EVALUATIONS, REEVALUATIONS = "arm_noisy_descriptor_3", (30, 30), 4096, 16
OMNI, TUNING = "ant_omni", 100
FEW = 4
"""The number of re-evaluations at quick scale."""


def again(run: StoredRun) -> Reevaluations:
    """Return the re-evaluations of the final elites."""
    assert run.final_point is not None, f"{run.path} has no correction of its end"
    assert run.corrections is not None
    return run.corrections.reevaluations(run.final_point)


# Cells of one's own


class Crowded(MapElites):
    """MAP-Elites with as many cells as the task, their centres where random solutions are."""

    def _empty_archive(self, problem: Problem) -> Archive:
        some = problem.random_solutions(prod(problem.cells), stream(0, "raised scores", "centres"))
        _, centres = KNOWN_TRUTH[ARM].expected(some)  # its box is the unit square
        return Archive(Cvt(problem.descriptor_bounds, centres), problem.n_parameters)


class Coarse(MapElites):
    """MAP-Elites with 3 × 3 cells."""

    def _empty_archive(self, problem: Problem) -> Archive:
        return Archive(Grid(problem.descriptor_bounds, (3, 3)), problem.n_parameters)


def on_cells(run: StoredRun, geometry: Geometry) -> tuple[float, float]:
    """Return corrected QD score and return rate of a run on any cells."""
    archive, samples = run.archive, again(run)
    back = returned(geometry, Elites(archive.fitness, archive.descriptors), samples)
    left = corrected_archive(geometry, samples).elites
    return scores(left.fitness, fixed_interval(run)).qd_score, float(back.mean())


def cells(chosen: argparse.Namespace) -> None:
    """Print what a run scores on its own cells, and on the task's grid, as the package measures it."""
    task, rows = qdbench.make(ARM, cells=CELLS), []
    for algorithm in (MapElites, Crowded, Coarse):
        own, grid = [], []
        for seed in chosen.seeds:
            with tempfile.TemporaryDirectory() as out:
                run = qdbench.run(
                    task, algorithm, seed=seed, evaluations=chosen.evaluations or EVALUATIONS, corrections=1,
                    reevaluations=REEVALUATIONS, out=out, workers=chosen.workers,
                )  # fmt: skip
                own.append(on_cells(run, run.geometry))
                found = PlacedRun(run, "grid").final(fixed_interval(run))
            grid.append((found["corrected_qd_score"], found["return_rate"]))
        columns = [(np.array(own)[:, i], np.array(grid)[:, i], form) for i, form in enumerate((".0f", ".1%"))]
        words = [interval(values).words(form) for *both, form in columns for values in both]
        rows.append([algorithm.__name__, *words])
    heads = [
        f"{what}, {where}" for what in ("corrected QD score", "return rate") for where in ("own", "grid")
    ]
    print(markdown(["algorithm", *heads], rows))


# One noisy policy


def noisiest(run: StoredRun) -> NDArray[np.float32]:
    """Return the elite whose re-evaluations differ most in their descriptor."""
    _, spread = deviations_of_each(again(run))
    best: NDArray[np.float32] = run.archive.elites.solutions[int(np.nanargmax(spread))]
    return best


def handed_over(
    task: RobotTask, policy: NDArray[np.float32], n: int, workers: int | None
) -> tuple[Archive, Reevaluations]:
    """Return the archive of `n` evaluations of one policy, and the re-evaluations of its elites."""
    grid = Grid(task.descriptor_bounds, task.cells)
    seeds = qdbench.evaluation_seeds(TUNING, n)
    first = task.evaluate(np.tile(policy, (n, 1)), seeds, workers=workers)
    valid = ~np.isnan(first.fitness)
    archive = placed(grid, first.fitness[valid], first.descriptors[valid])
    total = len(archive) * REEVALUATIONS
    more = qdbench.evaluation_seeds(TUNING + 1, total)
    repeated = task.evaluate(np.tile(policy, (total, 1)), more, workers=workers)
    shape = (len(archive), REEVALUATIONS)
    return archive, Reevaluations(
        repeated.fitness.reshape(shape), repeated.descriptors.reshape((*shape, len(grid.shape)))
    )


def noisy(chosen: argparse.Namespace) -> None:
    """Print how many corrected cells one policy fills, beside the MAP-Elites run that it comes from."""
    scale, rows = SUITE_SCALES["quick"].tasks[OMNI], []
    n = chosen.evaluations or scale.evaluations
    task = qdbench.make(OMNI, episode_length=chosen.episode_length or scale.episode_length)
    assert isinstance(task, RobotTask)
    for seed in chosen.seeds:
        with tempfile.TemporaryDirectory() as out:
            run = qdbench.run(
                task, seed=TUNING + seed, evaluations=n, batch_size=scale.batch_size, corrections=1,
                reevaluations=REEVALUATIONS, out=out, workers=chosen.workers,
            )  # fmt: skip
            whole, policy, samples = run.archive.placed(run.grid), noisiest(run), again(run)
        archive, ours = handed_over(task, policy, n, chosen.workers)
        rows.append(
            [str(TUNING + seed)]
            + [
                str(value)
                for one, repeated in ((archive, ours), (whole, samples))
                for value in (len(one), *corrected_coverage(one.geometry, repeated))
            ]
        )
    heads = [
        f"{who}: {what}" for who in ("one policy", "MAP-Elites") for what in ("stored", "N = 4", "N = 16")
    ]
    print(markdown(["seed", *heads], rows))


def corrected_coverage(geometry: Geometry, samples: Reevaluations) -> list[int]:
    """Return the corrected cells with few and with all re-evaluations."""
    found = by_samples(geometry, samples, (0.0, 1.0), (FEW, samples.n_samples))
    return [one.coverage for one in found]


# The highest of many noisy means


def luck(samples: Reevaluations) -> tuple[float, float]:
    """Return the corrected max fitness with few re-evaluations, and the mean of the others of that elite."""
    valid = samples.valid()
    means, _ = valid[:FEW].means()
    best = int(means.argmax())
    return float(means[best]), float(valid.fitness[best, FEW:].mean())


def lucky(chosen: argparse.Namespace) -> None:
    """Print both numbers of every stored run with at least 16 re-evaluations."""
    runs = [run for variant in collect([chosen.runs]).variants for run in variant.runs]
    enough = [run for run in runs if run.corrections and run.corrections.n_reevaluations >= REEVALUATIONS]
    both = np.array([luck(again(run)) for run in enough]).reshape(-1, 2)
    found = np.column_stack([both, both[:, 0] - both[:, 1]])
    labels = [f"{run.record.task.name}, {run.record.variant}, seed {run.record.seed}" for run in enough]
    rows = [
        [label, *(f"{value:.4g}" for value in numbers)] for label, numbers in zip(labels, found, strict=True)
    ]
    rows.append(["mean over runs", *(interval(column).words(".4g") for column in found.T)])
    heads = [f"corrected max fitness, N = {FEW}", "other re-evaluations of that elite", "difference"]
    print(markdown(["run", *heads], rows))


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    for action in (cells, noisy):
        making = commands.add_parser(action.__name__)
        making.add_argument("--seeds", type=seed_list, default=seed_list("0-4"), metavar="0-4")
        making.add_argument("--workers", type=int, metavar="N", help="threads; all cores unless told")
        for name in ("evaluations", "episode-length"):
            making.add_argument(f"--{name}", type=int, metavar="N", help="another size, to try it out")
        making.set_defaults(action=action)
    reading = commands.add_parser("lucky")
    reading.add_argument("--runs", type=Path, required=True, metavar="DIR")
    reading.set_defaults(action=lucky)
    return found


if __name__ == "__main__":
    raise SystemExit(command(parser()))
