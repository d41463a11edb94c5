"""How far a robot may get: bounds and cells of a final position that fit the length of the episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qdbench.checks import checked_number


class Follows(tuple[Any, ...]):
    """Bounds or cells that follow from a task's reach: `dataclasses.replace` computes them anew."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far a robot may get: the bounds of a descriptor that is a final position.

    The bounds grow with the length of the episode, and the width of a cell stays the same. So spreads and
    losses mean the same at any length. The start is the middle of a cell: an even number of cells shifts the
    bounds by half a cell.
    """

    speed: float
    """In m/s: the bounds are ± this speed for the whole episode."""
    cell: float
    """The width of a cell, in metres."""

    def __post_init__(self) -> None:
        for name in ("speed", "cell"):
            object.__setattr__(self, name, checked_number(f"reach: {name}", getattr(self, name), 1e-9))

    def geometry(self, seconds: float, dimensions: int) -> tuple[Follows, Follows]:
        """Return bounds and cells for an episode of this length."""
        n = max(1, round(2 * self.speed * seconds / self.cell))
        low = -((n - 1) // 2 + 0.5) * self.cell
        ends = (round(low, 9), round(low + n * self.cell, 9))
        return Follows((ends,) * dimensions), Follows((n,) * dimensions)


FOLLOWS = Follows()
"""Stands for bounds or cells that follow from the reach."""
