"""Policies: the small neural networks that are evolved, as flat vectors.

A solution is one float32 vector. For each layer it holds the weights, an (inputs, outputs) matrix row by
row, and then the biases. Hidden layers are ReLU, the output is tanh.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import checked_count, checked_generator, checked_list, require_room
from qdbench.errors import InvalidInput

Parameters = NDArray[np.float32]


@dataclass(frozen=True)
class Policy:
    """The shape of a multi-layer perceptron: inputs, hidden layers, outputs."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        sizes = checked_list("sizes", self.sizes, "give inputs, hidden layers and outputs, like (8, 64, 2)")
        if len(sizes) < 2:
            raise InvalidInput(f"sizes are {tuple(sizes)}; a policy has inputs and outputs at least")
        object.__setattr__(self, "sizes", tuple(checked_count("sizes", size) for size in sizes))

    @property
    def n_parameters(self) -> int:
        """The length of a solution."""
        return sum((n_in + 1) * n_out for n_in, n_out in pairwise(self.sizes))

    def act(self, parameters: Parameters, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the actions of each policy for its own observation.

        `parameters` is (batch, n_parameters), `observations` is (batch, inputs), both with contiguous rows.
        A stack of one-row products gives exactly the same numbers in any batch. One product shared by
        several rows, `einsum` or transposed weights do not. So this is the only way to do it.
        """
        self._require_batch(parameters, observations)
        with np.errstate(over="ignore", invalid="ignore"):  # huge weights give NaN, which MuJoCo reports
            return self._forward(parameters, observations[:, None, :])[:, 0, :]

    def _require_batch(self, parameters: Parameters, observations: NDArray[np.float32]) -> None:
        for name, array, width in (
            ("parameters", parameters, self.n_parameters),
            ("observations", observations, self.sizes[0]),
        ):
            if not isinstance(array, np.ndarray) or array.dtype != np.float32 or array.ndim != 2:
                raise InvalidInput(f"{name} must be a float32 array of shape (batch, {width})")
            if array.shape != (len(parameters), width):
                raise InvalidInput(f"{name} have the shape {array.shape}; give (batch, {width})")

    def _forward(self, parameters: Parameters, x: NDArray[np.float32]) -> NDArray[np.float32]:
        start, last = 0, len(self.sizes) - 2
        for layer, (n_in, n_out) in enumerate(pairwise(self.sizes)):
            stop = start + n_in * n_out
            weights = parameters[:, start:stop].reshape(-1, n_in, n_out)
            x = x @ weights
            x += parameters[:, None, stop : stop + n_out]
            if layer == last:
                np.tanh(x, out=x)
            else:
                np.maximum(x, np.float32(0), out=x)
            start = stop + n_out
        return x

    def lecun_uniform(self, n: int, generator: np.random.Generator) -> Parameters:
        """Return `n` random policies: weights uniform in ±sqrt(3 / inputs of the layer), biases 0."""
        n, generator = checked_count("n", n), checked_generator(generator)
        require_room(n, self.n_parameters)
        solutions = np.empty((n, self.n_parameters), np.float32)
        generator.random(dtype=np.float32, out=solutions)  # in place: a batch may fill the memory
        start = 0
        for n_in, n_out in pairwise(self.sizes):
            limit = np.float32((3.0 / n_in) ** 0.5)
            stop = start + n_in * n_out
            weights = solutions[:, start:stop]
            weights *= 2 * limit
            weights -= limit
            solutions[:, stop : stop + n_out] = 0
            start = stop + n_out
        return solutions
