"""The parts of runs on a cluster that need no cluster: chunks, copies of a run's files, shipped code."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qdbench
from qdbench import InvalidInput, QdbenchError
from qdbench.analysis.collect import collect
from qdbench.analysis.comparable import times_comparable
from qdbench.experiments.cluster.chunks import CHUNK_BYTES, Chunk, Chunks
from qdbench.experiments.cluster.code import copied, own_modules
from qdbench.experiments.cluster.connection import checked_on
from qdbench.experiments.cluster.left_over import remove_left_over
from qdbench.store.copying import Inbox, Outbox, Piece, all_pieces
from qdbench.store.record import NodeRecord
from running import TASKS, finished, results, rewrite


@given(n=st.integers(1, 3000), cpus=st.lists(st.integers(1, 64), min_size=1, max_size=5), seed=st.integers(0))
def test_every_solution_is_evaluated_once_whoever_dies(n: int, cpus: list[int], seed: int) -> None:
    rng, chunks, done = random.Random(seed), Chunks(n, 4), [0] * n
    deaths = 0
    while sum(done) < n:
        own = rng.choice(cpus)
        chunk = chunks.take(own, sum(cpus), idle=True)
        assert chunk is not None
        if deaths < 20 and rng.random() < 0.3 and not (chunk.alone and len(chunk) == 1):
            deaths += 1
            chunks.give_back(chunk, began=rng.random() < 0.7)
            continue
        for i in range(chunk.start, chunk.stop):
            done[i] += 1
    assert done == [1] * n
    assert chunks.n_waiting == 0


@given(n=st.integers(1, 500), bad=st.integers(0, 499))
def test_the_solution_that_kills_its_worker_is_found_in_few_deaths(n: int, bad: int) -> None:
    bad %= n
    chunks, deaths = Chunks(n, 4), 0

    def evaluate() -> None:
        nonlocal deaths
        while (chunk := chunks.take(2, 4, idle=True)) is not None:
            if chunk.start <= bad < chunk.stop:
                deaths += 1
                chunks.give_back(chunk, began=True)

    with pytest.raises(QdbenchError, match=rf"^solution {bad} of the batch killed its worker 3 times"):
        evaluate()
    assert deaths <= 2 + 3 + 3


def test_chunks_get_smaller_and_keep_memory_bounded() -> None:
    chunks, sizes = Chunks(4096, 400_000), []
    while (chunk := chunks.take(8, 16, idle=True)) is not None:
        sizes.append(len(chunk))
    assert max(sizes) * 400_000 <= CHUNK_BYTES
    small = Chunks(4096, 4)
    sizes = []
    while (chunk := small.take(1, 4, idle=True)) is not None:
        sizes.append(len(chunk))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 512
    assert min(sizes[:-1]) == 64
    assert len(Chunks(8, 4).take(1, 4, idle=True) or ()) == 2  # a share for everybody
    suspects = Chunks(64, 4)
    whole = suspects.take(1, 1, idle=True)
    assert whole == Chunk(0, 64)
    suspects.give_back(whole, began=True)
    again = suspects.take(1, 1, idle=False)
    assert again == Chunk(0, 64, deaths=1)
    suspects.give_back(again, began=True)
    assert suspects.take(1, 1, idle=False) is None  # suspects are evaluated alone
    assert suspects.take(1, 1, idle=True) == Chunk(0, 8, alone=True)


def task() -> qdbench.FunctionTask:
    namespace: dict[str, qdbench.FunctionTask] = {}
    exec(TASKS, namespace)
    return namespace["task"]


@given(cut=st.integers(0, 10**6), piece=st.integers(50, 5000))
def test_a_copy_cut_off_anywhere_can_be_continued(
    tmp_path_factory: pytest.TempPathFactory, cut: int, piece: int
) -> None:
    """A run goes on while it is copied; the copy stops at any piece, and is continued to the same end."""
    root = tmp_path_factory.mktemp("copy")
    options: dict[str, Any] = {"evaluations": 192, "batch_size": 16, "corrections": 2, "reevaluations": 3}
    pieces: list[Piece] = []
    home = root / "home/sphere/map_elites/seed-0"
    home.mkdir(parents=True)
    outbox = Outbox(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qdbench.store.copying.PIECE_BYTES", piece)
        qdbench.run(
            task(), out=root / "home", on_iteration=lambda _: pieces.extend(outbox.round()), **options
        )
        pieces += outbox.round()
    copy = root / "copy/sphere/map_elites/seed-0"
    copy.mkdir(parents=True)
    inbox = Inbox(copy)
    for one in pieces[: cut % (len(pieces) + 1)]:
        inbox.receive(one)
    inbox.forget()
    qdbench.run(task(), out=root / "copy", **options)
    assert results(copy) == results(home)
    shutil.rmtree(root)


def test_all_files_arrive(tmp_path: Path) -> None:
    path = finished(tmp_path / "home", corrections=1, reevaluations=2)
    (tmp_path / "copy").mkdir()
    inbox = Inbox(tmp_path / "copy")
    for piece in all_pieces(path):
        inbox.receive(piece)
    names = {file.name for file in path.iterdir()} - {".lock"}
    assert {file.name for file in (tmp_path / "copy").iterdir()} == names
    for name in names:
        assert (tmp_path / "copy" / name).read_bytes() == (path / name).read_bytes()


def test_own_modules_are_copied_with_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine/__init__.py").write_text("")
    (tmp_path / "package_of_mine/inner.py").write_text("number = 3\n")
    (tmp_path / "module_of_mine.py").write_text("from package_of_mine.inner import number\n")
    script = """
