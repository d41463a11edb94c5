"""Which estimator finds what corrected metrics would be with infinitely many re-evaluations?

python studies/limit_of_n.py

MAP-Elites runs on function tasks whose noise is known, so the corrected archive of its elites is known, too:
each elite at its true mean. N re-evaluations are drawn many times, and every estimator is compared with the
truth. The relative errors are in percent of the true value.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench import FunctionTask, Grid, stream
from qdbench.metrics.robustness import Reevaluations
from qdbench.metrics.scores import fittest, scores
from qdbench.policy import Parameters
from qdbench.seeds import Seeds

Pair = NDArray[np.float64]
"""Coverage and QD score."""
BOX, CELLS, INTERVAL = ((-1.0, 1.0), (-1.0, 1.0)), 20, (-6.0, 0.0)
WIDTH = 2 / CELLS
REPEATS = 40
SETTINGS = (
    (1.0, 0.3, 0.2), (1.0, 1.0, 0.2), (1.0, 1.0, 1.0), (1.0, 3.0, 0.2), (0.5, 1.0, 1.0), (0.5, 3.0, 0.2),
    (0.2, 1.0, 0.2), (0.2, 3.0, 0.2), (0.1, 3.0, 1.0),
)  # fmt: skip
"""How far the true means reach, the noise of the descriptor in cells, the noise of the fitness."""


def truth(solutions: Parameters, reach: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the true mean fitness and descriptor; no mean is farther than `reach` from the middle."""
    x = solutions.astype(np.float64)
    return -np.square(x[:, 2:]).sum(axis=1), reach * np.tanh(x[:, :2])


