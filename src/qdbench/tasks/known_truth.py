"""Tasks whose truth is known: expected fitness and descriptor of every solution are exact.

    qdbench run arm_noisy_descriptor_3 --algorithm extract_me --evaluations 100000

Two functions, a planar arm and the sphere, each without noise and with several noises. Noise is given in
shares of the fitness bounds and of the descriptor's box. Nothing is clipped. A mean over infinitely many
evaluations is known in closed form, for the noisy joint's fitness by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, pi

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import Bounds
from qdbench.seeds import Seeds, normal_of, uniform_of
from qdbench.tasks import sphere
from qdbench.tasks.function_task import FunctionTask

Values = NDArray[np.float64]
Results = tuple[Values, Values]

JOINTS = 8
UNIT_SQUARE: Bounds = ((0.0, 1.0), (0.0, 1.0))
ARM_FITNESS = (-pi, 0.0)
"""The standard deviation of angles within ±π is between 0 and π."""
DISC = pi / 4
"""The share of the unit square that the arm reaches: a disc that touches its sides."""
JOINT_NOISE = 0.05
"""In radians, on the first joint."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)


@dataclass(frozen=True)
class Noise:
    """What is added to an evaluation."""

    fitness: float = 0.0
    """Standard deviation of Gaussian noise, as a share of the fitness bounds."""
    descriptor: float = 0.0
    """Standard deviation of Gaussian noise on every dimension, as a share of the descriptor's box."""
    outliers: float = 0.0
    """The probability that the descriptor is uniform in the box instead."""
    fitter_is_noisier: float = 0.0
    """As `descriptor`, times the normalised fitness: 0 for the worst, the whole for the best."""


@dataclass(frozen=True)
class Noisy:
    """A function with noise. Called with solutions and seeds; `truth` gives the means over all seeds."""

    function: Callable[[NDArray[np.float32]], Results]
    fitness_bounds: tuple[float, float]
    descriptor_bounds: Bounds
    noise: Noise

    def __call__(self, solutions: NDArray[np.float32], seeds: Seeds) -> Results:
        """Return fitness (n,) and descriptors (n, dimensions) of one evaluation each."""
        (fitness, descriptors), noise = self.function(solutions), self.noise
        dimensions, (low, high) = descriptors.shape[1], self.fitness_bounds
        corner, box = np.array(self.descriptor_bounds).T[0], np.diff(self.descriptor_bounds, axis=1).T
        share = (fitness - low) / (high - low)
        scatter = noise.descriptor + noise.fitter_is_noisier * share[:, None]
        shifts = normal_of(seeds, 1 + dimensions)
        descriptors = descriptors + scatter * box * shifts[:, 1:]
        if noise.outliers:
            drawn = uniform_of(~seeds, 1 + dimensions)
            descriptors = np.where(drawn[:, :1] < noise.outliers, corner + drawn[:, 1:] * box, descriptors)
        return fitness + noise.fitness * (high - low) * shifts[:, 0], descriptors

    def truth(self, solutions: NDArray[np.float32]) -> Results:
        """Return the means: all noise has mean 0, except outliers, which pull towards the middle."""
        fitness, descriptors = self.function(solutions)
        middle = np.mean(self.descriptor_bounds, axis=1)
        return fitness, (1 - self.noise.outliers) * descriptors + self.noise.outliers * middle

    def median(self, solutions: NDArray[np.float32]) -> Results:
        """Return the medians, per dimension: with outliers, too, those of the function without noise."""
        return self.function(solutions)


# The arm


def arm(solutions: NDArray[np.float32]) -> Results:
    """Return fitness (n,) and descriptors (n, 2) of a planar arm with 8 joints and equal links.

    Parameters from 0 to 1 are relative angles from -π to π. The fitness is minus their standard deviation.
    The descriptor is the end of the arm, which has length 1/2 and begins in the middle of the unit square.
    """
    angles = _angles(solutions)
    return -angles.std(axis=1), _end(angles)


def _angles(solutions: NDArray[np.float32]) -> Values:
    angles: Values = (solutions.astype(np.float64) - 0.5) * 2 * pi
    return angles


def _end(angles: Values) -> Values:
    directions = np.cumsum(angles, axis=1)
    return 0.5 + 0.5 * np.stack([np.cos(directions).mean(axis=1), np.sin(directions).mean(axis=1)], axis=1)


