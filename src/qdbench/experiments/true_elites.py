"""What an algorithm hands over must be what it was told: checked by the loop, after every iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.errors import BrokenAlgorithm
from qdbench.experiments.plan import Plan
from qdbench.experiments.steps_made import StepsMade
from qdbench.store.told_log import ToldLog

ROUNDING = 1e-9
"""How far a mean of several samples may be off, relative to the samples' size."""


def require_true_elites(algorithm: str, collection: Evaluated, told: Evaluated, log: ToldLog) -> None:
    """Compare the new elites with what was told: of one sample exactly, of several with their mean.

    Means are compared if the log goes back to the start.
    """
    if not len(collection) or not len(told):
        return
    first = int(told.evaluations[0, 0])
    new = np.flatnonzero((collection.evaluations >= first).any(axis=1))
    samples = collection.samples[new]
    for row in new[samples == 1].tolist():
        number = int(collection.evaluations[row].max())
        _require(algorithm, number < first + len(told), f"an elite of evaluation {number:,}, never told")
        expected = told[number - first : number - first + 1]
        same = (
            collection.fitness[row] == expected.fitness[0]
            and np.array_equal(collection.descriptors[row], expected.descriptors[0])
            and int(collection.seeds[row].max()) == int(expected.seeds[0, 0])
        )
        _require(algorithm, same, f"an elite that differs from what evaluation {number:,} gave")
    several = new[samples > 1]
    if len(several):
        numbers = collection.evaluations[several]
        used = numbers >= 0
        end = first + len(told)
        _require(
            algorithm, bool(numbers.max() < end), f"an elite of evaluation {numbers.max():,}, never told"
        )
        if not log.reaches_back:  # it was lost: what the earlier samples gave is not known
            return
        fitness, descriptors, _ = log.outcomes(np.maximum(numbers, 0))
        same = _means(collection.fitness[several], fitness, used) and all(
            _means(collection.descriptors[several, i], descriptors[..., i], used)
            for i in range(descriptors.shape[-1])
        )
        _require(algorithm, same, "an elite whose numbers are not the means of its samples")


def require_known_elites(elites: Evaluated, steps: StepsMade, plan: Plan, log: ToldLog) -> None:
    """Compare restored elites with what was told, as far as the log goes back; ValueError if they differ.

    `steps` are those of all evaluations that were made.
    """
    n, k = elites.evaluations.shape
    if elites.solutions.shape != (n, plan.task.n_parameters) or elites.seeds.shape != (n, k):
        raise ValueError("its elites have other shapes than solutions of this task")
    numbers = elites.evaluations
    made = n == 0 or (numbers.max() < len(steps.all) and numbers.min() >= -1)
    if not made or not (numbers >= 0).any(axis=1).all():
        raise ValueError("its elites are of evaluations that were never made")
    single = np.flatnonzero((elites.evaluations >= 0).sum(axis=1) == 1)
    if not len(single) or not log.reaches_back:
        return
    numbers = elites.evaluations[single].max(axis=1)
    fitness, descriptors, lives = log.outcomes(numbers)
    if not (
        np.array_equal(elites.fitness[single], fitness)
        and np.array_equal(elites.descriptors[single], descriptors)
        and np.array_equal(steps.of(numbers), lives)
    ):
        raise ValueError("its elites differ from what the algorithm was told")


def _means(stored: NDArray[np.float64], samples: NDArray[np.float64], used: NDArray[np.bool_]) -> bool:
    """Return whether each number, (n,), is the mean of its used samples, (n, k)."""
    means, size = samples.mean(axis=1, where=used), np.abs(samples).max(axis=1, where=used, initial=0)
    return bool((np.abs(stored - means) <= ROUNDING * size).all())


def _require(algorithm: str, kept: bool, broken: str) -> None:
    if not kept:
        raise broken_rule(algorithm, f"hands over {broken}")


def broken_rule(algorithm: str, what: str) -> BrokenAlgorithm:
    """Return the error of a run whose algorithm breaks the contract, with the command that says more."""
    return BrokenAlgorithm(f"{algorithm} {what}; `qdbench check {algorithm}` finds such mistakes in a moment")
