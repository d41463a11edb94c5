"""A policy as a .safetensors file: the `state_dict` of a plain `torch.nn.Sequential`.

PyTorch's own files are pickles. Safetensors hold arrays and texts, and nothing that could run.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import InvalidInput
from qdbench.exports.policies import FORMAT, ExportedPolicy, Layers, from_texts, texts_of
from qdbench.store.files import damage_named, open_to_read, require_format, write_bytes

LENGTH = 8  # bytes before the header


def write(path: Path, policy: ExportedPolicy) -> None:
    """Write the file, whole or not at all."""
    write_bytes(path, _safetensors().save(_state_dict(policy), metadata=texts_of(policy)))


def _state_dict(policy: ExportedPolicy) -> dict[str, NDArray[np.float32]]:
    """Return the parameters as `torch.nn.Linear` has them; of several policies with an axis in front."""
    found = {}
    for i, (weights, biases) in enumerate(policy.layers()):
        one = 0 if len(policy) == 1 else slice(None)
        found[f"{2 * i}.weight"] = np.ascontiguousarray(weights.transpose(0, 2, 1)[one])
        found[f"{2 * i}.bias"] = np.ascontiguousarray(biases[one])
    return found


def read(path: Path) -> ExportedPolicy:
    """Read it back, or say that it is damaged."""
    library = _safetensors()
    with damage_named(path):
        with open_to_read(path) as file:
            data = file.read()
        try:
            arrays = library.load(data)
        except Exception as error:  # the library's own class, which says what is wrong
            raise ValueError(str(error)) from None
        texts = json.loads(data[LENGTH : LENGTH + int.from_bytes(data[:LENGTH], "little")])["__metadata__"]
        found = int(texts["format"])
    require_format(path, found, FORMAT)
    with damage_named(path):
        layers: Layers = []
        for i in range(len(arrays) // 2):
            weights, biases = arrays.pop(f"{2 * i}.weight"), arrays.pop(f"{2 * i}.bias")
            if weights.ndim == 2:
                weights, biases = weights[None], biases[None]
            layers.append((weights.transpose(0, 2, 1), biases))
        if arrays:
            raise ValueError(f"it has an unknown array {next(iter(arrays))!r:.60}")
        return from_texts(texts, layers)


def _safetensors() -> Any:
    try:
        from safetensors import numpy as library
    except ImportError:
        raise InvalidInput(
            "this needs safetensors: pip install safetensors, or 'qdbench[torch]' for PyTorch as well"
        ) from None
    return library


def module_of(policy: ExportedPolicy, elite: int) -> Any:
    """Return a policy as a `torch.nn.Sequential`."""
    try:
        import torch
        from torch import nn
    except ImportError:
        raise InvalidInput("to_torch needs PyTorch: pip install 'qdbench[torch]'") from None
    sizes = policy.facts.network.sizes
    steps: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        steps += [nn.Linear(n_in, n_out), nn.ReLU()]
    module = nn.Sequential(*steps[:-1], nn.Tanh())
    with torch.no_grad():
        for linear, (weights, biases) in zip(steps[::2], policy.layers(), strict=True):
            linear.weight.copy_(torch.from_numpy(weights[elite].T.copy()))
            linear.bias.copy_(torch.from_numpy(biases[elite].copy()))
    return module
