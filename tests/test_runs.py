"""Runs from the command line and from Python: what they do, refuse and leave behind."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import qdbench
from conftest import ROOT, Cli
from qdbench import FunctionTask, InvalidInput
from qdbench.algorithms import registry
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.job import Job, Outcome, Settings
from qdbench.experiments.launchers import InProcesses, Launcher, in_this_process
from qdbench.experiments.loop import RunProgress
from qdbench.experiments.plan import plan_for
from qdbench.store.locks import locked
from qdbench.store.metrics_file import COLUMNS
from qdbench.store.record import Target
from running import command, finished, folder, results, wait_for_rows


def test_the_same_command_skips_resumes_and_extends(bench: Cli) -> None:
    first = bench(*command("cvt_map_elites", n=480))
    again = bench(*command("cvt_map_elites", n=480))
    assert "finished" in first.stdout
    assert "skipped" in again.stdout
    smaller = bench(*command("cvt_map_elites", n=96))
    assert "skipped" in smaller.stdout
    assert "finished" in bench(*command("cvt_map_elites", n=960)).stdout
    bench(*command("cvt_map_elites", "--out", "whole", n=960))
    assert results(folder(bench, "cvt_map_elites")) == results(folder(bench, "cvt_map_elites", out="whole"))


def test_several_algorithms_and_seeds_in_parallel_give_the_same(bench: Cli) -> None:
    many = ["--algorithm", "random_search", "--batch-size", "48", "--evaluations", "480"]
    start = ["run", "mine:task", "--algorithm", "map_elites"]
    one_by_one = bench(*start, "--seeds", "0-1", *many, "--workers", "1")
    together = bench(*start, "--seeds", "0,1", *many, "--jobs", "3", "--out", "jobs")
    assert one_by_one.returncode == together.returncode == 0, together.stderr
    for algorithm in ("map_elites", "random_search"):
        for seed in (0, 1):
            path = folder(bench, algorithm, seed)
            assert results(path) == results(folder(bench, algorithm, seed, out="jobs"))
    here = qdbench.load(folder(bench, "map_elites", 0, out="jobs")).record.environments[-1]
    assert here.jobs == 3
    seeds = [qdbench.load(folder(bench, a, 0)).archive.elites.seeds for a in ("map_elites", "random_search")]
    assert not np.isin(seeds[0], seeds[1]).any()


BROKEN = '''
from qdbench.algorithms.random_search import RandomSearch

class Breaks(RandomSearch):
    """Breaks after a while."""

    def tell(self, evaluated):
        super().tell(evaluated)
        if self._iteration == 5:
            raise ZeroDivisionError("five is\\ntoo many")
'''


def test_a_failing_run_does_not_stop_the_others(bench: Cli) -> None:
    (bench.folder / "broken.py").write_text(BROKEN)
    done = bench(*command("broken:Breaks", "--algorithm", "random_search", n=480))
    assert done.returncode == 1
    assert "ZeroDivisionError: five is too many" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    path = folder(bench, "broken.Breaks")
    record = qdbench.load(path).record
    assert record.status == "failed"
    assert "five is too many" in record.reason
    assert "Traceback" in (path / "error.txt").read_text()
    assert qdbench.load(folder(bench, "random_search")).status == "finished"


def test_an_algorithm_of_ones_own_runs_by_name(bench: Cli) -> None:
    (bench.folder / "own.py").write_text(BROKEN.replace("== 5", "== 500"))
    done = bench(*command("own:Breaks", n=480))
    assert done.returncode == 0, done.stderr
    assert qdbench.load(folder(bench, "own.Breaks")).status == "finished"


def test_an_installed_package_can_announce_algorithms(bench: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.folder / "own.py").write_text(BROKEN.replace("== 5", "== 500"))
    installed = bench.folder / "plug_in-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1.0\n")
    entries = "[qdbench.algorithms]\nannounced = own:Breaks\nmap_elites = own:Nothing\nlost = own:Nothing\n"
    (installed / "entry_points.txt").write_text(entries)
    monkeypatch.setenv("PYTHONPATH", str(bench.folder))
    listed = {entry["algorithm"]: entry for entry in json.loads(bench("algorithms", "--json").stdout)}
    assert listed["announced"]["what"] == "Breaks after a while."
    assert "cannot load" in listed["lost"]["what"]  # a broken plug-in hides no other
    assert "iso_sigma" in listed["map_elites"]["options"]  # and replaces none of ours
    assert bench(*command("announced", n=96)).returncode == 0
    assert qdbench.load(folder(bench, "announced")).status == "finished"


def test_two_processes_cannot_share_a_folder(bench: Cli) -> None:
    first = bench.start(*command("map_elites", n=10**7))
    wait_for_rows(first, folder(bench, "map_elites") / "metrics.csv", 3)
    second = bench(*command("map_elites", n=10**7))
    first.kill()
    first.communicate()
    assert second.returncode == 0  # the first one makes the run
    assert "in progress elsewhere: " in second.stderr
    assert "is in use by another process" in second.stderr


@pytest.mark.parametrize("launcher", [in_this_process, InProcesses(1)])
def test_what_another_process_finishes_meanwhile_is_finished(launcher: Launcher, tmp_path: Path) -> None:
    task = qdbench.make("sphere")
    plans = [plan_for(task, task.name, "random_search", {"batch_size": 16}, seed=seed) for seed in range(3)]
    jobs = [Job(plan, plan.folder(tmp_path), Target(evaluations=32)) for plan in plans]
    settings, told = Settings(evaluators=Threads(1)), list[str]()
    theirs = [ExitStack(), ExitStack()]
    for job, lock in zip(jobs, theirs, strict=False):
        job.path.mkdir(parents=True)
        lock.enter_context(locked(job.path))

    def listener(job: Job, news: RunProgress | Outcome) -> None:
        if isinstance(news, Outcome):
            told.append(news.status)
        if isinstance(news, Outcome) and job is jobs[2]:  # now the other process finishes its first run
            theirs[0].close()
            in_this_process(jobs[:1], settings, Interrupt(), lambda job, news: None)

    found = launcher(jobs, settings, Interrupt(), listener)
    assert told == ["in progress elsewhere", "in progress elsewhere", "finished"]
    assert [one.status for one in found] == ["skipped", "in progress elsewhere", "finished"]
    assert found[0].totals.evaluations == 32
    theirs[1].close()


def test_repeated_seeds_add_up(bench: Cli) -> None:
    start = ("run", "mine:task", "--algorithm", "random_search", "--evaluations", "48", "--batch-size", "48")
    assert bench(*start, "--seeds", "0-1", "--seeds", "4", "--seeds", "1,2").returncode == 0
    made = (bench.folder / "results/sphere/random_search").iterdir()
    assert sorted(path.name for path in made) == ["seed-0", "seed-1", "seed-2", "seed-4"]


def test_a_run_of_unusable_solutions_names_the_check(bench: Cli) -> None:
    (bench.folder / "unreliable.py").write_text((ROOT / "tests/unreliable.py").read_text())
    done = bench(*command("unreliable:NotANumber", n=96))
    assert done.returncode == 1
    reason = (
        "unreliable:NotANumber asked for what cannot be evaluated: solution 3 has NaN or infinity; every "
        "parameter must be finite; `qdbench check unreliable:NotANumber` finds such mistakes in a moment"
    )
    assert reason in done.stderr
    assert qdbench.load(folder(bench, "unreliable.NotANumber")).record.reason == reason
    assert "ask() returned NaN or infinity" in bench("check", "unreliable:NotANumber").stderr


def test_a_folder_with_another_run_is_refused_before_any_work(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    before = results(folder(bench, "map_elites"))
    for change in (["--set", "iso_sigma=0.1"], ["--set", "initial=7"]):
        done = bench(*command("random_search", "--algorithm", "map_elites", *change, n=96))
        assert done.returncode == 2
        assert f"{change[1].split('=')[0]} " in done.stderr
        assert "--name" in done.stderr
    assert not folder(bench, "random_search").exists()
    assert results(folder(bench, "map_elites")) == before
    assert bench(*command("map_elites", "--set", "iso_sigma=0.1", "--name", "bold", n=96)).returncode == 0
    beside = folder(bench, "map_elites-bold")
    assert qdbench.load(beside).record.algorithm.options["iso_sigma"] == 0.1
    assert bench("resume", "--trust", str(beside), "--evaluations", "192").returncode == 0


ODD = """
import enum, functools
from qdbench.algorithms.random_search import RandomSearch

