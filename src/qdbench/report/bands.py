"""The numbers behind the lines: median and quartiles over replications, on an axis they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.analysis.measures import Curves
from qdbench.metrics.profile import profile

Values = NDArray[np.float64]
Axis = Literal["evaluations", "seconds"]

QUARTILES = (0.25, 0.5, 0.75)
MOST_STEPS = 1000
"""Of a staircase; one with more is looked at so many places, more than a page has dots."""


@dataclass(frozen=True, eq=False)
class Band:
    """Median and quartiles of several curves; NaN where one of them is undefined."""

    x: Values  #: (m,)
    low: Values  #: (m,) the lower quartile
    middle: Values  #: (m,)
    high: Values  #: (m,) the upper quartile


def across(x: ArrayLike, replications: Sequence[ArrayLike]) -> Band:
    """Return the band of curves that are known at the same places."""
    low, middle, high = np.quantile(np.array(replications, np.float64), QUARTILES, axis=0)
    return Band(np.asarray(x, np.float64), low, middle, high)


def metric_band(replications: Sequence[Curves], name: str, axis: Axis) -> Band:
    """Return a metric's band along the runs.

    Between two iterations an archive stays as it is, so each curve is a staircase, and the value at any place
    is that of the iteration before. The band begins where all runs have begun and ends with half of them,
    where corrected ends are drawn, too; a run that ended before keeps its archive.
    """
    places = [getattr(curves, axis) for curves in replications]
    begin, end = max(p[0] for p in places), float(np.median([p[-1] for p in places]))
    x = _thinned(np.unique([*np.concatenate(places), end]), begin, end)
    values = (curves.values[name] for curves in replications)
    return across(
        x, [v[np.searchsorted(p, x, side="right") - 1] for p, v in zip(places, values, strict=True)]
    )


def corrected_band(replications: Sequence[Curves], name: str, axis: Axis) -> Band:
    """Return a corrected metric's band at the snapshots: nothing is known in between.

    The ends of all runs that were corrected there belong together, wherever they are. Snapshots along the way
    do if they were taken after as many evaluations; they count where at least half of the corrected
    replications have one. A place is the median of its replications'.
    """
    groups: dict[float, list[tuple[float, float]]] = {}
    for curves in replications:
        places, values = getattr(curves, f"corrected_{axis}").tolist(), curves.corrected[name].tolist()
        for moment, place, value in zip(curves.corrected_evaluations.tolist(), places, values, strict=True):
            at_end = moment == curves.evaluations[-1]
            groups.setdefault(np.inf if at_end else moment, []).append((place, value))
    enough = sum(len(curves.corrected_evaluations) > 0 for curves in replications) / 2
    points = [
        (np.median([place for place, _ in group]), *np.quantile([value for _, value in group], QUARTILES))
        for moment, group in groups.items()
        if moment == np.inf or len(group) >= enough
    ]
    return Band(*np.array(sorted(points), np.float64).reshape(-1, 4).T)


def profile_band(replications: Sequence[Values], left: float, right: float) -> Band:
    """Return the band of archive profiles from `left` to `right`, given the fitness of each archive's elites.

    `middle[i]` and the quartiles hold from just above `x[i - 1]` up to and with `x[i]`.
    """
    steps = np.unique(np.concatenate([*replications, [left, right]]))
    x = _thinned(steps, left, right)
    return across(x, [profile(fitness)(x) for fitness in replications])


def _thinned(places: Values, begin: float, end: float) -> Values:
    inside = places[(places >= begin) & (places <= end)]
    return inside if len(inside) <= MOST_STEPS else np.linspace(begin, end, MOST_STEPS)
