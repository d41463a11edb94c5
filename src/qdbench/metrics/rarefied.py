"""The loss of a random part of an archive: what archives of different sizes lose at one size.

Of n elites, m are drawn at random without replacement and put into a corrected archive. Each of its cells
keeps the best of those that were drawn. The expected loss is computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Geometry
from qdbench.metrics.robustness import Reevaluations
from qdbench.metrics.scores import Interval, above_low

RAREFIED_TO = 100
"""The number of elites of the metrics."""


@dataclass(frozen=True)
class RarefiedLoss:
    """Expected losses of m elites; NaN if the archive has fewer."""

    coverage: float
    """1 - expected corrected coverage / m."""
    qd_score: float
    """1 - expected corrected QD score / expected uncorrected QD score; NaN if the latter is 0."""


def rarefied_losses(
    geometry: Geometry,
    fitness: NDArray[np.float64],
    again: Reevaluations,
    interval: Interval,
    sizes: Iterable[int],
) -> list[RarefiedLoss]:
    """Return the expected losses for every number m of elites that are drawn.

    `fitness` is the stored one, (n,), of elites that are each in a cell of its own.
    """
    n, sizes = len(fitness), list(sizes)
    valid = again.valid()  # the others can be drawn, and are lost
    means, descriptors = valid.means()
    cells = geometry.cells(descriptors) if len(valid) else np.empty(0, np.int64)
    order = np.lexsort((-means, cells))
    rank = _ranks(cells[order])
    before, after = above_low(fitness, interval).sum(), above_low(means[order], interval)
    found = []
    for m in sizes:
        if not 1 <= m <= n:
            found.append(RarefiedLoss(np.nan, np.nan))
            continue
        weights = -np.diff(_none_drawn(n, m, rank.max(initial=-1) + 1))[rank]
        score = 1 - float(weights @ after) / (m / n * before) if before > 0 else np.nan
        found.append(RarefiedLoss(1 - float(weights.sum()) / m, score))
    return found


def _ranks(cells: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the place of each within its cell, from 0; the cells are sorted."""
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    rank: NDArray[np.intp] = np.arange(len(cells)) - np.repeat(first, np.diff(first, append=len(cells)))
    return rank


def _none_drawn(n: int, m: int, most: int) -> NDArray[np.float64]:
    """Return the probabilities that none of 0, 1, … `most` given elites is among m of n: C(n-k, m) / C(n, m).

    The best in a cell is the one of rank r, if it was drawn and none of the r before it: the difference of
    two of these.
    """
    k = np.arange(most)
    return np.concatenate([[1.0], np.cumprod(np.maximum(n - m - k, 0) / (n - k))])
