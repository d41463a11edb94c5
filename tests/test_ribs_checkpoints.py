"""Checkpoints of pyribs' schedulers: what they may hold, and that nothing else is ever loaded."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdbench.algorithms.registry import build
from qdbench.errors import BrokenAlgorithm, DamagedFile
from small_problem import evaluate, iterate, problem

pytest.importorskip("ribs")

from ribs.emitters import GaussianEmitter
from ribs.schedulers import Scheduler

from qdbench.algorithms.ribs import CmaMae, CmaMe, RibsAlgorithm, RibsMapElites, TaskGrid


def pickled_call(module: str, name: str, *arguments: str) -> NDArray[np.uint8]:
    """A pickle that calls module.name with texts, whatever that is."""

    def text(value: str) -> bytes:
        return b"\x8c" + bytes([len(value)]) + value.encode()

    call = text(module) + text(name) + b"\x93(" + b"".join(map(text, arguments)) + b"tR."
    return np.frombuffer(b"\x80\x04" + call, np.uint8)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "getattr"),
        ("builtins", "open"),
        ("functools", "partial"),
        ("pickle", "loads"),
        ("importlib", "import_module"),
        ("collections", "namedtuple"),
        ("numpy", "load"),
        ("numpy", "memmap"),
        ("numpy", "fromfile"),
        ("numpy", "f2py"),
        ("numpy.testing._private.utils", "runstring"),
        ("numpy.testing._private.utils", "measure"),
        ("numpy.lib._npyio_impl", "DataSource"),
        ("numpy.random._pickle", "Generator"),
        ("ribs._utils", "importlib"),
        ("ribs._utils", "importlib.import_module"),
        ("ribs._utils", "xp_namespace"),
        ("ribs._utils", "ModuleType"),
        ("ribs.archives._cvt_archive", "CVTArchive"),  # not in this scheduler
        ("ribs.emitters.opt._pycma_es", "PyCMAEvolutionStrategy"),  # pycma evaluates texts among its options
        ("ribs.archives._grid_archive", "np.load"),
        ("scipy.spatial._kdtree", "np"),
        ("qdbench.algorithms.ribs", "pickle"),
        ("qdbench.algorithms.ribs", "RibsAlgorithm"),
        ("ribsome", "Thing"),
    ],
)
def test_a_pickle_that_names_anything_else_is_refused(module: str, name: str, tmp_path: Path) -> None:
    algorithm = CmaMe(problem(), 1)
    forged = {**algorithm.state(), "scheduler": pickled_call(module, name, f"touch {tmp_path}/was_here")}
    with pytest.raises(DamagedFile, match=rf"holds {module}\.{name}, which"):
        algorithm.restore(forged)
    assert not list(tmp_path.iterdir())


def test_the_forged_pickles_would_work(tmp_path: Path) -> None:
    forged = pickled_call("os", "system", f"touch {tmp_path}/was_here").tobytes()
    pickle.loads(forged)
    assert list(tmp_path.iterdir())


def test_a_pickle_cannot_make_pyribs_import_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array store says in its state with which module it computes, and pyribs imports that."""
    known, other = "array_api_compat.numpy", "imported_by_a_pickle_."
    (tmp_path / f"{other}py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    algorithm = RibsMapElites(problem(), 1)
    data = algorithm.state()["scheduler"].tobytes()
    assert data.count(known.encode()) == 1
    forged = np.frombuffer(data.replace(known.encode(), other.encode()), np.uint8)
    with pytest.raises(DamagedFile, match="computes with 'imported_by_a_pickle_"):
        algorithm.restore({**algorithm.state(), "scheduler": forged})
    assert "imported_by_a_pickle_" not in sys.modules


@given(data=st.data())
def test_a_damaged_pickle_is_refused_or_harmless(data: st.DataObject) -> None:
    algorithm = CmaMae(problem(), 1, batch_size=20)
    state = algorithm.state()
    kept = data.draw(st.integers(0, len(state["scheduler"]) - 1))
    with pytest.raises(DamagedFile, match="cannot be read"):
        algorithm.restore({**state, "scheduler": state["scheduler"][:kept]})
    assert iterate(algorithm, 1)  # still the scheduler it had


def test_a_pickle_of_something_else_is_refused() -> None:
    algorithm = CmaMe(problem(), 1)
    with pytest.raises(DamagedFile, match="holds no Scheduler, but 7"):
        algorithm.restore({**algorithm.state(), "scheduler": np.frombuffer(pickle.dumps(7), np.uint8)})


def test_a_state_of_another_pyribs_is_refused() -> None:
    algorithm = CmaMe(problem(), 1)
    with pytest.raises(DamagedFile, match=r"pip install ribs==0\.7\.1"):
        algorithm.restore({**algorithm.state(), "ribs": "0.7.1"})


class Counting(GaussianEmitter):
    """An emitter of a user's own."""

    n_told = 0

    def tell(self, *told: Any, **fields: Any) -> None:
        self.n_told += 1


def test_classes_of_a_user_must_be_trusted() -> None:
    archive = TaskGrid(problem(), 0)
    scheduler = Scheduler(archive, [Counting(archive, sigma=0.1, x0=np.zeros(6), batch_size=10)])
    with pytest.raises(BrokenAlgorithm, match=r"holds test_ribs_checkpoints\.Counting.*trusted="):
        RibsAlgorithm(scheduler)
    algorithm = RibsAlgorithm(scheduler, trusted=(Counting,))
    iterate(algorithm, 1)
    algorithm.restore(algorithm.state())
    assert algorithm._scheduler.emitters[0].n_told == 1


def test_a_scheduler_that_cannot_be_pickled_is_refused_at_once() -> None:
    archive = TaskGrid(problem(), 0)
    emitter: Any = GaussianEmitter(archive, sigma=0.1, x0=np.zeros(6))
    emitter.secret = lambda: None
    with pytest.raises(BrokenAlgorithm, match="checkpoint of this scheduler would be useless"):
        RibsAlgorithm(Scheduler(archive, [emitter]))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ribs_map_elites", {"batch_size": 20, "initial": 20}),
        ("cma_me", {"batch_size": 20}),
        ("cma_me", {"batch_size": 20, "es": "lm_ma_es"}),
        ("cma_mae", {"batch_size": 20}),
        ("cma_mae", {"batch_size": 20, "es": "lm_ma_es"}),
    ],
)
def test_large_networks_and_their_checkpoints(name: str, options: dict[str, Any]) -> None:
    """10,312 parameters, as the ant has. A checkpoint grows with the elites, not with the cells."""
    task = problem(n_parameters=10_312, cells=(40, 40))
    algorithm, restored = build(name, task, 1, options), build(name, task, 1, options)
    iterate(algorithm, 3)
    state = algorithm.state()
    restored.restore(state)
    assert 0 < sum(len(array) for array in state["large"].values()) < 40 * 40 * 10_312 * 4 / 4
    for array, again in zip(iterate(algorithm, 3), iterate(restored, 3), strict=True):
        assert array.shape == (20, 10_312)
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, again)
    collection = restored.collection()
    np.testing.assert_array_equal(collection.solutions, algorithm.collection().solutions)
    np.testing.assert_array_equal(evaluate(collection.solutions).fitness, collection.fitness)
