"""Solutions with their results: what algorithms are told, and what archives hold."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import checked_column, require_equal_lengths, shown, usable
from qdbench.errors import InvalidInput
from qdbench.policy import Parameters
from qdbench.seeds import Seeds


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Solutions with fitness and descriptor, one row each.

    An evaluation is one episode; it has a number and a seed. A solution that was evaluated k times has k of
    both. Unused places have evaluation -1 and seed 0.
    """

    solutions: Parameters  #: (n, parameters) float32
    fitness: NDArray[np.float64]  #: (n,) NaN where invalid
    descriptors: NDArray[np.float64]  #: (n, dimensions) raw, never clipped; NaN where invalid
    evaluations: NDArray[np.int64]  #: (n, k) numbers of the evaluations, counted from 0
    seeds: Seeds  #: (n, k) seeds of the evaluations

    def __post_init__(self) -> None:
        columns = {name: checked_column(name, getattr(self, name), *kind) for name, kind in _KINDS.items()}
        require_equal_lengths("evaluated solutions", columns)
        if columns["evaluations"].shape != columns["seeds"].shape:
            raise InvalidInput(
                f"evaluations have the shape {columns['evaluations'].shape}, seeds {columns['seeds'].shape}; "
                "every evaluation has a seed"
            )
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.fitness)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which rows may enter an archive, (n,)."""
        return usable(self.fitness, self.descriptors)

    @property
    def samples(self) -> NDArray[np.int64]:
        """How often each solution was evaluated, (n,)."""
        samples: NDArray[np.int64] = (self.evaluations >= 0).sum(axis=1)
        return samples

    def __getitem__(self, rows: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Evaluated:
        """Return some of the rows."""
        try:
            return Evaluated(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})
        except (IndexError, TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{shown(rows)} chooses no rows of {len(self)}; give a slice, or numbers of rows"
            ) from None


_KINDS: dict[str, tuple[type[np.generic], int]] = {
    "solutions": (np.float32, 2),
    "fitness": (np.float64, 1),
    "descriptors": (np.float64, 2),
    "evaluations": (np.int64, 2),
    "seeds": (np.uint64, 2),
}
