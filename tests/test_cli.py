"""The real command line in subprocesses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import qdbench
from conftest import Cli


def test_tasks_prints_table_1(cli: Cli) -> None:
    done = cli("tasks")
    assert done.returncode == 0
    for name in qdbench.TASKS:
        assert name in done.stdout
    assert "24,465" in done.stdout


def test_tasks_as_json(cli: Cli) -> None:
    rows = json.loads(cli("tasks", "--json").stdout)
    assert [row["task"] for row in rows][:9] == list(qdbench.TASKS)
    assert set(rows[0]) == {
        "task", "version", "robot", "observations", "actions", "parameters", "descriptor_dimensions", "cells",
        "descriptor_bounds", "fitness_bounds", "episode_length",
    }  # fmt: skip
    assert rows[3]["cells"] == [5, 5, 5, 5]
    assert rows[6]["descriptor_bounds"] == [[-29.7, 30.3], [-29.7, 30.3]]


def test_evaluate_gives_the_library_s_numbers(cli: Cli, tmp_path: Path) -> None:
    task = qdbench.make("hopper_uni", episode_length=100)
    solutions = task.random_solutions(6, qdbench.stream(3, "solutions"))
    expected = task.evaluate(solutions, qdbench.evaluation_seeds(3, 6))
    np.save(tmp_path / "six.npy", solutions)
    common = ("--seed", "3", "--episode-length", "100", "--json")
    for source in (("--random", "6"), ("--solutions", "six.npy", "--workers", "1")):
        got = json.loads(cli("evaluate", "hopper_uni", *source, *common).stdout)
        assert got["fitness"] == expected.fitness.tolist()
        assert got["descriptors"] == expected.descriptors.tolist()
        assert got["fingerprint"] == task.fingerprint


def test_evaluate_writes_and_shows_the_next_step(cli: Cli, tmp_path: Path) -> None:
    done = cli("evaluate", "walker_uni", "--random", "5", "--reset-noise", "0", "--out", "five.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "five.npz", allow_pickle=False) as saved:
        assert saved["fitness"].shape == (5,)
        assert saved["fingerprint"] == qdbench.make("walker_uni", reset_noise=0).fingerprint
        best = int(saved["fitness"].argmax())
        fitness = saved["fitness"][best]
    fittest = cli("rollout", "walker_uni", "--random", "5", "--reset-noise", "0", "--out", "fittest.svg")
    assert f"solution {best}:" in fittest.stdout
    following = done.stdout.partition("Next: qdbench ")[2].splitlines()[0].split()
    assert following[-1] == str(best)
    drawn = cli(*following)
    assert drawn.returncode == 0, drawn.stderr
    assert f"fitness {fitness:.3f}" in drawn.stdout
    assert (tmp_path / "episode.png").stat().st_size > 10_000


def test_rollout_saves_every_step(cli: Cli, tmp_path: Path) -> None:
    done = cli("rollout", "halfcheetah_uni", "--random", "2", "--episode-length", "20", "--out", "e.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "e.npz", allow_pickle=False) as saved:
        assert saved["body_positions"].shape == (21, 7, 3)
        assert saved["torque"].shape == (20,)


@pytest.mark.alone
def test_bench_measures_what_it_says(cli: Cli) -> None:
    done = cli("bench", "hopper_uni", "ant_omni", "--repeats", "1", "--episode-length", "20", "--json")
    assert done.returncode == 0, done.stderr
    hopper, ant = json.loads(done.stdout)
    assert (hopper["task"], ant["task"]) == ("hopper_uni", "ant_omni")
    for row in (hopper, ant):
        assert row["solutions"] == 128 * row["workers"]
        assert 0.2 < row["ratio"] < 1.3
        assert row["full_length"]["control_steps"] == pytest.approx(20 * row["full_length"]["evaluations"])
        assert row["peak_memory_mb"] > 50


BAD_COMMANDS = {
    "no task 'ant_omny'; did you mean 'ant_omni'?": ("evaluate", "ant_omny", "--random", "3"),
    "either --solutions FILE or --random N": ("evaluate", "ant_omni"),
    "give either": ("evaluate", "ant_omni", "--random", "3", "--solutions", "x.npy"),
    "'--random': give a whole number of 1 or more, not '0'": ("evaluate", "ant_omni", "--random", "0"),
    "'--workers': give a whole number": (
        "evaluate",
        "ant_omni",
        "--random",
        "1",
        "--workers",
        "0",
    ),
    "'--episode-length': give a whole number": (
        "evaluate",
        "ant_omni",
        "--random",
        "1",
        "--episode-length",
        "0",
    ),
    "reset_noise is -1.0": ("evaluate", "ant_omni", "--random", "1", "--reset-noise", "-1"),
    "cannot read solutions from 'none.npy'": ("evaluate", "ant_omni", "--solutions", "none.npy"),
    "cannot read solutions from 'text.npy'": ("evaluate", "ant_omni", "--solutions", "text.npy"),
    "cannot read solutions from 'pickle.npy'": ("evaluate", "ant_omni", "--solutions", "pickle.npy"),
    "takes (n, 10312)": ("evaluate", "ant_omni", "--solutions", "small.npy"),
    "float32 NumPy array, not float64": ("evaluate", "ant_omni", "--solutions", "double.npy"),
    "have shape ()": ("evaluate", "ant_omni", "--solutions", "scalar.npy"),
    "No such option: --randum": ("evaluate", "ant_omni", "--randum", "1"),
    "Invalid value for '--random'": ("evaluate", "ant_omni", "--random", "many"),
    "Invalid value for '--seed'": ("evaluate", "ant_omni", "--random", "1", "--seed", "-1"),
    "its folder is missing": ("evaluate", "ant_omni", "--random", "1", "--out", "no/such.npz"),
    "--index is 4, but there are 2": ("rollout", "ant_omni", "--random", "2", "--index", "4"),
    "must end in .npz": ("evaluate", "ant_omni", "--random", "1", "--out", "evaluation"),
    "cannot read solutions from 'zip.npy'": ("evaluate", "ant_omni", "--solutions", "zip.npy"),
    "cannot read solutions from 'cut.npy'": ("evaluate", "ant_omni", "--solutions", "cut.npy"),
    "the number of solutions in 'empty.npy' is 0": ("rollout", "ant_omni", "--solutions", "empty.npy"),
    "--random is 99999999999999999999": ("evaluate", "ant_omni", "--random", "99999999999999999999"),
    "are too many for any memory": ("evaluate", "ant_omni", "--random", "1000000000"),
    "SyntaxError": ("evaluate", "broken_module:task", "--random", "1"),
    "give a whole number of 0 or more, not 'x'": ("rollout", "hopper_uni", "--random", "1", "--index", "x"),
    "there is no run folder 'results/arm/x/seed-9'; give the folder": ("rollout", "results/arm/x/seed-9"),
    "'/dev/null' is a file; give the folder of a run": ("rollout", "/dev/null"),
    "must end in .png": ("rollout", "hopper_uni", "--random", "1", "--out", "x.docx"),
    "no task 'x'": ("bench", "x"),
    "No such command": ("simulate",),
}


@pytest.mark.parametrize("sentence", BAD_COMMANDS)
def test_bad_input_is_one_line_and_exit_code_2(sentence: str, cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "small.npy", np.zeros((2, 7), np.float32))
    np.save(tmp_path / "double.npy", np.zeros((2, 10_312)))
    np.save(tmp_path / "scalar.npy", np.float32(1))
    np.save(tmp_path / "pickle.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "zip.npy").write_bytes(b"PK\3\4 and nothing more")
    np.save(tmp_path / "empty.npy", np.zeros((0, 10_312), np.float32))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "empty.npy").read_bytes()[:60])
    (tmp_path / "broken_module.py").write_text("def task(:")
    done = cli(*BAD_COMMANDS[sentence])
    assert sentence in done.stderr
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.alone
def test_ctrl_c_stops_within_a_second(cli: Cli) -> None:
    process = cli.start("evaluate", "halfcheetah_uni", "--random", "5000", "--workers", "2")
    deadline = time.monotonic() + 60
    while _threads(process.pid) < 3 and time.monotonic() < deadline:  # the main one and two workers
        time.sleep(0.05)
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - pressed < 1
    assert process.returncode == 130
    assert err.strip().splitlines() == ["qdbench: interrupted"]


def _threads(pid: int) -> int:
    if not Path("/proc").is_dir():
        pytest.skip("needs /proc to see when the workers have begun")
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.parametrize("arguments", [(), ("evaluate",), ("rollout",), ("bench",), ("tasks",)])
def test_help_is_there(arguments: tuple[str, ...], cli: Cli) -> None:
    done = cli(*arguments, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_version_and_bare_command(cli: Cli) -> None:
    assert cli("--version").stdout.strip() == qdbench.__version__
    bare = cli()
    assert "Usage" in bare.stdout
    assert bare.stderr == ""


@pytest.mark.alone
def test_tasks_answers_at_once(cli: Cli) -> None:
    def seconds() -> float:
        start = time.monotonic()
        cli("tasks")
        return time.monotonic() - start

    assert min(seconds() for _ in range(3)) < 1


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    code = "import sys, qdbench, qdbench.cli; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "mujoco", "matplotlib"} & set(done.stdout.split())


def test_algorithms_are_listed_without_the_libraries_they_are_made_of() -> None:
    code = "import sys; from qdbench.cli.algorithms import algorithms; algorithms(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cma_mae" in done.stdout
    assert not {"ribs", "numba", "mujoco", "torch"} & set(done.stdout.splitlines()[-1].split())


def test_memory_stays_close_to_the_parameters() -> None:
    """4,096 humanoid solutions: at most 1.5 × the parameters themselves plus 300 MB."""
    code = """
import qdbench
from qdbench.simulation.bench import peak_memory_mb
task = qdbench.make("humanoid_uni", episode_length=3)
solutions = task.random_solutions(4096, qdbench.stream(0, "x"))
task.evaluate(solutions, range(4096))
print(peak_memory_mb(), solutions.nbytes / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, parameters = map(float, done.stdout.split())
    assert peak < 1.5 * parameters + 300
