"""What is left of an archive when its elites are evaluated again and again.

The corrected archive is filled by the usual rule, from empty, with the elites at their mean fitness and mean
descriptor, in the order of the archive's rows. An elite with an invalid re-evaluation is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.stored import Container
from qdbench.metrics.scores import Scores, scores

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Reevaluations:
    """N new evaluations of each of n elites."""

    fitness: NDArray[np.float64]  #: (n, N) NaN where invalid
    descriptors: NDArray[np.float64]  #: (n, N, dimensions)

    def __len__(self) -> int:
        return len(self.fitness)

    @property
    def lost(self) -> int:
        """How many elites have an invalid re-evaluation."""
        return int(np.isnan(self.fitness).any(axis=1).sum())

    def whole(self) -> Reevaluations:
        """Return the elites without an invalid re-evaluation."""
        left = ~np.isnan(self.fitness).any(axis=1)
        return Reevaluations(self.fitness[left], self.descriptors[left])

    def __getitem__(self, samples: slice) -> Reevaluations:
        """Return some of the samples of every elite."""
        return Reevaluations(self.fitness[:, samples], self.descriptors[:, samples])

    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean fitness (n,) and mean raw descriptor (n, dimensions); NaN where one was invalid."""
        return _mean(self.fitness), _mean(self.descriptors)


def _mean(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means over the second axis; of equal numbers exactly that number, which a sum would round."""
    first = samples[:, :1]
    mean: NDArray[np.float64] = first[:, 0] + (samples - first).mean(axis=1)
    return mean


def corrected_archive(container: Container, reevaluations: Reevaluations) -> Archive:
    """Return the archive that the elites make at their means; `evaluations` are their row numbers."""
    archive = container.empty_archive()
    archive.insert(_rows(*reevaluations.means()))
    return archive


def _rows(fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> Evaluated:
    numbers = np.arange(len(fitness))[:, None]
    nothing = np.zeros((len(fitness), 0), np.float32)
    return Evaluated(nothing, fitness, descriptors, numbers, np.zeros(numbers.shape, np.uint64))


@dataclass(frozen=True)
class Losses:
    """(before - after) / before, of each metric; NaN ("undefined") where before is not above 0."""

    coverage: float
    qd_score: float
    max_fitness: float


def losses(before: Scores, after: Scores) -> Losses:
    """Return the share of each metric that the correction takes away; negative where it adds."""
    return Losses(
        _loss(before.coverage, after.coverage),
        _loss(before.qd_score, after.qd_score),
        _loss(before.max_fitness, after.max_fitness),
    )


def _loss(before: float, after: float) -> float:
    return (before - after) / before if before > 0 else np.nan


def by_samples(
    container: Container,
    reevaluations: Reevaluations,
    interval: Interval,
    counts: Iterable[int] | None = None,
) -> list[Scores]:
    """Return the corrected scores as they would be with the first 1, 2, … N re-evaluations only, or `counts`.

    An elite with an invalid re-evaluation is lost from the first on: the curve shows nothing but the bias.
    """
    n_samples, whole = reevaluations.fitness.shape[1], reevaluations.whole()
    archives = (corrected_archive(container, whole[:n]) for n in counts or range(1, n_samples + 1))
    return [scores(archive.elites.fitness, interval) for archive in archives]


@dataclass(frozen=True)
class SplitHalf:
    """Scores without the optimism of choosing and scoring by the same samples; means of both directions."""

    coverage: float
    """Cells whose chosen elite the other half puts into the same cell (NaN without cells)."""
    qd_score: float
    """Of the elites that one half chose and placed, scored by the other half."""


def split_half(container: Container, reevaluations: Reevaluations, interval: Interval) -> SplitHalf:
    """Place and select the elites by one half of the samples and score them by the other.

    An elite with an invalid re-evaluation is lost here too, to both halves.
    """
    whole = reevaluations.whole()
    halves = whole[::2], whole[1::2]
    if halves[1].fitness.shape[1] == 0:
        return SplitHalf(np.nan, np.nan)
    found = []
    for chosen_by, scored_by in (halves, halves[::-1]):
        archive = corrected_archive(container, chosen_by)
        fitness, descriptors = (means[archive.elites.evaluations[:, 0]] for means in scored_by.means())
        score = scores(fitness, interval).qd_score
        if container.n_cells is None:
            found.append((np.nan, score))
        else:
            same = archive.geometry.cells(descriptors) == archive.cells
            found.append((float(same.sum()), score))
    coverage, score = np.mean(found, axis=0).tolist()
    return SplitHalf(coverage, score)
