"""How reproducible elites are: the spread of their re-evaluations, and what each noise costs alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Geometry
from qdbench.metrics.deviations import variances
from qdbench.metrics.returns import Elites
from qdbench.metrics.robustness import Reevaluations, placed
from qdbench.metrics.scores import scores

Numbers = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Spreads:
    """The standard deviations of the re-evaluations of every elite; NaN if one was invalid."""

    fitness: Numbers  #: (n,) in widths of the interval
    descriptor: Numbers  #: (n,) in shares of the descriptor's box, the root mean square over dimensions


def spreads(geometry: Geometry, again: Reevaluations, interval: Interval) -> Spreads:
    """Return how far the re-evaluations of each elite scatter; needs two of them."""
    box = np.diff(geometry.bounds, axis=1)[:, 0]
    return Spreads(
        np.sqrt(variances(again.fitness)) / (interval[1] - interval[0]),
        np.sqrt((variances(again.descriptors) / box**2).mean(axis=1)),
    )


def reproducibility(spread: Numbers) -> Numbers:
    """Return 1 for no spread and 0 for the largest within bounds, half their width (or more), (n,)."""
    found: Numbers = np.clip(1 - 2 * spread, 0, 1)
    return found


@dataclass(frozen=True)
class Reproduced:
    """Reproducibility of an archive, and QD scores in which only one of the two noises is corrected."""

    fitness_reproducibility: float
    """Mean over elites."""
    descriptor_reproducibility: float
    """Mean over elites."""
    reproducibility_score: float
    """Sum over elites of both, multiplied."""
    fitness_corrected_qd_score: float
    """Mean fitness, but stored descriptors: what luck of fitness is worth."""
    descriptor_corrected_qd_score: float
    """Mean descriptors, but stored fitness: what luck of descriptors is worth."""


def reproduced(
    geometry: Geometry, elites: Elites, again: Reevaluations, fixed: Interval, interval: Interval
) -> Reproduced:
    """Compare elites with their re-evaluations; those with an invalid one are lost.

    Reproducibility is on the `fixed` interval, the QD scores on `interval`.
    """
    left = ~np.isnan(again.fitness).any(axis=1)
    valid = again.valid()
    fitness, descriptors = valid.means()
    by_fitness = placed(geometry, fitness, elites.descriptors[left]).elites.fitness
    by_descriptor = placed(geometry, elites.fitness[left], descriptors).elites.fitness
    alone = scores(by_fitness, interval).qd_score, scores(by_descriptor, interval).qd_score
    if not left.any() or again.n_samples < 2:
        return Reproduced(np.nan, np.nan, np.nan, *alone)
    spread = spreads(geometry, valid, fixed)
    both = reproducibility(spread.fitness), reproducibility(spread.descriptor)
    return Reproduced(float(both[0].mean()), float(both[1].mean()), float((both[0] * both[1]).sum()), *alone)