def arm_noisy_joint(solutions: NDArray[np.float32], seeds: Seeds) -> Results:
    """Return one evaluation of the arm with Gaussian noise on the first joint's angle."""
    angles = _angles(solutions)
    angles[:, 0] += JOINT_NOISE * normal_of(seeds, 1)[:, 0]
    return -angles.std(axis=1), _end(angles)


def arm_noisy_joint_truth(solutions: NDArray[np.float32]) -> Results:
    """Return its means. The arm turns as a whole, so that E cos(a + noise) = cos(a) exp(-σ²/2).

    The variance of the angles is a quadratic function of the noise x, v ((x - m)² + b²). The substitution
    x - m = b sinh(t) makes the integral of its root smooth; Gauss-Legendre quadrature does the rest.
    """
    angles, sigma, n = _angles(solutions), JOINT_NOISE, JOINTS
    v = (n - 1) / n**2
    m = -(angles[:, 0] - angles.mean(axis=1)) / n / v
    b = np.sqrt(np.maximum(angles.var(axis=1) / v - m**2, 1e-24))
    means = np.zeros(len(angles))
    for sign in (-1, 1):
        # up to 9 standard deviations of the noise, seen from m
        begin = np.maximum(0.0, -sign * m - 9 * sigma)
        end = np.maximum(0.0, -sign * m + 9 * sigma)
        left, right = np.arcsinh(begin / b), np.arcsinh(end / b)
        t = left[:, None] + (right - left)[:, None] * (_NODES + 1) / 2
        x = m[:, None] + sign * b[:, None] * np.sinh(t)
        density = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * np.sqrt(2 * pi))
        root = b[:, None] * np.cosh(t)
        means += (root * root * density) @ _WEIGHTS * (right - left) / 2
    return -np.sqrt(v) * means, 0.5 + exp(-(sigma**2) / 2) * (_end(angles) - 0.5)


# The registry

_NOISES = {
    "noisy_fitness": Noise(fitness=0.1),
    "noisy_descriptor_1": Noise(descriptor=0.01),
    "noisy_descriptor_3": Noise(descriptor=0.03),
    "noisy_both": Noise(fitness=0.1, descriptor=0.01),
    "outliers": Noise(outliers=0.15),
    "fitter_is_noisier": Noise(fitter_is_noisier=0.03),
}


def _arm(
    name: str, function: Callable[..., Results], truth: Callable[..., Results], reach: float
) -> FunctionTask:
    return FunctionTask(
        name=name,
        version=1,
        function=function,
        truth=truth,
        noisy=truth is not arm,
        n_parameters=JOINTS,
        descriptor_bounds=UNIT_SQUARE,
        cells=(100, 100),
        fitness_bounds=ARM_FITNESS,
        initial_bounds=(0.0, 1.0),
        solution_bounds=(0.0, 1.0),
        descriptor_names=("x of the end", "y of the end"),
        reachable=reach,
    )


def _sphere(name: str, noise: Noise) -> FunctionTask:
    own = sphere.task
    function = Noisy(sphere.sphere, own.fitness_bounds, own.descriptor_bounds, noise)
    return FunctionTask(
        name=name,
        version=1,
        function=function,
        truth=function.truth,
        noisy=True,
        n_parameters=own.n_parameters,
        descriptor_bounds=own.descriptor_bounds,
        cells=own.cells,
        fitness_bounds=own.fitness_bounds,
        initial_bounds=own.initial_bounds,
        reachable=(1 - noise.outliers) ** 2,
    )


def _all() -> list[FunctionTask]:
    tasks = [_arm("arm", arm, arm, DISC)]
    for name, noise in _NOISES.items():
        function = Noisy(arm, ARM_FITNESS, UNIT_SQUARE, noise)
        tasks.append(_arm(f"arm_{name}", function, function.truth, DISC * (1 - noise.outliers) ** 2))
    joint = DISC * exp(-(JOINT_NOISE**2))
    tasks.append(_arm("arm_noisy_joint", arm_noisy_joint, arm_noisy_joint_truth, joint))
    return [*tasks, sphere.task, *(_sphere(f"sphere_{name}", noise) for name, noise in _NOISES.items())]


KNOWN_TRUTH = {task.name: task for task in _all()}
"""The tasks with known truth, by name."""
