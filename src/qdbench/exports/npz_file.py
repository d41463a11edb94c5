"""A policy as an .npz file: arrays by name, for NumPy and whatever else reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdbench.exports.policies import COLUMNS, FORMAT, ExportedPolicy, columns_of, joined
from qdbench.store.files import damage_named, write_npz
from qdbench.store.npz import json_value, read_npz, require_names, text
from qdbench.store.plain import as_json


def write(path: Path, policy: ExportedPolicy) -> None:
    """Write the file, whole or not at all."""
    layers: dict[str, NDArray[np.float32]] = {}
    for i, (weights, biases) in enumerate(policy.layers()):
        layers |= {f"weights_{i}": weights, f"biases_{i}": biases}
    about = {"format": FORMAT, "facts": json.dumps(as_json(policy.facts)), "mjcf": policy.mjcf}
    write_npz(path, {**about, **columns_of(policy), **layers})


def read(path: Path) -> ExportedPolicy:
    """Read it back, or say that it is damaged."""
    arrays = read_npz(path, version=FORMAT)
    with damage_named(path):
        n_layers = sum(name.startswith("weights_") for name in arrays)
        parts = [f"{part}_{i}" for i in range(n_layers) for part in ("weights", "biases")]
        require_names(arrays, ("facts", "mjcf", *COLUMNS, *parts))
        found = [arrays[part] for part in parts]
        layers = list(zip(found[::2], found[1::2], strict=True))
        return joined(json_value(arrays, "facts"), text(arrays, "mjcf"), arrays, layers)
