"""How many control steps every evaluation of a run made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class StepsMade:
    """Control steps by the number of the evaluation: one or two bytes each for usual episodes."""

    def __init__(self, steps: NDArray[Any] | None = None) -> None:
        self._steps = np.empty(0, np.uint8) if steps is None else steps
        self._n = len(self._steps)

    @property
    def all(self) -> NDArray[Any]:
        """The steps of all evaluations so far. Valid until the next ones are added."""
        return self._steps[: self._n]

    def add(self, steps: NDArray[Any]) -> None:
        """Add the steps of the next evaluations."""
        end = self._n + len(steps)
        dtype = np.promote_types(self._steps.dtype, steps.dtype)
        if end > len(self._steps) or dtype != self._steps.dtype:
            larger = np.empty(max(end, len(self._steps) * 3 // 2), dtype)
            larger[: self._n] = self.all
            self._steps = larger
        self._steps[self._n : end] = steps
        self._n = end

    def of(self, evaluations: NDArray[np.int64]) -> NDArray[Any]:
        """Return the steps of some evaluations, in their shape; 0 for a number that is none."""
        known = (evaluations >= 0) & (evaluations < self._n)
        if known.all():
            return self._steps[evaluations]
        steps = np.zeros(evaluations.shape, self._steps.dtype)
        steps[known] = self._steps[evaluations[known]]
        return steps
