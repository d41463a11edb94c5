"""What an algorithm is given and what it offers; it never sees a task or physics.

algorithm = MapElites(problem, seed, batch_size=256)
solutions = algorithm.ask()           # (n, parameters) float32
algorithm.tell(evaluated)             # the same solutions, evaluated once each, in the same order
algorithm.collection()                # what it would hand to a user
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.checks import checked_count, checked_function, checked_geometry, checked_interval
from qdbench.policy import Parameters

SavedState = Mapping[str, Any]
"""What a checkpoint keeps: by name, NumPy arrays (no objects), what JSON can hold, or a SavedState."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """All an algorithm knows about a task: sizes, bounds, and how fresh solutions are drawn."""

    n_parameters: int
    descriptor_bounds: tuple[tuple[float, float], ...]
    cells: tuple[int, ...]
    """The shape of the task's grid."""
    fitness_bounds: tuple[float, float]
    random_solutions: Callable[[int, np.random.Generator], Parameters]
    """`random_solutions(n, generator)` returns (n, parameters), an algorithm's usual start."""

    def __post_init__(self) -> None:
        bounds, cells = checked_geometry(self.descriptor_bounds, self.cells)
        plain: dict[str, object] = {
            "n_parameters": checked_count("n_parameters", self.n_parameters),
            "descriptor_bounds": bounds,
            "cells": cells,
            "fitness_bounds": checked_interval("fitness_bounds", self.fitness_bounds),
            "random_solutions": checked_function("random_solutions", self.random_solutions),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)


@runtime_checkable
class Algorithm(Protocol):
    """What the loop relies on. The constructor is `Class(problem, seed, *, option=default, …)`.

    An evaluation is one episode: to sample a solution k times, ask for it k times. Seeds and numbers
    of the evaluations are given by the loop and come with `tell`. All randomness comes from `seed`: asked and
    told the same in the same order, an algorithm must ask for the same solutions again. That is how a run
    resumes, unless the algorithm `SavesState`.

    Two attributes are optional. `packages` names the libraries whose versions a run should record.
    `compiles = True` says that the first use compiles code: a run lets a tiny copy do so before its clock
    starts.
    """

    def ask(self) -> Parameters:
        """Return the next solutions; asked again before `tell`, the same ones."""

    def tell(self, evaluated: Evaluated) -> None:
        """Learn what the asked solutions did. Invalid ones have NaN. The arrays are the caller's: copy."""

    def collection(self) -> Evaluated:
        """Return the solutions to hand to a user; the arrays must stay valid only until the next `tell`."""


@runtime_checkable
class SavesState(Protocol):
    """An algorithm that can save itself, so that a long run resumes at once.

    Without these methods a run resumes by asking and telling the algorithm again what it was told. Only an
    algorithm that learns from more than `tell` needs them.
    """

    def state(self) -> SavedState:
        """Return all that `restore` needs; the arrays must stay valid only until the next `tell`."""

    def restore(self, state: SavedState) -> None:
        """Become, on a fresh instance with the same arguments, the algorithm `state` was taken from.

        If solutions had been asked for and not told, the next `ask` returns them again.
        """


@runtime_checkable
class BoundsMemory(Protocol):
    """An algorithm whose memory grows with the grid: what cannot fit is refused before a run begins."""

    def require_memory(self, n_cells: int) -> None:
        """Raise `InvalidInput` if a grid with so many cells would need too much memory.

        It is called on an instance that was built with the run's options on a tiny grid.
        """


@runtime_checkable
class HasArchive(Protocol):
    """An algorithm with its own archive, on which it is also measured."""

    @property
    def archive(self) -> Archive:
        """The archive."""
