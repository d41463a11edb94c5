"""What an algorithm hands over cannot raise its score: neither a finer archive nor a larger collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from qdbench import Archive, Evaluated, Grid, Problem
from qdbench.algorithms.map_elites import MapElites
from qdbench.analysis.measures import PlacedRun
from qdbench.archives.geometry import Geometry, Unstructured, cell_width, is_finer

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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fair")
    task = qdbench.make("arm_noisy_descriptor_3", cells=(12, 12))
    for algorithm in ("map_elites", Hoarder, Finer):
        qdbench.run(task, algorithm, out=out, **SIZES)
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


def test_a_finer_archive_is_measured_on_the_grid(runs: Path) -> None:
    own, grid = qdbench.measure(runs), qdbench.measure(runs, on="grid")
    for name in ("Finer", "map_elites_unstructured-tight"):
        ours, theirs = values(own)[name], values(grid)[name]
        assert {n: v for n, v in ours.items() if v == v} == {n: v for n, v in theirs.items() if v == v}
        assert ours["coverage"] <= 12 * 12
    (task,) = own.tasks
    curves = {variant.label: variant.runs[0].curves for variant in task.variants}
    assert all(one.values["coverage"].max() <= 12 * 12 for one in curves.values())
    (about,) = (note for note in qdbench.compare(own).tasks[0].notes if "finer" in note)
    assert about.endswith("finer: map_elites_unstructured-tight, test_fair_measures.Finer")
    assert not any("finer" in note for note in qdbench.compare(grid).tasks[0].notes)


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
    ("own", "finer"),
    [
        (Grid(((0, 1), (0, 1)), (10, 10)), False),
        (Grid(((0, 1), (0, 1)), (5, 20)), False),
        (Grid(((0, 1), (0, 1)), (11, 10)), True),
        (Grid(((0, 0.5), (0, 1)), (10, 10)), True),
        (Unstructured(((0, 1), (0, 1)), cell_width((10, 10))), False),
        (Unstructured(((0, 1), (0, 1)), 0.05), True),
    ],
)
def test_which_archive_is_finer(own: Geometry, finer: bool) -> None:
    assert is_finer(own, Grid(((0, 1), (0, 1)), (10, 10))) is finer
