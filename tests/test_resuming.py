"""Resuming by telling again: what an algorithm was told brings it back, and nothing else is ever used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import ROOT, Cli
from qdbench import BrokenAlgorithm, DamagedFile, Evaluated, InvalidInput, Problem, QdbenchError, stream
from qdbench.algorithms.map_elites import MapElites
from qdbench.policy import Parameters
from qdbench.store.files import write_npz
from qdbench.store.folder import RunFolder
from qdbench.store.told_log import Told, ToldLog, checksum
from running import command, finished, folder, results, wait_for_rows
from toy_runs import make, mortal


class ThreeMethods:
    """MAP-Elites without the methods that save a state."""

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 16) -> None:
        self._inner = MapElites(problem, seed, batch_size=batch_size, initial=32)

    def ask(self) -> Parameters:
        return self._inner.ask()

    def tell(self, evaluated: Evaluated) -> None:
        self._inner.tell(evaluated)

    def collection(self) -> Evaluated:
        return self._inner.collection()


class Fickle(ThreeMethods):
    """It asks for other solutions each time it is made."""

    made = 0

    def __init__(self, problem: Problem, seed: int, *, batch_size: int = 16) -> None:
        Fickle.made += 1
        super().__init__(problem, seed + Fickle.made, batch_size=batch_size)


class Lies(MapElites):
    """Its elites are a little better than they are."""

    def collection(self) -> Evaluated:
        elites = super().collection()
        return Evaluated(**{**vars(elites), "fitness": elites.fitness + 1e-9})


class Sampled(ThreeMethods):
    """Every solution twice, kept as the mean; `sign` -1 keeps minus the mean."""

    sign = 1

    def ask(self) -> Parameters:
        return np.repeat(super().ask(), 2, axis=0)

    def tell(self, evaluated: Evaluated) -> None:
        halves = {
            f.name: getattr(evaluated, f.name).copy().reshape(len(evaluated) // 2, 2, -1)
            for f in fields(evaluated)
        }
        self._means = Evaluated(
            solutions=halves["solutions"][:, 0],
            fitness=self.sign * halves["fitness"][:, :, 0].mean(axis=1),
            descriptors=halves["descriptors"].mean(axis=1),
            evaluations=halves["evaluations"][:, :, 0],
            seeds=halves["seeds"][:, :, 0],
        )
        self._inner.tell(evaluated[::2])

    def collection(self) -> Evaluated:
        return self._means[self._means.valid] if hasattr(self, "_means") else self._inner.collection()


class Negated(Sampled):
    sign = -1


def test_three_methods_are_enough_to_resume(tmp_path: Path) -> None:
    qdbench.check_algorithm(ThreeMethods)
    first = finished(tmp_path / "a", algorithm=ThreeMethods, evaluations=160, name="x")
    assert RunFolder(first).read_checkpoint(qdbench.load(first).record.determinants).rest is None  # type: ignore[union-attr]  # it is there
    longer = finished(tmp_path / "a", algorithm=ThreeMethods, evaluations=480, name="x")
    whole = finished(tmp_path / "b", algorithm=ThreeMethods, evaluations=480, name="x")
    assert results(longer) == results(whole)
    seconds = qdbench.load(longer).metrics["seconds"]
    assert (np.diff(seconds) > 0).all()


def test_a_kill_loses_no_iteration_that_was_told(bench: Cli) -> None:
    """The log goes on after the last checkpoint: nothing of it is simulated again."""
    never = ["--checkpoint-every", "100000"]
    process = bench.start("run", "mine:task", "--evaluations", "10000000", "--batch-size", "48", *never)
    path = folder(bench, "map_elites", 0)
    wait_for_rows(process, path / "metrics.csv", 40)
    process.kill()
    process.communicate()
    told = (path / "told.log").read_bytes()
    n = qdbench.load(path).metrics["evaluations"][-1]
    done = bench("resume", "--trust", str(path), "--evaluations", str(n))
    assert done.returncode == 0, done.stderr
    kept = (path / "told.log").read_bytes()
    assert told.startswith(kept[: len(told) - 2000])  # but for a block the kill may have cut
    assert (
        bench("run", "mine:task", "--evaluations", str(n), "--batch-size", "48", "--out", "whole").returncode
        == 0
    )
    assert results(path) == results(folder(bench, "map_elites", 0, out="whole"))


def test_what_was_told_is_never_attached_to_other_solutions(tmp_path: Path) -> None:
    finished(tmp_path, algorithm=Fickle, evaluations=160)
    before = {file.name: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(QdbenchError, match="it asks for other solutions in iteration 1"):
        finished(tmp_path, algorithm=Fickle, evaluations=320)
    after = {file.name: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert after == before


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [(Lies, "an elite that differs from what evaluation"), (Negated, "not the means of its samples")],
)
def test_the_loop_notices_elites_that_were_never_told(algorithm: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(QdbenchError, match=sentence):
        finished(tmp_path, algorithm=algorithm, evaluations=160)
    with pytest.raises(BrokenAlgorithm):
        qdbench.check_algorithm(algorithm)


def test_means_of_samples_pass(tmp_path: Path) -> None:
    qdbench.check_algorithm(Sampled)
    path = finished(tmp_path, algorithm=Sampled, evaluations=160)
    assert (qdbench.load(path).archive.elites.samples == 2).all()


@pytest.mark.parametrize("algorithm", ["map_elites", "random_search"])
@pytest.mark.parametrize("lost", ["", "checkpoint.npz", "told.log"])
def test_lives_survive_an_interruption(algorithm: str, lost: str, tmp_path: Path) -> None:
    whole = make(tmp_path / "whole", mortal(), algorithm, corrections=0, evaluations=400)
    path = make(tmp_path / "run", mortal(), algorithm, corrections=0, evaluations=200)
    if lost:
        (path / lost).unlink()
    make(path, mortal(), algorithm, corrections=0, evaluations=400)
    assert results(path) == results(whole)
    runs = [qdbench.load(one) for one in (path, whole)]
    assert len({one.archive.steps.tobytes() for one in runs}) == 1
    assert runs[0].archive.steps.dtype == np.uint16
    assert len({one.metrics["alive_qd_score"].tobytes() for one in runs}) == 1
    assert 0 < runs[0].metrics["alive_coverage"][-1] < runs[0].metrics["coverage"][-1]


def test_forged_lives_are_noticed(tmp_path: Path) -> None:
    path = make(tmp_path / "run", mortal(), corrections=0, evaluations=200)
    with np.load(path / "checkpoint.npz") as file:
        arrays = {name: file[name] for name in file.files}
    write_npz(path / "checkpoint.npz", arrays | {"steps": np.full_like(arrays["steps"], 300)})
    make(path, mortal(), corrections=0, evaluations=400)  # told again
    whole = make(tmp_path / "whole", mortal(), corrections=0, evaluations=400)
    assert results(path) == results(whole)
    with np.load(path / "archive.npz") as file:
        arrays = {name: file[name] for name in file.files}
    write_npz(path / "archive.npz", arrays | {"steps": np.full_like(arrays["steps"], 300)})
    (found,) = qdbench.verify(path, task=mortal())
    assert any("differs from what the algorithm was told" in problem for problem in found.problems)


def test_another_score_interval_is_measured_again_without_simulating(tmp_path: Path) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError

    path = make(tmp_path / "run", mortal(version=1), corrections=1)
    other = mortal(version=1, score_interval=(0.0, 10.0))
    expected = make(tmp_path / "other", other, corrections=1)
    with pytest.raises(InvalidInput, match=r"different score intervals: .*8.0, 9.5.*nothing is simulated"):
        qdbench.measure([path, make(tmp_path / "third", other, seed=1)])
    before = (path / "corrected.npz").read_bytes()
    make(path, replace(other, function=refuse), corrections=1)
    assert qdbench.load(path).record.facts.score_interval == (0.0, 10.0)
    assert results(path) == results(expected)
    assert qdbench.load(path).metrics["qd_score"][-1] > 0
    assert (path / "corrected.npz").read_bytes() == before


def log_of(path: Path) -> tuple[ToldLog, list[Told]]:
    log = ToldLog(path / "told.log", qdbench.load(path).record.determinants)
    found = []
    while (told := log.next()) is not None:
        found.append(told)
    return log, found


def test_the_log_holds_what_was_told(tmp_path: Path) -> None:
    path = finished(tmp_path, evaluations=96)
    log, found = log_of(path)
    assert [told.iteration for told in found] == [1, 2, 3, 4, 5, 6]
    run = qdbench.load(path)
    assert [told.seconds for told in found] == run.metrics["seconds"].tolist()
    fitness = np.concatenate([told.fitness for told in found])
    elites = run.archive.elites
    assert np.array_equal(fitness[elites.evaluations[:, 0]], elites.fitness)
    again, places, steps = log.outcomes(elites.evaluations[:, 0])
    assert np.array_equal(again, elites.fitness)
    assert np.array_equal(places, elites.descriptors)
    assert np.array_equal(steps, run.archive.steps[:, 0])
    log.close()
    solutions = stream(0, "x").random((5, 7), np.float32)
    assert checksum(solutions) == checksum(np.asfortranarray(solutions)) != checksum(solutions[::-1])


def complains(act: Callable[[], Any], expected: Any) -> str:
    """Return what an action complains of, or nothing where it gives what is expected."""
    try:
        assert act() == expected
    except QdbenchError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("algorithm", [MapElites, ThreeMethods])
def test_a_damaged_log_is_named_or_harmless(algorithm: Any, tmp_path: Path) -> None:
    path = finished(tmp_path, algorithm=algorithm, evaluations=96)
    good = {file.name: file.read_bytes() for file in path.iterdir()}
    expected = results(finished(tmp_path, algorithm=algorithm, evaluations=192))
    rng, data = stream(0, "log"), good["told.log"]
    wrong = [b"", data[:5], data[:40], data[: len(data) // 2], b"x" + data[1:]]
    places = rng.integers(len(data), size=30).tolist()
    wrong += [data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :] for place in places]
    noticed = 0
    for changed in wrong:
        for name, content in good.items():
            (path / name).write_bytes(content)
        (path / "told.log").write_bytes(changed)
        complaint = complains(
            lambda: results(finished(tmp_path, algorithm=algorithm, evaluations=192)), expected
        )
        noticed += bool(complaint)
        assert not complaint or "told.log" in complaint
    assert noticed >= 5


def test_the_log_of_another_run_is_refused(tmp_path: Path) -> None:
    one, two = (finished(tmp_path, algorithm=ThreeMethods, seed=seed) for seed in (1, 2))
    (one / "told.log").write_bytes((two / "told.log").read_bytes())
    with pytest.raises(QdbenchError, match=r"told.log is damaged.*it is of another run \(seed 2, here 1\)"):
        finished(tmp_path, algorithm=ThreeMethods, seed=1, evaluations=192)


def test_nothing_in_the_package_can_run_what_it_reads() -> None:
    forbidden = re.compile(
        r"\b(pickle|marshal|shelve|dill|cloudpickle)\b(?!=)|\beval\(|\bexec\(|allow_pickle=True"
    )
    files = [file for file in (ROOT / "src").rglob("*.py") if file.parent.name != "cluster"]  # Ray pickles
    for file in files:
        code = re.sub(r'"""(.*?)"""|#[^\n]*', "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not forbidden.search(code), f"{file.name}: {forbidden.search(code)}"


SPY = """
import pathlib
pathlib.Path("imported").write_text("it ran")
from mine import task
from qdbench.algorithms.map_elites import MapElites as Mine
"""


def test_reading_and_resuming_import_no_module_that_a_file_names(bench: Cli) -> None:
    (bench.folder / "spy.py").write_text(SPY)
    run = ["run", "spy:task", "--algorithm", "spy:Mine", "--evaluations", "96", "--batch-size", "48"]
    assert bench(*run).returncode == 0
    flag, path = bench.folder / "imported", bench.folder / "results/sphere/spy.Mine/seed-0"
    flag.unlink()
    for reading in (["show", str(path)], ["compare", "results"], ["plot", "results"], ["report", "results"]):
        done = bench(*reading)
        assert done.returncode == 0, done.stderr
    for using in (
        ["resume", str(path), "--evaluations", "192"],
        ["correct", str(path)],
        ["rollout", str(path)],
    ):
        done = bench(*using)
        assert done.returncode == 2
        assert "would import the module 'spy', from " in done.stderr
        assert "--trust" in done.stderr
    assert not flag.exists()
    with pytest.raises(qdbench.InvalidInput, match="trust=True in Python"):
        qdbench.load(path).task  # noqa: B018
    assert bench("resume", str(path), "--evaluations", "192", "--trust").returncode == 0
    assert flag.exists()


def test_edited_code_is_noticed(bench: Cli) -> None:
    code = "from qdbench.algorithms.random_search import RandomSearch as Base\nclass Mine(Base): '''One.'''\n"
    (bench.folder / "own.py").write_text(code)
    assert bench(*command("own:Mine", n=96)).returncode == 0
    (bench.folder / "own.py").write_text(code.replace("One", "Two"))
    assert "skipped" in bench(*command("own:Mine", n=96)).stdout
    refused = bench(*command("own:Mine", n=192))
    assert refused.returncode == 2
    assert "the file that defines it has changed" in refused.stderr
    assert bench(*command("own:Mine", "--changed-code", n=192)).returncode == 0
    run = qdbench.load(folder(bench, "own.Mine"))
    assert len({where.source for where in run.record.environments}) == 2
    told = bench("compare", "results")
    assert "own.Mine: runs were made with different code of the algorithm" in told.stderr


def test_a_checkpoint_without_its_record_is_not_used(tmp_path: Path) -> None:
    path = finished(tmp_path)
    (path / "run.json").unlink()
    with pytest.raises(QdbenchError, match=r"has no run\.json beside it") as caught:
        finished(tmp_path)
    assert isinstance(caught.value.__cause__, DamagedFile)
