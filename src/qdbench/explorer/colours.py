"""Colours of elites, and pictures of planes: plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Cvt, Grid
from qdbench.archives.layout import Rows, axes_of
from qdbench.explorer.plane import PIXELS, Plane

Numbers = NDArray[np.float64]
Bytes = NDArray[np.uint8]

# viridis at 17 places: the colours of all our heatmaps, without matplotlib (a test compares them)
_VIRIDIS = (
    (68, 1, 84), (72, 24, 106), (71, 45, 123), (66, 64, 134), (59, 82, 139), (51, 99, 141),
    (44, 114, 142), (38, 130, 142), (33, 145, 140), (31, 160, 136), (40, 174, 128), (63, 188, 115),
    (94, 201, 98), (132, 212, 75), (173, 220, 48), (216, 226, 25), (253, 231, 37),
)  # fmt: skip
EMPTY, GAP, LINE = (120, 130, 150, 34), (0, 0, 0, 0), (200, 210, 225, 150)
FADED = 40
"""Opacity of cells below the threshold, of 255."""
UNKNOWN = (150, 150, 150)
"""Colour of elites without a value."""
_LEAST_TILE = 5
"""Cells of at least this many pixels have a gap around them."""

CSS_GRADIENT = f"linear-gradient(to right, {', '.join(f'rgb{colour}' for colour in _VIRIDIS)})"


def viridis(shares: Numbers) -> Bytes:
    """Return the colours of numbers from 0 to 1, (n, 3); grey for NaN."""
    places = np.linspace(0, 1, len(_VIRIDIS))
    channels = [np.interp(shares, places, channel) for channel in np.array(_VIRIDIS, np.float64).T]
    found = np.where(np.isnan(shares)[:, None], UNKNOWN, np.stack(channels, axis=1))
    return np.rint(found).astype(np.uint8)


def limits(values: Numbers) -> tuple[float, float]:
    """Return the lowest and the highest of the known values; (0, 1) if there is none."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def tiles(plane: Plane) -> Rows:
    """Return which elite is at every pixel of a picture, larger than the plane.

    -1 is an empty cell, -2 a gap between cells, -3 a line between the blocks of nested dimensions.
    """
    height, width = plane.rows.shape
    across = max(1, PIXELS // max(height, width))
    up = across * max(1, width // 10) if plane.is_strip else across
    fine = plane.rows.repeat(up, axis=0).repeat(across, axis=1)
    if isinstance(plane.cells, Cvt):
        borders = np.zeros(fine.shape, np.bool_)
        borders[:, 1:] |= fine[:, 1:] != fine[:, :-1]
        borders[1:] |= fine[1:] != fine[:-1]
        fine[borders] = -2
    elif across >= _LEAST_TILE and plane.cells is not None:
        fine[:, ::across] = -2
        fine[::up] = -2
        if isinstance(plane.cells, Grid) and len(plane.cells.shape) > 2:
            columns, rows = (
                prod(plane.cells.shape[i] for i in axis[1:]) for axis in axes_of(len(plane.bounds))
            )
            fine[:, :: across * columns] = -3
            fine[:: up * rows] = -3
    return fine


def picture(fine: Rows, colours: Bytes, faded: Sequence[bool] | NDArray[np.bool_]) -> Bytes:
    """Return the picture of a plane, (height, width, 4); row 0 is the lowest.

    `colours` (n, 3) and `faded` (n,) are those of every elite of the archive.
    """
    n = len(colours)
    palette = np.zeros((n + 3, 4), np.uint8)
    palette[:n, :3] = colours
    palette[:n, 3] = np.where(faded, FADED, 255)
    palette[-3:] = LINE, GAP, EMPTY
    return palette[fine]
