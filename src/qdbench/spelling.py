"""How values of task options are written: cells=30x30, descriptor_bounds=-5:5x-5:5."""

from __future__ import annotations

from typing import Any

BETWEEN = "x"
RANGE = ":"


def spelled(value: Any) -> str:
    """Return a value in the form of `--task-set NAME=VALUE`."""
    if isinstance(value, tuple | list):
        pairs = value and isinstance(value[0], tuple | list)
        return BETWEEN.join(RANGE.join(map(spelled, item)) if pairs else spelled(item) for item in value)
    return f"{value!r}" if isinstance(value, float) else str(value)
