"""Corrected archives, losses and extrapolated scores: archives whose elites were re-evaluated.

The corrected archive starts empty and is filled by the usual rule. Each elite is inserted with its mean
fitness and mean descriptor, in the order of the archive's rows. An elite with an invalid re-evaluation is
lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Geometry
from qdbench.archives.unstructured import empty_archive
from qdbench.metrics.scores import Scores, scores

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Reevaluations:
    """N re-evaluations of each of n elites."""

    fitness: NDArray[np.float64]  #: (n, N) NaN where invalid
    descriptors: NDArray[np.float64]  #: (n, N, dimensions)

    def __len__(self) -> int:
        return len(self.fitness)

    @property
    def n_samples(self) -> int:
        """The number of re-evaluations of each elite."""
        return int(self.fitness.shape[1])

    @property
    def lost(self) -> int:
        """The number of elites with an invalid re-evaluation."""
        return int(np.isnan(self.fitness).any(axis=1).sum())

    def valid(self) -> Reevaluations:
        """Return the elites without an invalid re-evaluation."""
        left = ~np.isnan(self.fitness).any(axis=1)
        return Reevaluations(self.fitness[left], self.descriptors[left])

    def __getitem__(self, samples: slice) -> Reevaluations:
        """Return some of the samples of every elite."""
        return Reevaluations(self.fitness[:, samples], self.descriptors[:, samples])

    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean fitness (n,) and mean raw descriptor (n, dimensions); NaN if one was invalid."""
        return _mean(self.fitness), _mean(self.descriptors)


def _mean(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means over the second axis; for equal numbers exactly that number, without rounding."""
    first = samples[:, :1]
    mean: NDArray[np.float64] = first[:, 0] + (samples - first).mean(axis=1)
    return mean


def corrected_archive(geometry: Geometry, reevaluations: Reevaluations) -> Archive:
    """Return the archive of the elites at their means; `evaluations` are their row numbers."""
    return placed(geometry, *reevaluations.means())


def placed(geometry: Geometry, fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> Archive:
    """Return the archive of elites with other fitness or descriptors; `evaluations` are row numbers."""
    archive = empty_archive(geometry)
    archive.insert(_rows(fitness, descriptors))
    return archive


def _rows(fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> Evaluated:
    numbers = np.arange(len(fitness))[:, None]
    nothing = np.zeros((len(fitness), 0), np.float32)
    return Evaluated(nothing, fitness, descriptors, numbers, np.zeros(numbers.shape, np.uint64))


@dataclass(frozen=True)
class Losses:
    """(uncorrected - corrected) / uncorrected, for each metric; NaN (undefined) if uncorrected is ≤ 0."""

    coverage: float
    qd_score: float
    max_fitness: float


def losses(before: Scores, after: Scores) -> Losses:
    """Return the loss of each metric; negative if the corrected value is higher."""
    return Losses(
        _loss(before.coverage, after.coverage),
        _loss(before.qd_score, after.qd_score),
        _loss(before.max_fitness, after.max_fitness),
    )


def _loss(before: float, after: float) -> float:
    return (before - after) / before if before > 0 else np.nan


def by_samples(
    geometry: Geometry,
    reevaluations: Reevaluations,
    interval: Interval,
    counts: Iterable[int] | None = None,
) -> list[Scores]:
    """Return the corrected scores with only the first 1, 2, … N re-evaluations, or only `counts` of them.

    An elite with an invalid re-evaluation is lost for all counts, so that the curve shows the bias alone.
    """
    valid = reevaluations.valid()
    chosen = range(1, reevaluations.n_samples + 1) if counts is None else counts
    archives = (corrected_archive(geometry, valid[:n]) for n in chosen)
    return [scores(archive.elites.fitness, interval) for archive in archives]


@dataclass(frozen=True)
class Extrapolated:
    """Estimates of the corrected scores with infinitely many re-evaluations; NaN with fewer than two."""

    coverage: float
    qd_score: float


def extrapolated(
    geometry: Geometry, reevaluations: Reevaluations, interval: Interval, corrected: Archive | None = None
) -> Extrapolated:
    """Extrapolate the corrected scores from N/2 and N re-evaluations, as if their bias fell as 1/N.

    With N/2, it is the mean of both halves of the samples. No estimate is below 0. An elite with an invalid
    re-evaluation is lost in both halves. `corrected` is the archive of all N, if it is there already.
    """
    valid = reevaluations.valid()
    n = valid.n_samples
    if n < 2:
        return Extrapolated(np.nan, np.nan)
    full = _scored(corrected_archive(geometry, valid) if corrected is None else corrected, interval)
    halves = [_scored(corrected_archive(geometry, half), interval) for half in (valid[::2], valid[1::2])]
    inverse = (1 / (n - n // 2) + 1 / (n // 2)) / 2  # of the halves' sizes; 2 / n if they are equal
    limit = full + (full - np.mean(halves, axis=0)) / (n * inverse - 1)
    coverage, score = np.maximum(limit, 0.0).tolist()
    return Extrapolated(coverage, score)


def _scored(archive: Archive, interval: Interval) -> NDArray[np.float64]:
    found = scores(archive.elites.fitness, interval)
    return np.array([found.coverage, found.qd_score])
