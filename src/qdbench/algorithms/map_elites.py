"""MAP-Elites: vary elites, keep the best of every cell. One algorithm, three containers."""

from __future__ import annotations

from math import inf, prod

from qdbench.algorithms.contract import Problem, SavedState
from qdbench.algorithms.variation import iso_line
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cvt, Grid, Unstructured, cell_width, centroids
from qdbench.archives.unstructured import UnstructuredArchive
from qdbench.checks import is_number, shown
from qdbench.errors import InvalidInput
from qdbench.policy import Parameters
from qdbench.seeds import bulk_stream


class MapElites:
    """Vary random elites of a grid, keep the fittest of every cell.

    Source: Mouret and Clune 2015; variation: Vassiliades and Mouret 2018 (iso+line).
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        initial: int = 256,
        iso_sigma: float = 0.005,
        line_sigma: float = 0.05,
    ) -> None:
        at_least("batch_size", batch_size, 1)
        at_least("initial", initial, 1)
        at_least("iso_sigma", iso_sigma, 0)
        at_least("line_sigma", line_sigma, 0)
        self._problem, self._seed = problem, seed
        self._batch_size, self._initial = batch_size, initial
        self._sigmas = iso_sigma, line_sigma
        self._iteration = self._told = 0
        self.archive = self._empty_archive(problem)

    def _empty_archive(self, problem: Problem) -> Archive:
        return Archive(Grid(problem.descriptor_bounds, problem.cells), problem.n_parameters)

    def ask(self) -> Parameters:
        """Return fresh solutions until `initial` were evaluated, then offspring of the elites."""
        generator = bulk_stream(self._seed, "ask", self._iteration)
        if self._told < self._initial or not len(self.archive):
            return self._problem.random_solutions(self._batch_size, generator)
        return iso_line(self.archive.elites.solutions, self._batch_size, *self._sigmas, generator)

    def tell(self, evaluated: Evaluated) -> None:
        """Insert the evaluated solutions into the archive."""
        self.archive.insert(evaluated)
        self._told += len(evaluated)
        self._iteration += 1

    def collection(self) -> Evaluated:
        """Return the elites."""
        return self.archive.elites

    def state(self) -> SavedState:
        """Return the counters and the archive: every iteration has a random stream of its own."""
        return {"iteration": self._iteration, "told": self._told, "archive": self.archive.state()}

    def restore(self, state: SavedState) -> None:
        """Continue from `state`."""
        self._iteration, self._told = state["iteration"], state["told"]
        self.archive.restore(state["archive"])


class CvtMapElites(MapElites):
    """MAP-Elites on the cells of a centroidal Voronoi tessellation, as many as the task's grid has.

    Source: Vassiliades, Chatzilygeroudis and Mouret 2018.
    """

    def _empty_archive(self, problem: Problem) -> Archive:
        points = centroids(prod(problem.cells), len(problem.cells))
        return Archive(Cvt(problem.descriptor_bounds, points), problem.n_parameters)


class MapElitesUnstructured(MapElites):
    """MAP-Elites on elites that keep their distance; `threshold` is in shares of the descriptor's box.

    Source: Cully and Demiris 2018. The default threshold, 0, means the width of a cell of the task's grid.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        initial: int = 256,
        iso_sigma: float = 0.005,
        line_sigma: float = 0.05,
        threshold: float = 0.0,
    ) -> None:
        at_least("threshold", threshold, 0)
        self._threshold = threshold
        super().__init__(
            problem, seed, batch_size=batch_size, initial=initial, iso_sigma=iso_sigma, line_sigma=line_sigma
        )

    def _empty_archive(self, problem: Problem) -> Archive:
        geometry = Unstructured(problem.descriptor_bounds, self._threshold or cell_width(problem.cells))
        return UnstructuredArchive(geometry, problem.n_parameters)


def at_least(name: str, value: float, low: float) -> None:
    """Say so when an option is too small."""
    if not is_number(value) or not low <= value < inf:
        raise InvalidInput(f"{name} is {shown(value)}; give {low} or more")
