"""Which elites of an archive are shown: the best, the median, and the most diverse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.store.archive_file import StoredArchive

SHOWN = 6
"""Elites per algorithm."""


def chosen_elites(archive: StoredArchive, n: int = SHOWN) -> list[tuple[int, str]]:
    """Return rows of an archive with the reason for each; at most `n`, each once.

    After the best and the median by fitness, each further elite is the one whose descriptor is farthest
    from all that are chosen, measured in units of the descriptor bounds.
    """
    if not len(archive):
        return []
    order = np.argsort(archive.fitness, kind="stable")
    found = {int(order[-1]): "best", int(order[(len(order) - 1) // 2]): "median"}
    if len(order) == 1:
        found = {int(order[0]): "best"}
    low, high = np.asarray(archive.geometry.bounds, np.float64).T
    places = (archive.descriptors - low) / (high - low)
    nearest: NDArray[np.float64] = np.full(len(places), np.inf)
    for row in found:
        nearest = np.minimum(nearest, _distance(places, row))
    while len(found) < min(n, len(places)) and nearest.max() > 0:
        row = int(nearest.argmax())
        found[row] = "diverse"
        nearest = np.minimum(nearest, _distance(places, row))
    return list(found.items())[:n]


def _distance(places: NDArray[np.float64], row: int) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.linalg.norm(places - places[row], axis=1)
    return distances
