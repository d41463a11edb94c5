"""The numbers behind the curves: median and quartiles over replications, on a common axis."""

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
"""A curve with more steps is sampled at this many places: finer than any page."""


@dataclass(frozen=True, eq=False)
class Band:
    """Median and quartiles of several curves; NaN if one of them is undefined."""

    x: Values  #: (m,)
    low: Values  #: (m,) the lower quartile
    middle: Values  #: (m,)
    high: Values  #: (m,) the upper quartile


def across(x: ArrayLike, replications: Sequence[ArrayLike]) -> Band:
    """Return the band of curves with the same x values."""
    low, middle, high = np.quantile(np.array(replications, np.float64), QUARTILES, axis=0)
    return Band(np.asarray(x, np.float64), low, middle, high)


def metric_band(replications: Sequence[Curves], name: str, axis: Axis) -> Band:
    """Return the band of a metric along the runs.

    An archive does not change between two iterations. So each curve is a step function: its value is that of
    the iteration before. The band starts when all runs have started. A run that ended earlier keeps its last
    value. The band ends at the median of their ends with the last values of all runs, also of those that
    ended later: there the corrected last values are drawn, too, and both must be of the same archives.
    """
    places = [getattr(curves, axis) for curves in replications]
    end = float(np.median([p[-1] for p in places]))
    begin = min(max(p[0] for p in places), end)
    x = _thinned(np.unique([*np.concatenate(places), end]), begin, end)
    values = [curves.values[name] for curves in replications]
    drawn = [v[np.searchsorted(p, x[:-1], side="right") - 1] for p, v in zip(places, values, strict=True)]
    return across(x, [[*before, v[-1]] for before, v in zip(drawn, values, strict=True)])


def corrected_band(replications: Sequence[Curves], name: str, axis: Axis) -> Band:
    """Return the band of a corrected metric at the correction points. It is not known between them.

    The ends of all runs that were corrected at their end form one group, wherever they are. Earlier points
    form a group if they have the same number of evaluations; a group is drawn if at least half of the
    corrected replications are in it. Its x value is the median of its replications.
    """
    groups: dict[float, list[tuple[float, float]]] = {}
    for curves in replications:
        places, values = getattr(curves, f"corrected_{axis}").tolist(), curves.corrected[name].tolist()
        for point, place, value in zip(curves.corrected_evaluations.tolist(), places, values, strict=True):
            at_end = point == curves.evaluations[-1]
            groups.setdefault(np.inf if at_end else point, []).append((place, value))
    enough = sum(len(curves.corrected_evaluations) > 0 for curves in replications) / 2
    drawn = [
        (np.median([place for place, _ in group]), *np.quantile([value for _, value in group], QUARTILES))
        for point, group in groups.items()
        if point == np.inf or len(group) >= enough
    ]
    return Band(*np.array(sorted(drawn), np.float64).reshape(-1, 4).T)


def profile_band(replications: Sequence[Values], left: float, right: float) -> Band:
    """Return the band of archive profiles from `left` to `right`, from the fitness of each archive's elites.

    `middle[i]` and the quartiles are valid from just above `x[i - 1]` to `x[i]`, inclusive.
    """
    steps = np.unique(np.concatenate([*replications, [left, right]]))
    x = _thinned(steps, left, right)
    return across(x, [profile(fitness)(x) for fitness in replications])


def _thinned(places: Values, begin: float, end: float) -> Values:
    inside = places[(places >= begin) & (places <= end)]
    return inside if len(inside) <= MOST_STEPS else np.linspace(begin, end, MOST_STEPS)
