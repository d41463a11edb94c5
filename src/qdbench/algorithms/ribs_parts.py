"""What pyribs' algorithms are made of here: the task's grid as an archive, and evolution strategies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter

from qdbench.algorithms.contract import Problem
from qdbench.algorithms.map_elites import at_least
from qdbench.algorithms.ribs import EXTRA_FIELDS, Strategy
from qdbench.archives.geometry import Grid
from qdbench.errors import InvalidInput
from qdbench.seeds import derived_seed, stream


class ExactGrid(GridArchive):
    """A grid of pyribs with exactly qdbench's cells.

    pyribs itself shifts the borders of cells by an epsilon, and a descriptor so far outside the bounds that
    its cell's number overflows counts into the opposite border.
    """

    def index_of(self, measures: Any) -> NDArray[Any]:
        """Return the number of every descriptor's cell."""
        bounds = np.stack([self.lower_bounds, self.upper_bounds], axis=1)
        return Grid(bounds, self.dims.tolist()).cells(np.asarray(measures)).astype(np.int32)


class TaskGrid(ExactGrid):
    """What pyribs' algorithms are made of here: the task's grid as an archive, and evolution strategies."""

    def __init__(self, problem: Problem, seed: int, **options: Any) -> None:
        super().__init__(
            solution_dim=problem.n_parameters,
            dims=problem.cells,
            ranges=problem.descriptor_bounds,
            solution_dtype=np.float32,  # cells × parameters, set aside at once
            extra_fields=EXTRA_FIELDS,
            seed=derived_seed(seed, "archive"),
            **options,
        )


def evolution_strategies(
    archive: TaskGrid,
    problem: Problem,
    seed: int,
    batch_size: int,
    n_emitters: int,
    sigma0: float,
    es: Strategy,
    rules: dict[str, Any],
) -> list[EvolutionStrategyEmitter]:
    """Return emitters that start from one fresh solution, with as equal shares of the batch as possible."""
    at_least("n_emitters", n_emitters, 1)
    at_least("batch_size", batch_size, 2 * n_emitters)
    if not sigma0 > 0:
        raise InvalidInput(f"sigma0 is {sigma0}; give more than 0")
    start = problem.random_solutions(1, stream(seed, "initial"))[0]
    shares = [(batch_size + i) // n_emitters for i in range(n_emitters)]
    if es == "lm_ma_es" and max(shares) > problem.n_parameters:
        raise InvalidInput(
            f"lm_ma_es cannot draw {max(shares)} solutions of {problem.n_parameters} parameters; "
            "give a smaller batch_size, more n_emitters or another es"
        )
    return [
        EvolutionStrategyEmitter(
            archive,
            x0=start,
            sigma0=sigma0,
            es=es,
            batch_size=share,
            seed=derived_seed(seed, "emitter", i),
            **rules,
        )
        for i, share in enumerate(shares)
    ]
