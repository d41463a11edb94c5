"""A task from a Python function: to try algorithms, and for domains without a robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.checks import (
    Bounds,
    checked_count,
    checked_flag,
    checked_function,
    checked_generator,
    checked_geometry,
    checked_interval,
    checked_name,
    checked_names,
    checked_number,
    checked_seeds,
    checked_solutions,
    checked_workers,
    require_room,
    usable,
)
from qdbench.errors import BrokenTask, InvalidInput
from qdbench.policy import Parameters
from qdbench.sources import source_digest, subclass_digests
from qdbench.tasks.contract import Evaluations, Progress, fingerprint


@dataclass(frozen=True, kw_only=True)
class FunctionTask:
    """A task from a function: solutions (n, parameters) → fitness (n,) and descriptors (n, dimensions).

    With `noisy=True` the function is called as `function(solutions, seeds)`. It must take its randomness from
    the seeds alone. A row with NaN, or with a number beyond ±1e100, is invalid.

    Results are comparable as long as the file that defines the function does not change. To decide this
    yourself, give a `version`.
    """

    name: str
    function: Callable[..., tuple[ArrayLike, ArrayLike]] = field(repr=False)
    n_parameters: int
    descriptor_bounds: Bounds
    cells: tuple[int, ...]
    fitness_bounds: tuple[float, float]
    score_interval: tuple[float, float] | None = None
    """The fitness interval of the QD score; None: `fitness_bounds`."""
    version: int = 0
    """1 or more: it stands for the function in the fingerprint; raise it with every change.

    0: a hash of the file that defines the function stands for it."""
    initial_bounds: tuple[float, float] = (-1.0, 1.0)
    """Random solutions are uniform within these bounds."""
    noisy: bool = False
    solution_bounds: tuple[float, float] | None = None
    """If given, the function gets parameters clipped to these. Archives hold what the algorithm proposed."""
    descriptor_names: tuple[str, ...] = ()
    """A label for each dimension; empty: they are numbered."""
    truth: Callable[..., tuple[ArrayLike, ArrayLike]] | None = field(default=None, repr=False)
    """If it is known: solutions → the exact means of fitness and descriptors over all seeds."""
    reachable: float | None = None
    """The share of the descriptor's box that mean descriptors can reach, if it is known."""

    def __post_init__(self) -> None:
        bounds, cells = checked_geometry(self.descriptor_bounds, self.cells)
        checked_function("function", self.function)
        plain: dict[str, object] = {  # one form of every value: equal tasks have equal fingerprints
            "name": checked_name("name", self.name),
            "n_parameters": checked_count("n_parameters", self.n_parameters),
            "version": checked_count("version", self.version, 0),
            "descriptor_bounds": bounds,
            "cells": cells,
            "fitness_bounds": checked_interval("fitness_bounds", self.fitness_bounds),
            "initial_bounds": checked_interval("initial_bounds", self.initial_bounds),
            "noisy": checked_flag("noisy", self.noisy),
            "descriptor_names": checked_names("descriptor_names", self.descriptor_names),
        }
        if self.score_interval is not None:
            plain["score_interval"] = checked_interval("score_interval", self.score_interval)
        if self.truth is not None:
            checked_function("truth", self.truth)
        if self.reachable is not None:
            plain["reachable"] = checked_number("reachable", self.reachable, 0.0)
        if self.solution_bounds is not None:
            plain["solution_bounds"] = checked_interval("solution_bounds", self.solution_bounds)
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if len(self.descriptor_names or cells) != len(cells):
            raise InvalidInput(
                f"descriptor_names are {self.descriptor_names} for {len(cells)} dimensions; give one each"
            )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the task's record, and of the function's file if the task has no version."""
        facts = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("function", "descriptor_names", "score_interval", "truth", "reachable"):
            del facts[name]
        facts["source"] = [*subclass_digests(self, FunctionTask)]
        if not self.version:
            facts["source"].append(source_digest(self.function))
        return fingerprint(facts)

    def options(self) -> dict[str, Any]:
        """Return what a user may change, with the current values."""
        return {"descriptor_bounds": self.descriptor_bounds, "cells": self.cells}

    def random_solutions(self, n: int, generator: np.random.Generator) -> Parameters:
        """Return `n` solutions, uniform within `initial_bounds`."""
        low, high = self.initial_bounds
        n, generator = checked_count("n", n), checked_generator(generator)
        require_room(n, self.n_parameters)
        return generator.uniform(low, high, (n, self.n_parameters)).astype(np.float32)

    def evaluate(
        self,
        solutions: Parameters,
        seeds: ArrayLike,
        *,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Evaluations:
        """Call the function once with the complete batch, in this thread (`workers` is only checked)."""
        solutions = checked_solutions(self.name, solutions, self.n_parameters)
        n, dimensions = len(solutions), len(self.cells)
        checked_workers(workers)
        if progress is not None:
            checked_function("progress", progress)
        checked = checked_seeds(seeds, n)
        solutions = self._seen(solutions)
        returned = self.function(solutions, checked) if self.noisy else self.function(solutions)
        try:
            fitness, descriptors = (np.array(values, np.float64) for values in returned)
        except (TypeError, ValueError, OverflowError):
            raise BrokenTask(
                f"{self.name}: the function must return (fitness, descriptors) as arrays"
            ) from None
        if fitness.shape != (n,) or descriptors.shape != (n, dimensions):
            raise BrokenTask(
                f"{self.name}: the function returned shapes {fitness.shape} and {descriptors.shape} "
                f"for {n} solutions; they must be ({n},) and ({n}, {dimensions})"
            )
        valid = usable(fitness, descriptors)
        fitness[~valid] = np.nan
        descriptors[~valid] = np.nan
        if progress is not None:
            progress(n, n)
        return Evaluations(fitness, descriptors, steps=np.ones(n, np.int64), valid=valid)

    def expected(self, solutions: Parameters) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact mean fitness (n,) and mean descriptors (n, dimensions), from `truth`."""
        if self.truth is None:
            raise InvalidInput(f"the truth of {self.name} is not known; give the task a function `truth`")
        solutions = checked_solutions(self.name, solutions, self.n_parameters)
        fitness, descriptors = self.truth(self._seen(solutions))
        return np.asarray(fitness, np.float64), np.asarray(descriptors, np.float64)

    def _seen(self, solutions: Parameters) -> Parameters:
        """Return what the function sees: clipped parameters, which it must not change."""
        bounds = self.solution_bounds
        seen = solutions.view() if bounds is None else solutions.clip(*bounds)
        seen.flags.writeable = False
        return seen