Colour = enum.Enum("Colour", "RED")

class WithEnum(RandomSearch):
    def __init__(self, problem, seed, *, colour=Colour.RED): super().__init__(problem, seed)

class WithTuple(RandomSearch):
    def __init__(self, problem, seed, *, sizes=(1, 2), batch_size: int = 48):
        super().__init__(problem, seed, batch_size=batch_size); hash(sizes)

class BadHint(RandomSearch):
    def __init__(self, problem, seed, *, a: "1 +" = 3): super().__init__(problem, seed)

class Leaves(RandomSearch):
    def tell(self, evaluated): raise SystemExit("bye")
"""


def test_odd_algorithms_are_run_or_refused_without_a_traceback(bench: Cli) -> None:
    (bench.folder / "odd.py").write_text(ODD)
    start = ["run", "mine:task", "--evaluations", "96", "--algorithm"]
    refused = {"odd:WithEnum": "cannot hold", "builtins:dict": "signature", "odd:Nothing": "cannot load"}
    for name, sentence in refused.items():
        done = bench(*start, name)
        assert done.returncode == 2, name
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
    assert bench(*start, "odd:BadHint").returncode == 0
    assert bench(*start, "odd:WithTuple").returncode == 0
    assert (
        bench("resume", "--trust", str(folder(bench, "odd.WithTuple", 0)), "--evaluations", "192").returncode
        == 0
    )
    left = bench(*start, "odd:Leaves", "--algorithm", "random_search")
    assert left.returncode == 1
    assert "SystemExit: bye" in left.stderr
    assert qdbench.load(folder(bench, "random_search", 0)).status == "finished"


BAD_INPUT = {
    "batch_size is 0; give 1 or more": ["run", "ant_omni", "--set", "batch_size=0", "--evaluations", "9"],
    "2**63": ["run", "ant_omni", "--seed", "18446744073709551616", "--evaluations", "9"],
    "seconds is inf": ["run", "ant_omni", "--seconds", "inf"],
    "needs an end: give evaluations (--evaluations N) or seconds (--seconds X)": ["run", "ant_omni"],
    "'--evaluations': give a whole number of 1 or more, not '1e3'": ["run", "arm", "--evaluations", "1e3"],
    "'--evaluations': give a whole number of 1 or more, not '0'": ["run", "ant_omni", "--evaluations", "0"],
    "'--seconds': give a number of 0 or more, not 'nan'": ["run", "ant_omni", "--seconds", "nan"],
    "'--batch-size': give a whole number of 1 or more, not '2.5'": ["run", "ant_omni", "--batch-size", "2.5"],
    "no scale 'tiny'; use quick, standard, paper": ["suite", "map_elites", "--scale", "tiny"],
    "for a class of your own in hill.py write hill:Class": ["suite", "hill.py"],
    "no algorithm 'map_elite'; did you mean 'map_elites'": [
        "run", "ant_omni", "--algorithm", "map_elite", "--evaluations", "9",
    ],
    "no task 'ant_omny'; did you mean 'ant_omni'": ["run", "ant_omny", "--evaluations", "9"],
    "no option 'iso_sigm'; did you mean 'iso_sigma'": [
        "run", "ant_omni", "--set", "iso_sigm=1", "--evaluations", "9",
    ],
    "iso_sigma is 'big'; give float": ["run", "ant_omni", "--set", "iso_sigma=big", "--evaluations", "9"],
    "batch_size is 'nan'; give int": ["run", "ant_omni", "--set", "batch_size=nan", "--evaluations", "9"],
    "is not OPTION=VALUE": ["run", "ant_omni", "--set", "iso_sigma", "--evaluations", "9"],
    "is set twice": ["run", "ant_omni", "--set", "batch_size=4", "--batch-size", "5", "--evaluations", "9"],
    "init is 'wide'; give lecun or uniform": [
        "run", "ant_omni", "--algorithm", "random_search", "--set", "init=wide", "--evaluations", "9",
    ],
    "give --seed or --seeds": ["run", "ant_omni", "--seed", "1", "--seeds", "0-9", "--evaluations", "9"],
    "'9-0' is not a list of seeds": ["run", "ant_omni", "--seeds", "9-0", "--evaluations", "9"],
    "'a' is not a list of seeds": ["run", "ant_omni", "--seeds", "a", "--evaluations", "9"],
    "at most 10000": ["run", "ant_omni", "--seeds", "0-99999", "--evaluations", "9"],
    "not '-1'": ["run", "ant_omni", "--seconds", "-1"],
    "--jobs": ["run", "ant_omni", "--jobs", "0", "--evaluations", "9"],
    "'--workers': give a whole number": ["run", "ant_omni", "--workers", "0", "--evaluations", "9"],
    "may need 31.3 GB, more than memory_gb=4; give a depth of at most 4, or memory_gb=32": [
        "run", "humanoid_omni", "--algorithm", "deep_grid", "--evaluations", "9",
    ],
    "'--episode-length': give a whole": ["run", "ant_omni", "--episode-length", "0", "--evaluations", "9"],
    "cannot name a folder": ["run", "ant_omni", "--name", "../up", "--evaluations", "9"],
    "cannot load the algorithm 'no.where:X'": [
        "run", "ant_omni", "--algorithm", "no.where:X", "--evaluations", "9",
    ],
    "is not a folder; give the folder of a run": ["resume", "nowhere"],
    "Missing argument": ["resume"],
}  # fmt: skip


@pytest.mark.parametrize("sentence", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(sentence: str, cli: Cli) -> None:
    done = cli(*BAD_INPUT[sentence])
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (cli.folder / "results").exists()


MAY_LOSE_THEIR_BEST = {
    "map_elites_unstructured",  # turns away what is near to two elites, however fit
    "deep_grid",  # random places
    "me_sampling", "me_weighted", "me_delta", "adaptive_sampling", "archive_sampling",
    "parallel_adaptive_sampling", "extract_me",  # elites are means, and means change
}  # fmt: skip


@pytest.mark.parametrize("algorithm", registry.algorithms())
def test_metrics_are_those_of_the_archive(algorithm: str, tmp_path: Path) -> None:
    """The last row, computed again from archive.npz alone."""
    path = finished(tmp_path, algorithm=algorithm, evaluations=640, batch_size=64)
    run = qdbench.load(path)
    assert tuple(run.metrics) == COLUMNS
    last = {name: values[-1] for name, values in run.metrics.items()}
    with np.load(path / "archive.npz") as file:
        fitness, descriptors, cells = file["fitness"], file["descriptors"], file["cells"]
        assert len(np.unique(cells)) == len(cells)
        assert file["solutions"].dtype == np.float32
        assert set(file["kind"].tolist().split()) <= {"grid", "cvt", "unstructured"}
    low, high = -400.0, 1.0
    assert last["coverage"] == len(fitness)
    assert last["max_fitness"] == fitness.max()
    assert last["min_fitness"] == fitness.min()
    assert last["qd_score"] == pytest.approx(((fitness - low) / (high - low)).sum(), rel=1e-12)
    best: dict[tuple[int, ...], float] = {}
    for place, value in zip(np.clip((descriptors + 1) / 2 * 12, 0, 11).astype(int), fitness, strict=True):
        best[tuple(place)] = max(value, best.get(tuple(place), -np.inf))
    assert last["grid_coverage"] == len(best)
    assert last["grid_sum_fitness"] == pytest.approx(sum(best.values()), rel=1e-12)
    assert last["grid_max_fitness"] == max(best.values())
    assert last["invalid"] == run.record.totals.invalid > 0
    assert last["lowest_fitness"] <= last["min_fitness"] <= last["max_fitness"] <= last["highest_fitness"]
    assert (np.diff(run.metrics["seconds"]) > 0).all()
    if algorithm not in MAY_LOSE_THEIR_BEST:
        assert last["max_fitness"] == last["highest_fitness"]
        assert (np.diff(run.metrics["qd_score"]) >= 0).all()
    totals = run.record.totals
    parts = totals.simulation_seconds + totals.algorithm_seconds + totals.rest_seconds
    assert parts == pytest.approx(totals.seconds)


def test_a_run_reads_into_pandas(tmp_path: Path) -> None:
    run = qdbench.load(finished(tmp_path))
    frame = run.to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == 6
    assert frame["evaluations"].tolist() == [16, 32, 48, 64, 80, 96]


def test_a_run_in_which_everything_is_invalid_ends_well(tmp_path: Path) -> None:
    task = FunctionTask(
        name="hopeless",
        function=lambda x: (np.full(len(x), np.nan), np.zeros((len(x), 1))),
        n_parameters=2,
        descriptor_bounds=((0, 1),),
        cells=(5,),
        fitness_bounds=(0, 1),
    )
    run = qdbench.run(task, evaluations=512, out=tmp_path)
    assert run.record.totals.invalid == 512
    assert np.isnan(run.record.totals.lowest_fitness)
    assert run.metrics["coverage"].tolist() == [0, 0]
    assert np.isnan(run.metrics["max_fitness"]).all()
    assert len(run.archive.elites) == 0
    text = (run.path / "run.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_seconds_end_a_run_and_continue_over_a_resume(tmp_path: Path) -> None:
    first = qdbench.load(finished(tmp_path, evaluations=None, seconds=0.05))
    assert first.metrics["seconds"][-2] < 0.05 <= first.metrics["seconds"][-1]
    longer = qdbench.load(finished(tmp_path, evaluations=None, seconds=0.1))
    n = len(first.metrics["seconds"])
    assert np.array_equal(longer.metrics["seconds"][:n], first.metrics["seconds"])
    assert (np.diff(longer.metrics["seconds"]) > 0).all()
    with pytest.raises(InvalidInput, match="needs an end"):
        finished(tmp_path, evaluations=None)


NARROW = "fitness_bounds=(-400, 1), score_interval=(-200, -150)"


def test_a_fitness_outside_the_interval_is_told_at_once(bench: Cli) -> None:
    (bench.folder / "mine.py").write_text(
        (bench.folder / "mine.py").read_text().replace("(-400, 1)", "(-1, 1)")
    )
    done = bench(*command("map_elites", n=48))
    assert done.returncode == 0
    assert "seed-3 is outside the task's fitness bounds [-1, 1]: its values span [" in done.stderr
    assert "above the interval of the QD score" not in done.stderr  # below it is ordinary
    (bench.folder / "mine.py").write_text(
        (bench.folder / "mine.py").read_text().replace("fitness_bounds=(-1, 1)", NARROW)
    )
    done = bench(*command("map_elites", n=48), "--out", "others")
    assert "fitness bounds" not in done.stderr
    assert "above the interval of the QD score [-200, -150]. An elite above it counts as 1." in done.stderr
    assert "[-200, -150]" in done.stdout