import module_of_mine, numpy, qdbench
from qdbench.experiments.cluster.code import copied, own_modules
with copied(own_modules()) as folder:
    print(sorted(str(file.relative_to(folder)) for file in folder.rglob("*.py")))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == str(
        ["module_of_mine.py", "package_of_mine/__init__.py", "package_of_mine/inner.py"]
    )
    assert all("site-packages" not in place.parts for place in own_modules())
    with copied([]) as nothing:
        assert nothing is None


def test_where_to_run_is_checked() -> None:
    assert checked_on("ray") is None
    assert checked_on("ray://head:6379") == "head:6379"
    assert checked_on("ray://[::1]:6379") == "[::1]:6379"
    for wrong in ("", "Ray", "ray://", "ray://head", "ray://head:port", "spark", 3):
        with pytest.raises(InvalidInput, match="on is"):
            checked_on(wrong)  # type: ignore[arg-type]  # that is the test


def test_nothing_of_ray_is_imported_without_asking(tmp_path: Path) -> None:
    script = """
import sys, qdbench
qdbench.run("sphere", evaluations=64, batch_size=32, out="results", corrections=1, reevaluations=2)
qdbench.correct("results")
assert "ray" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (f"ours-{gone.pid}-a", "ours-1-b", "ours-x", "others-1"):
        (tmp_path / name).mkdir()
    remove_left_over("ours-", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["others-1", "ours-1-b", "ours-x"]


def test_times_are_compared_only_with_equal_nodes(tmp_path: Path) -> None:
    first, second = (finished(tmp_path, seed=seed) for seed in (0, 1))

    def say(*nodes: NodeRecord) -> str:
        for path, own in ((first, nodes[:1]), (second, nodes[1:])):
            (where,) = qdbench.load(path).record.environments
            rewrite(path / "run.json", environments=[{**vars(where), "nodes": [vars(node) for node in own]}])
        return times_comparable(collect([tmp_path]).variants)

    assert say(NodeRecord("a", 4, {}), NodeRecord("b", 4, {})) == ""
    assert "nodes 1 with 4 CPUs" in say(NodeRecord("a", 4, {}), NodeRecord("b", 8, {}))
    assert "of another kind" in say(NodeRecord("a", 4, {}), NodeRecord("b", 4, {"cpu": "another"}))
