"""A policy as an .onnx file: a model from `observation` (batch, inputs) to `action` (batch, outputs).

Of several policies, a second input `elite` (batch,) chooses the policy of every row.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench.errors import InvalidInput
from qdbench.exports.policies import FORMAT, ExportedPolicy, Layers, from_texts, texts_of
from qdbench.store.files import damage_named, open_to_read, require_format, write_bytes

MOST_BYTES = 2**31 - 2**20
"""A model is one protocol buffer, which ends at 2 GiB."""
OPSET, IR = 17, 8  # of 2022: what runs them need not be new
AXIS = "axis"


def write(path: Path, policy: ExportedPolicy) -> None:
    """Write the file, whole or not at all."""
    onnx = _onnx()
    n_bytes = policy.solutions.nbytes
    if n_bytes > MOST_BYTES:
        raise InvalidInput(
            f"{len(policy):,} policies take {n_bytes / 1e9:.1f} GB, an ONNX file at most 2 GB; use npz, or "
            "export fewer"
        )
    sizes, several = policy.facts.network.sizes, len(policy) > 1
    nodes, ends = _nodes(onnx, len(sizes) - 1, several), _ends(onnx, sizes, several)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "policy", *ends),
        ir_version=IR,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="qdbench",
        producer_version=qdbench.__version__,
    )
    for i, (weights, biases) in enumerate(policy.layers()):
        _add(onnx, model, f"weights_{i}", weights if several else weights[0])
        _add(onnx, model, f"biases_{i}", biases[:, None] if several else biases[0])
    if several:
        model.graph.initializer.append(onnx.helper.make_tensor(AXIS, onnx.TensorProto.INT64, [1], [1]))
    onnx.helper.set_model_props(model, texts_of(policy))
    write_bytes(path, model.SerializeToString())


def _ends(onnx: Any, sizes: tuple[int, ...], several: bool) -> tuple[list[Any], list[Any]]:
    kinds, make = onnx.TensorProto, onnx.helper.make_tensor_value_info
    inputs = [make("observation", kinds.FLOAT, ["batch", sizes[0]])]
    inputs += [make("elite", kinds.INT64, ["batch"])] if several else []
    return inputs, [make("action", kinds.FLOAT, ["batch", sizes[-1]])]


def _nodes(onnx: Any, n_layers: int, several: bool) -> list[Any]:
    """Return the network: what is multiplied, added and squashed, in this order."""
    make, nodes, x = onnx.helper.make_node, [], "observation"
    if several:
        nodes.append(make("Unsqueeze", [x, AXIS], ["rows"]))
        x = "rows"
    for i in range(n_layers):
        weights, biases, last = f"weights_{i}", f"biases_{i}", i == n_layers - 1
        if several:
            nodes.append(make("Gather", [weights, "elite"], [f"own_{weights}"], axis=0))
            nodes.append(make("Gather", [biases, "elite"], [f"own_{biases}"], axis=0))
            weights, biases = f"own_{weights}", f"own_{biases}"
        nodes.append(make("MatMul", [x, weights], [f"product_{i}"]))
        nodes.append(make("Add", [f"product_{i}", biases], [f"sum_{i}"]))
        x = "action" if last and not several else f"layer_{i}"
        nodes.append(make("Tanh" if last else "Relu", [f"sum_{i}"], [x]))
    if several:
        nodes.append(make("Squeeze", [x, AXIS], ["action"]))
    return nodes


def _add(onnx: Any, model: Any, name: str, array: NDArray[np.float32]) -> None:
    """Add an array to a model; in place, because onnx's own function copies a gigabyte several times."""
    kind, data = onnx.TensorProto.FLOAT, np.ascontiguousarray(array, "<f4").tobytes()
    model.graph.initializer.add(name=name, data_type=kind, dims=array.shape, raw_data=data)


def read(path: Path) -> ExportedPolicy:
    """Read it back, or say that it is damaged. Nothing in it is run, and no other file is looked at."""
    onnx = _onnx()
    with damage_named(path):
        with open_to_read(path) as file:
            data = file.read(2**31)
        try:
            model = onnx.ModelProto.FromString(data)
        except Exception as error:  # of protobuf: it is no model
            raise ValueError(str(error)) from None
        texts = {entry.key: entry.value for entry in model.metadata_props}
        found = int(texts["format"])
    require_format(path, found, FORMAT)
    with damage_named(path):
        tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        several = tensors.pop(AXIS, None) is not None
        layers: Layers = []
        for i in range(len(tensors) // 2):
            weights, biases = (_array(onnx, tensors.pop(f"{name}_{i}")) for name in ("weights", "biases"))
            layers.append((weights, biases[:, 0]) if several else (weights[None], biases[None]))
        policy = from_texts(texts, layers)
        inputs, outputs = _ends(onnx, policy.facts.network.sizes, several)
        same = (
            list(model.graph.node) == _nodes(onnx, len(layers), several)
            and list(model.graph.input) == inputs
            and list(model.graph.output) == outputs
        )
        if tensors or not same:
            raise ValueError("its network is not one that qdbench writes")
        return policy


def _array(onnx: Any, tensor: Any) -> NDArray[np.float32]:
    shape = tuple(tensor.dims)
    if tensor.data_type != onnx.TensorProto.FLOAT or tensor.data_location or min(shape, default=1) < 0:
        raise ValueError("an array is no float32 array of this file")
    if len(tensor.raw_data) != 4 * math.prod(shape):
        raise ValueError("an array is not of the size that its header says")
    return np.frombuffer(tensor.raw_data, "<f4").reshape(shape)


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise InvalidInput("this needs onnx: pip install 'qdbench[onnx]'") from None
    return onnx
