"""What re-evaluations tell of every elite alone: no collisions, so archives of any size can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Geometry, Grid
from qdbench.metrics.robustness import Reevaluations

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Elites:
    """Elites as the run stored them."""

    fitness: Numbers  #: (n,)
    descriptors: Numbers  #: (n, dimensions)


@dataclass(frozen=True)
class Returns:
    """How far re-evaluations are from the elites as stored."""

    return_rate: float
    """Share of re-evaluations in the elite's own cell."""
    interior_return_rate: float
    """The same for elites in cells away from the border of a grid; NaN if there is none."""
    displacement: float
    """Mean distance between stored and expected descriptor, in cells."""
    fitness_luck: float
    """Mean of stored minus expected fitness, in widths of the interval."""
    descriptor_luck: float
    """Mean of stored minus expected distance from the centre of the archive, in cells."""
    lucky_share: float
    """Share of elites whose stored fitness is above their expected fitness."""


def cell_size(geometry: Geometry) -> Numbers:
    """Return the size of a cell along every dimension, in the descriptor's unit.

    In a CVT: of a cube with the mean volume of the cells, in the normalised box.
    """
    widths = np.diff(geometry.bounds, axis=1)[:, 0]
    if isinstance(geometry, Grid):
        return np.asarray(widths / np.array(geometry.shape))
    assert geometry.n_cells is not None, "only unstructured archives have no cells, and they are not measured"
    return np.asarray(widths * geometry.n_cells ** (-1 / len(widths)))


def on_border(geometry: Geometry, descriptors: Numbers) -> NDArray[np.bool_]:
    """Return which descriptors are in a border cell of a grid; all of them, if there is no grid."""
    if not isinstance(geometry, Grid):
        return np.ones(len(descriptors), np.bool_)
    places = np.stack(np.unravel_index(geometry.cells(descriptors), geometry.shape), axis=1)
    border: NDArray[np.bool_] = ((places == 0) | (places == np.array(geometry.shape) - 1)).any(axis=1)
    return border


def returned(geometry: Geometry, elites: Elites, again: Reevaluations) -> NDArray[np.bool_]:
    """Return which re-evaluations came back to their elite's cell, (n, N); an invalid one did not."""
    valid = ~np.isnan(again.fitness)
    back = np.zeros(valid.shape, np.bool_)
    which = np.nonzero(valid)
    here, there = elites.descriptors[which[0]], again.descriptors[valid]
    back[valid] = geometry.cells(there) == geometry.cells(here)
    return back


def returns(
    geometry: Geometry, elites: Elites, again: Reevaluations, interval: tuple[float, float]
) -> Returns:
    """Compare elites with their re-evaluations. Those with an invalid one count only in return rates."""
    back = returned(geometry, elites, again)
    inner = back[~on_border(geometry, elites.descriptors)]
    left = ~np.isnan(again.fitness).any(axis=1)
    rates = _mean(back), _mean(inner)
    if not left.any():
        return Returns(*rates, np.nan, np.nan, np.nan, np.nan)
    valid = again.valid()
    size = cell_size(geometry)
    fitness, descriptors = valid.means()
    stored, places = elites.fitness[left], elites.descriptors[left] / size
    centre = descriptors.mean(axis=0) / size
    out = np.linalg.norm(places - centre, axis=1)
    expected = np.linalg.norm(valid.descriptors / size - centre, axis=2).mean(axis=1)
    return Returns(
        *rates,
        displacement=_mean(np.linalg.norm(places - descriptors / size, axis=1)),
        fitness_luck=_mean(stored - fitness) / (interval[1] - interval[0]),
        descriptor_luck=_mean(out - expected),
        lucky_share=_mean(stored > fitness),
    )


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else np.nan
