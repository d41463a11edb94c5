"""Archives to pyribs, pandas and Parquet, and back: nothing is lost, nothing moves to another cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from qdbench import Archive, InvalidInput, StoredArchive, StoredRun
from running import finished

ribs_archives = pytest.importorskip("ribs.archives")
pd = pytest.importorskip("pandas")

KINDS = {"grid": "map_elites", "cvt": "cvt_map_elites", "unstructured": "map_elites_unstructured"}


@pytest.fixture(scope="module", params=[*KINDS, "samples"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """A run for every geometry, and one whose elites were evaluated several times."""
    out = tmp_path_factory.mktemp("runs")
    if request.param == "samples":
        return qdbench.run("arm_noisy_both", "adaptive_sampling", evaluations=2000, out=out)
    return qdbench.run("arm", KINDS[request.param], evaluations=1000, out=out)


def assert_same(found: Archive, stored: StoredArchive) -> None:
    order = {cell: row for row, cell in enumerate(found.cells.tolist())}
    rows = [order[cell] for cell in stored.cells.tolist()]
    assert len(found) == len(stored) > 20
    elites = found.elites[np.array(rows)]
    for name in ("solutions", "fitness", "descriptors", "evaluations", "seeds"):
        assert np.array_equal(getattr(elites, name), getattr(stored.elites, name)), name
    wanted = stored.geometry.arrays()
    for name, array in found.geometry.arrays().items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-14)


def test_to_pyribs_and_back(run: StoredRun) -> None:
    stored = run.archive
    archive = stored.to_ribs()
    kinds = {"grid": "GridArchive", "cvt": "CVTArchive", "unstructured": "ProximityArchive"}
    kind = getattr(ribs_archives, kinds[stored.geometry.kind])
    assert isinstance(archive, kind)
    data = archive.data()
    assert len(archive) == len(stored)
    assert archive.stats.obj_max == stored.fitness.max()
    assert archive.dtypes["solution"] == np.float32
    by_number = {number: row for row, number in enumerate(stored.evaluations[:, 0].tolist())}
    rows = [by_number[number] for number in data["evaluation"].tolist()]
    assert sorted(rows) == list(range(len(stored)))
    for name, column in (("objective", stored.fitness), ("measures", stored.descriptors)):
        assert np.array_equal(data[name], column[rows])
    assert np.array_equal(data["solution"], stored.elites.solutions[rows])
    assert np.array_equal(data["seed"], stored.seeds[rows, 0])
    if stored.geometry.kind == "unstructured":
        with pytest.raises(InvalidInput, match="give a GridArchive or a CVTArchive"):
            qdbench.from_ribs(archive)
    else:
        assert np.array_equal(data["index"], stored.cells[rows])
        assert_same(qdbench.from_ribs(archive), stored)


def test_a_descriptor_on_a_border_stays_in_its_cell(tmp_path: Path) -> None:
    """pyribs' own grid would move it by its epsilon: shares of steps lie on borders all the time."""
    task = qdbench.make("walker_uni", episode_length=30)  # 30 cells: every descriptor is a border
    stored = qdbench.run(task, evaluations=256, out=tmp_path).archive
    data = stored.to_ribs().data()
    by_number = dict(zip(stored.evaluations[:, 0].tolist(), stored.cells.tolist(), strict=True))
    assert [by_number[number] for number in data["evaluation"].tolist()] == data["index"].tolist()
    assert len(data["index"]) == len(stored)


def test_pyribs_goes_on_from_there(run: StoredRun) -> None:
    """Its schedulers take the archive, and ours take them."""
    from ribs.emitters import GaussianEmitter
    from ribs.schedulers import Scheduler

    archive = run.archive.to_ribs()
    if run.archive.evaluations.shape[1] > 1:
        return  # an algorithm tells one evaluation of each solution
    emitter = GaussianEmitter(archive, sigma=0.1, x0=np.zeros(8), batch_size=16, seed=1)
    scheduler, task, before = Scheduler(archive, [emitter]), run.task, len(archive)
    for i in range(3):
        solutions = scheduler.ask().astype(np.float32)
        told = task.evaluate(solutions, range(16))
        numbers = np.arange(16) + 1000 * i
        scheduler.tell(told.fitness, told.descriptors, evaluation=numbers, seed=numbers.astype(np.uint64))
    assert len(archive) >= before


def test_archives_that_users_made_in_pyribs() -> None:
    archive = ribs_archives.GridArchive(solution_dim=3, dims=(4, 5), ranges=[(-1, 1), (0, 2)])
    empty = qdbench.from_ribs(archive)
    assert len(empty) == 0
    assert empty.geometry == qdbench.Grid(((-1, 1), (0, 2)), (4, 5))
    archive.add(np.eye(3), np.arange(3.0), [[-0.9, 0.1], [0.1, 1.1], [0.9, 1.9]])
    found = qdbench.from_ribs(archive)
    assert found.elites.fitness.tolist() == [0, 1, 2]
    assert found.elites.solutions.dtype == np.float32
    assert found.elites.samples.tolist() == [0, 0, 0]  # of nobody knows which evaluation
    for wrong in (3, None, found):
        with pytest.raises(InvalidInput, match="give a GridArchive or a CVTArchive"):
            qdbench.from_ribs(wrong)


def test_to_pandas_and_back(run: StoredRun, tmp_path: Path) -> None:
    stored = run.archive
    frame = stored.to_pandas()
    assert len(frame) == len(stored)
    assert "solution" not in frame
    assert frame["fitness"].tolist() == stored.fitness.tolist()
    assert frame["seed"].tolist() == stored.seeds[:, 0].tolist()
    assert frame["samples"].tolist() == stored.elites.samples.tolist()
    assert np.array_equal(frame[["descriptor_0", "descriptor_1"]], stored.descriptors)
    if stored.geometry.kind == "grid":
        places = frame["cell_0"] * run.grid.shape[1] + frame["cell_1"]
        assert places.tolist() == frame["cell"].tolist() == stored.cells.tolist()
    frame = stored.to_pandas(solutions=True)
    assert_same(qdbench.from_pandas(frame), stored)
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "archive.parquet")
    assert_same(qdbench.from_pandas(pd.read_parquet(tmp_path / "archive.parquet")), stored)


def test_frames_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    stored = qdbench.load(finished(tmp_path)).archive
    frame = stored.to_pandas(solutions=True)
    wrong: list[tuple[Any, str]] = [
        (3, "give a pandas DataFrame"),
        (
            stored.to_pandas(),
            r"no column 'evaluations'; give one that run\.archive\.to_pandas\(solutions=True\)",
        ),
        (frame.assign(fitness="x"), "holds no archive"),
        (frame.assign(solution=3.0), "no column of arrays"),
        (frame.assign(seeds=[[None]] * len(frame)), "no column of arrays"),
    ]
    for value, sentence in wrong:
        with pytest.raises(InvalidInput, match=sentence):
            qdbench.from_pandas(value)
    cells, box = frame.attrs["qdbench"], {"descriptor_bounds": [[1, 0]] * 2}
    for forged in ({"shape": [3]}, {"shape": [2**40] * 2}, {"kind": "x"}, box, {"shape": None}, None):
        copy = frame.copy()
        copy.attrs = {} if forged is None else {"qdbench": cells | forged}
        with pytest.raises(InvalidInput, match="holds no archive"):
            qdbench.from_pandas(copy)
    with pytest.raises(InvalidInput, match="solutions is 3; give True or False"):
        stored.to_pandas(solutions=3)  # type: ignore[arg-type]
