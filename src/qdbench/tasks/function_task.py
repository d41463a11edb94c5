"""A task that a Python function computes: for trying algorithms, and for domains without a robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from qdbench.errors import BrokenTask
from qdbench.policy import Parameters
from qdbench.tasks.contract import (
    Bounds,
    Evaluation,
    Progress,
    checked_count,
    checked_geometry,
    checked_interval,
    checked_seeds,
    checked_solutions,
    checked_workers,
    fingerprint,
)


@dataclass(frozen=True, kw_only=True)
class FunctionTask:
    """Any function from solutions (n, parameters) to fitness (n,) and descriptors (n, dimensions).

    With `noisy=True` the function is called as `function(solutions, seeds)` and should draw its
    randomness from the seeds alone. A row with NaN or infinity counts as invalid.
    """

    name: str
    function: Callable[..., tuple[ArrayLike, ArrayLike]] = field(repr=False)
    n_parameters: int
    descriptor_bounds: Bounds
    cells: tuple[int, ...]
    fitness_bounds: tuple[float, float]
    version: int = 1
    """Raise it when the function changes: the function itself is not part of the fingerprint."""
    initial_bounds: tuple[float, float] = (-1.0, 1.0)
    """Fresh solutions are uniform within these."""
    noisy: bool = False

    def __post_init__(self) -> None:
        bounds, cells = checked_geometry(self.descriptor_bounds, self.cells)
        plain: dict[str, object] = {  # one spelling of every value: equal tasks have equal fingerprints
            "n_parameters": checked_count("n_parameters", self.n_parameters),
            "version": checked_count("version", self.version),
            "descriptor_bounds": bounds,
            "cells": cells,
            "fitness_bounds": checked_interval("fitness_bounds", self.fitness_bounds),
            "initial_bounds": checked_interval("initial_bounds", self.initial_bounds),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything but the function itself."""
        return fingerprint({f.name: getattr(self, f.name) for f in fields(self) if f.name != "function"})

    def random_solutions(self, n: int, generator: np.random.Generator) -> Parameters:
        """Return `n` solutions, uniform within `initial_bounds`."""
        low, high = self.initial_bounds
        return generator.uniform(low, high, (checked_count("n", n), self.n_parameters)).astype(np.float32)

    def evaluate(
        self,
        solutions: Parameters,
        seeds: ArrayLike,
        *,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Call the function once on the whole batch, in this thread (`workers` is only checked)."""
        solutions = checked_solutions(self.name, solutions, self.n_parameters)
        n, dimensions = len(solutions), len(self.cells)
        checked_workers(workers)
        checked = checked_seeds(seeds, n)
        solutions = solutions.view()
        solutions.flags.writeable = False  # a function that scribbles would change what is stored
        returned = self.function(solutions, checked) if self.noisy else self.function(solutions)
        try:
            fitness, descriptors = (np.array(values, np.float64) for values in returned)
        except (TypeError, ValueError):
            raise BrokenTask(
                f"{self.name}: the function must return (fitness, descriptors) as arrays"
            ) from None
        if fitness.shape != (n,) or descriptors.shape != (n, dimensions):
            raise BrokenTask(
                f"{self.name}: the function returned shapes {fitness.shape} and {descriptors.shape} "
                f"for {n} solutions; they must be ({n},) and ({n}, {dimensions})"
            )
        valid = np.isfinite(fitness) & np.isfinite(descriptors).all(axis=1)
        fitness[~valid] = np.nan
        descriptors[~valid] = np.nan
        if progress is not None:
            progress(n, n)
        return Evaluation(fitness, descriptors, steps=np.ones(n, np.int64), valid=valid)
