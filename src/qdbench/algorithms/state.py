"""An algorithm's state as flat arrays and JSON, so that a checkpoint needs no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import BrokenAlgorithm

SEPARATOR = "/"


def flatten(state: Mapping[str, Any], prefix: str = "") -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return a nested state as arrays by path, and everything else as a nested JSON value."""
    arrays: dict[str, NDArray[Any]] = {}
    rest: dict[str, Any] = {}
    for key, value in state.items():
        if not isinstance(key, str) or SEPARATOR in key:
            raise BrokenAlgorithm(f"the state's key {key!r} must be a string without {SEPARATOR!r}")
        path = prefix + key
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise BrokenAlgorithm(f"the state's {path!r} holds Python objects; give numbers or text")
            arrays[path] = value
        elif isinstance(value, Mapping):
            inner, rest[key] = flatten(value, path + SEPARATOR)
            arrays |= inner
        else:
            rest[key] = value
            _require_json(path, value)
    return arrays, rest


def unflatten(arrays: Mapping[str, NDArray[Any]], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested state that `flatten` took apart."""
    state = {key: unflatten({}, value) if isinstance(value, dict) else value for key, value in rest.items()}
    for path, array in arrays.items():
        *outer, key = path.split(SEPARATOR)
        inner = state
        for name in outer:
            inner = inner[name]
        inner[key] = array
    return state


def _require_json(path: str, value: Any) -> None:
    try:
        faithful = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        faithful = False
    if not faithful:
        raise BrokenAlgorithm(
            f"the state's {path!r} is {value!r}, which JSON cannot hold; give an array, a number or text"
        )