def task(reach: float, cells_of_noise: float, fitness_noise: float) -> FunctionTask:
    """Return a task with normal noise: on the descriptor in cells, on the fitness in its own unit."""

    def noisy(solutions: Parameters, seeds: Seeds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        fitness, descriptors = truth(solutions, reach)
        noise = np.stack([np.random.default_rng(int(seed)).normal(size=3) for seed in seeds])
        return fitness + fitness_noise * noise[:, 0], descriptors + cells_of_noise * WIDTH * noise[:, 1:]

    return FunctionTask(
        name="known", function=noisy, n_parameters=6, descriptor_bounds=BOX, cells=(CELLS, CELLS),
        fitness_bounds=INTERVAL, noisy=True, version=1,
    )  # fmt: skip


GRID = Grid(BOX, (CELLS, CELLS))


def placed(fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> tuple[NDArray[np.intp], Pair]:
    """Return who is left in the corrected archive, and its coverage and QD score."""
    left = fittest(fitness, GRID.cells(descriptors))
    found = scores(fitness[left], INTERVAL)
    return left, np.array([found.coverage, found.qd_score])


def plain(again: Reevaluations) -> Pair:
    """The corrected metrics."""
    return placed(*again.means())[1]


def split(again: Reevaluations) -> tuple[Reevaluations, Reevaluations]:
    """Return both halves of the samples."""
    return again[::2], again[1::2]


def two_rules(again: Reevaluations) -> Pair:
    """Split half as it was: coverage counts elites that stay in their cell, the score counts all."""
    found = []
    for chosen, scored in (split(again), split(again)[::-1]):
        left, _ = placed(*chosen.means())
        fitness, descriptors = (means[left] for means in scored.means())
        same = GRID.cells(descriptors) == GRID.cells(chosen.means()[1][left])
        found.append((same.sum(), scores(fitness, INTERVAL).qd_score))
    return np.asarray(np.mean(found, axis=0))


def one_rule(again: Reevaluations) -> Pair:
    """One half selects the elites; the other half alone places and scores them, by the usual rule."""
    found = []
    for chosen, scored in (split(again), split(again)[::-1]):
        left, _ = placed(*chosen.means())
        fitness, descriptors = (means[left] for means in scored.means())
        found.append(placed(fitness, descriptors)[1])
    return np.asarray(np.mean(found, axis=0))


def half(again: Reevaluations) -> Pair:
    """The corrected metrics with half of the samples, mean of both halves."""
    return np.asarray(np.mean([plain(part) for part in split(again)], axis=0))


def over_n(again: Reevaluations) -> Pair:
    """Extrapolation from N/2 and N, if the bias falls as 1/N."""
    return 2 * plain(again) - half(again)


def over_root(again: Reevaluations) -> Pair:
    """Extrapolation from N/2 and N, if the bias falls as 1/√N."""
    full = plain(again)
    return full + (full - half(again)) / (2**0.5 - 1)


def jackknife(again: Reevaluations) -> Pair:
    """The jackknife over samples."""
    n = again.n_samples
    keep = [np.delete(np.arange(n), i) for i in range(n)]
    less = [plain(Reevaluations(again.fitness[:, k], again.descriptors[:, k])) for k in keep]
    return np.asarray(n * plain(again) - (n - 1) * np.mean(less, axis=0))


ESTIMATORS: dict[str, Callable[[Reevaluations], Pair]] = {
    "corrected": plain,
    "split half, two rules": two_rules,
    "split half, one rule": one_rule,
    "extrapolated in 1/N": over_n,
    "extrapolated in 1/√N": over_root,
    "jackknife": jackknife,
}


def main() -> None:
    """Print bias and root mean square error of every estimator, for coverage and QD score."""
    heads = [f"{name} {what}" for name in ("coverage", "QD score") for what in ("bias", "RMSE")]
    facts = "reach (cells) | noise (cells) | noise (fitness) | elites | true coverage | N | estimator"
    print(f"| {facts} | {' | '.join(heads)} |")
    print("|" + "---|" * 11)
    every: dict[str, list[Pair]] = {name: [] for name in ESTIMATORS}
    for reach, cells_of_noise, fitness_noise in SETTINGS:
        noisy = task(reach, cells_of_noise, fitness_noise)
        with tempfile.TemporaryDirectory() as folder:
            run = qdbench.run(
                noisy, "map_elites", evaluations=10_000, out=folder, line_sigma=0.2, iso_sigma=0.05
            )
            elites = run.archive.elites.solutions
        fitness, descriptors = truth(elites, reach)
        true = placed(fitness, descriptors)[1]
        for n in (8, 16, 64):
            errors: dict[str, list[Pair]] = {name: [] for name in ESTIMATORS}
            for repeat in range(REPEATS):
                rng = stream(repeat, "limit", *map(str, (reach, cells_of_noise, fitness_noise, n)))
                shape = (len(elites), n)
                again = Reevaluations(
                    fitness[:, None] + fitness_noise * rng.normal(size=shape),
                    descriptors[:, None] + cells_of_noise * WIDTH * rng.normal(size=(*shape, 2)),
                )
                for name, estimator in ESTIMATORS.items():
                    errors[name].append(100 * (estimator(again) - true) / true)
            for name, found in errors.items():
                every[name].append(np.sqrt(np.mean(np.square(found), axis=0)))
                of_row = (reach / WIDTH, cells_of_noise, fitness_noise, len(elites), int(true[0]), n, name)
                print("|".join(["", *(f" {fact} " for fact in of_row), _shown(found)]), flush=True)
    base = np.array(every["corrected"])
    for name, of_name in every.items():
        better = (np.array(of_name) < base).sum(axis=0)
        print(
            f"{name}: lower RMSE than corrected in {better[0]} (coverage) and {better[1]} (QD score) "
            f"of {len(base)} cases"
        )


def _shown(errors: list[Pair]) -> str:
    bias, rms = np.mean(errors, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    numbers = [part[i] for i, part in product(range(2), (bias, rms))]
    return f" {' | '.join(f'{number:.1f}' for number in numbers)} |"


if __name__ == "__main__":
    main()
