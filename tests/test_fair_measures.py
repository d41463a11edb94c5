"""What an algorithm hands over cannot raise its score: neither cells of its own nor a larger collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from qdbench import Archive, Evaluated, Grid, Problem
from qdbench.algorithms.map_elites import MapElites, MapElitesUnstructured
from qdbench.analysis.measures import PlacedRun
from qdbench.archives.geometry import Cvt, Geometry, Unstructured, cell_width, centroids, has_cells_of

BOX = ((0, 1), (0, 1))
SIZES: dict[str, Any] = {
    "evaluations": 768, "batch_size": 64, "initial": 64, "corrections": 2, "reevaluations": 3,
}  # fmt: skip


class Hoarder:
    """MAP-Elites that hands over all that it was told; it has no archive of its own."""

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 64, initial: int = 64) -> None:
        self._inside = MapElites(problem, seed, batch_size=batch_size, initial=initial)
        self._all: list[Evaluated] = []

    def ask(self) -> Any:
        return self._inside.ask()

    def tell(self, evaluated: Evaluated) -> None:
        self._inside.tell(evaluated)
        self._all.append(evaluated[evaluated.valid])

    def collection(self) -> Evaluated:
        names = ("solutions", "fitness", "descriptors", "evaluations", "seeds")
        if not self._all:
            return self._inside.collection()
        return Evaluated(**{n: np.concatenate([getattr(one, n) for one in self._all]) for n in names})


class Finer(MapElites):
    """MAP-Elites with sixteen times the cells."""

    def _empty_archive(self, problem: Problem) -> Archive:
        grid = Grid(problem.descriptor_bounds, tuple(4 * n for n in problem.cells))
        return Archive(grid, problem.n_parameters)


class Coarser(MapElites):
    """MAP-Elites with 3 × 3 cells, to which more re-evaluations return."""

    def _empty_archive(self, problem: Problem) -> Archive:
        return Archive(Grid(problem.descriptor_bounds, (3, 3)), problem.n_parameters)


class Crowded(MapElites):
    """MAP-Elites with as many cells as the task, nearly all of them where most solutions are."""

    def _empty_archive(self, problem: Problem) -> Archive:
        places = 0.5 + 0.3 * (centroids(144, 2) - 0.5)
        return Archive(Cvt(problem.descriptor_bounds, places), problem.n_parameters)


class Claimed(Hoarder):
    """A hoarder that shows an unstructured archive with a usual threshold."""

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 64, initial: int = 64) -> None:
        super().__init__(problem, seed, batch_size=batch_size, initial=initial)
        self.archive = MapElitesUnstructured(problem, seed).archive


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fair")
    task = qdbench.make("arm_noisy_descriptor_3", cells=(12, 12))
    for algorithm in ("map_elites", "cvt_map_elites", Hoarder, Finer, Coarser, Crowded, Claimed):
        qdbench.run(task, algorithm, out=out, **SIZES)
    qdbench.run(task, "map_elites_unstructured", out=out, **SIZES)
    qdbench.run(task, "map_elites_unstructured", name="tight", threshold=0.001, out=out, **SIZES)
    return out


def values(measured: qdbench.Measured) -> dict[str, dict[str, float]]:
    (task,) = measured.tasks
    return {variant.label.rpartition(".")[2]: variant.runs[0].values for variant in task.variants}


def test_a_larger_collection_is_worth_nothing(runs: Path) -> None:
    """Only the best of every cell is re-evaluated for the score, so no cell can be gained by correcting."""
    found = values(qdbench.measure(runs))
    for name in ("map_elites", "Hoarder"):
        assert 0 < found[name]["corrected_coverage"] <= found[name]["coverage"]
        assert found[name]["true_coverage"] <= found[name]["coverage"]


OTHERS = ["map_elites_unstructured", "map_elites_unstructured-tight"]
OTHERS += [f"test_fair_measures.{one.__name__}" for one in (Claimed, Coarser, Crowded, Finer)]


def test_an_archive_with_other_cells_is_measured_on_the_grid(runs: Path) -> None:
    own, grid = qdbench.measure(runs), qdbench.measure(runs, on="grid")
    for name in (label.rpartition(".")[2] for label in OTHERS):
        ours, theirs = values(own)[name], values(grid)[name]
        assert {n: v for n, v in ours.items() if v == v} == {n: v for n, v in theirs.items() if v == v}
        assert ours["coverage"] <= 12 * 12
    assert values(own)["cvt_map_elites"] != values(grid)["cvt_map_elites"]
    (task,) = own.tasks
    curves = {variant.label: variant.runs[0].curves for variant in task.variants}
    assert all(one.values["coverage"].max() <= 12 * 12 for one in curves.values())
    (about,) = (note for note in qdbench.compare(own).tasks[0].notes if "other cells" in note)
    assert about.endswith(f"other cells: {', '.join(OTHERS)}")
    assert not any("other cells" in note for note in qdbench.compare(grid).tasks[0].notes)


def test_corrected_archives_hold_only_what_counts(runs: Path) -> None:
    """At every correction point, computed again in plain NumPy."""
    path = next(path for path in runs.rglob("seed-0") if path.parent.name.endswith("Hoarder"))
    placed = PlacedRun(qdbench.load(path), "grid")
    made, grid = placed.run.corrections, placed.geometry
    assert made is not None
    assert len(made.points) == 2
    for point in made.points:
        best: dict[int, int] = {}
        for row, cell in enumerate(grid.cells(point.descriptors).tolist()):
            if cell not in best or point.fitness[row] > point.fitness[best[cell]]:
                best[cell] = row
        chosen = point.rows[sorted(best.values())]
        cells = grid.cells(made.descriptors[chosen].mean(axis=1))
        assert sorted(placed.corrected(point).cells.tolist()) == np.unique(cells).tolist()


@pytest.mark.parametrize(
    ("own", "same"),
    [
        (Grid(BOX, (10, 10)), True),
        (Grid(BOX, (5, 20)), False),
        (Grid(BOX, (11, 10)), False),
        (Grid(((0, 0.5), (0, 1)), (10, 10)), False),
        (Cvt(BOX, centroids(100, 2)), True),
        (Cvt(BOX, centroids(99, 2)), False),
        (Cvt(BOX, centroids(100, 2) ** 2), False),
        (Cvt(((0, 0.5), (0, 1)), centroids(100, 2)), False),
        (Unstructured(BOX, cell_width((10, 10))), False),
    ],
)
def test_which_archive_has_the_cells_of_the_task(own: Geometry, same: bool) -> None:
    assert has_cells_of(own, Grid(BOX, (10, 10))) is same
