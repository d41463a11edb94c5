"""Fuzz of calls: the Python interface and the command line with odd values, seeded.

    FUZZ_SECONDS=1800 python tests/fuzz_calls.py

The laws. Python: one of our errors, or success; never a bare TypeError, and nothing takes long. Command line:
exit code 0, 1 or 2, never a traceback, and exit code 2 says why in one line.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import qdbench
from fuzz_targets import BOX, SPHERE, Target, evaluated, file_targets, nothing, plain_targets

MOST_SECONDS = 30.0
"""No call of the fuzz may take longer."""
ALLOWED = (qdbench.QdbenchError, OSError, MemoryError)

CALLED_BACK = {"progress", "say", "function", "random_solutions"}

Rng = np.random.Generator


def odd_value(rng: Rng) -> Any:
    """Return something that hardly any argument wants."""
    values: list[Any] = [
        None, True, False, -1, 0, 3, 2**64, -(2**70), 10**400, 1e9, 3.5, -0.0, float("nan"), float("inf"),
        "", "x", "best", "a/b", "nul\0", "x" * 300, "map_elites", "nowhere:x", ":", "\x1b[31m", b"", b"x", [],
        {}, set(), (), [None], [[]], ["x"], {"a": 1}, {1: 2}, (1, 2), (2, 1), [1, 2, 3], [(0, 1), (0, 1)],
        [(1, 0)], [(0, float("nan"))], object(), object, type, nothing, len, np.sin, 1j, slice(None), ...,
        range(3), iter([1, 2]), np.int64(3), np.int8(-3), np.uint64(2**63), np.float32("nan"), np.float64(3),
        np.bool_(True), np.str_("x"), np.array(3), np.array([]), np.array([1, 2]), np.array(["a", "b"]),
        np.array([None, 1]), np.zeros((2, 2)), np.zeros((0, 4), np.float32), np.zeros((3, 4), np.float16),
        np.full((3, 4), np.nan, np.float32), np.full((3, 2), np.inf), np.ones(3, complex), np.ones(3, bool),
        np.arange(3), np.arange(3.0), np.zeros((3, 1), np.int32), np.zeros((1, 1, 1)), np.datetime64("2020"),
        np.array([(1, 2)], dtype="i4,f8"), np.ma.array([1, 2], mask=[False, True]), np.random.default_rng(0),
        Path("nowhere"), Path("nowhere/at/all.html"), Path(), ValueError("x"), Exception, qdbench,
        qdbench.Grid(BOX, (2, 2)), qdbench.Evaluated(**evaluated()), qdbench.TASKS["hopper_uni"],
        qdbench.terms.HEIGHT, qdbench.terms.FEET_CONTACTS, qdbench.UnknownName, lambda *a: (a, a),
    ]  # fmt: skip
    return values[int(rng.integers(len(values)))]


@contextmanager
def not_long(seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Raise an error after some seconds, so that a call that hangs is found.

    They are seconds of this process, so that a busy machine is no fault of a call; one that waits for ever
    is found after ten times as many on the clock.
    """

    def ring(*_: object) -> None:
        raise RuntimeError(f"it took longer than {seconds} seconds")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, ring) for number in timers}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    try:
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def try_call(target: Target, rng: Rng) -> str:
    """Call a target with one to three odd arguments; return what broke the law, or nothing."""
    given = dict(target.good)
    n = min(len(given), 1 + int(rng.integers(3)) * int(rng.integers(2)))
    for name in rng.choice(list(given), n, replace=False).tolist():
        value = odd_value(rng)
        # whatever a user's own function raises comes through, so it must not complain about its arguments
        given[name] = nothing if name in CALLED_BACK and callable(value) else value
    given = target.safe(given)
    try:
        with warnings.catch_warnings(), not_long():
            warnings.simplefilter("ignore")
            target.call(**given)
    except ALLOWED as error:
        return (
            ""
            if str(error)
            else f"{target.name}({_words(given, target)}): {type(error).__name__} without words"
        )
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return f"{target.name}({_words(given, target)}): {type(error).__name__}: {error} [{place}]"
    return ""


def _words(given: dict[str, Any], target: Target) -> str:
    changed = {name: value for name, value in given.items() if value is not target.good.get(name)}
    return ", ".join(f"{name}={' '.join(repr(value).split())[:60]}" for name, value in changed.items())


def fuzz_python(
    folder: Path, rng: Rng, cases: int, until: float = float("inf")
) -> tuple[Counter[str], list[str]]:
    """Make so many calls; return how many each target had, and what broke the law."""
    done: Counter[str] = Counter()
    with chdir(folder):
        targets = [*plain_targets(), *file_targets(folder)]
        order = [target for target in targets for _ in range(target.weight)]
        broken: dict[str, None] = {}
        while done.total() < cases and time.monotonic() < until:
            target = order[int(rng.integers(len(order)))]
            done[target.name] += 1
            broken |= dict.fromkeys(filter(None, [try_call(target, rng)]))
    return done, list(broken)


# The command line

WORDS = [
    "", "x", "-1", "0", "3", "1e9", "nan", "inf", "3.5", "a=b", "=", "batch_size=0", "batch_size=x", ":",
    "hidden=3", "cells=0x0", "../x", "é", "map_elites", "random_search", "ant_omny", "hopper_uni", SPHERE,
    "nowhere:x", "json:x", "0-3", "3-0", "0,1", "pooled", "grid", "best", "file.txt", "empty", "out.npz",
    "out.html", "\x1b[31mx", "[bold]x", "x" * 300, "a\nb", "99999999999999999999",
]  # fmt: skip


FITTING = {
    "task_name": SPHERE, "algorithm": "random_search", "algorithm_names": "map_elites", "seed": "3",
    "seeds": "0-1", "evaluations": "8", "seconds": "0", "batch_size": "4", "settings": "batch_size=4",
    "reset_noise": "0.1", "episode_length": "5", "task_settings": "cells=3x3", "workers": "1", "elite": "0",
    "cell": "1", "index": "0", "interval": "pooled", "on": "grid", "name": "a", "title": "a",
    "reevaluations": "2", "corrections": "1", "elites": "2", "random": "2", "to": "onnx", "mjcf": "x.xml",
    "solutions": "results/sphere/map_elites/seed-0/archive.npz",
}  # fmt: skip
"""Values that fit, by the names of parameters: only what passes the first checks reaches the others."""


def commands() -> dict[str, list[Any]]:
    """Return the parameters of every command."""
    import typer

    from qdbench.cli.app import app

    group: Any = typer.main.get_command(app)
    return {name: command.params for name, command in group.commands.items()}


def odd_line(rng: Rng, known: dict[str, list[Any]], runs: list[str]) -> list[str]:
    """Return a command with some of its options, and values that mostly do not fit; none takes long."""
    name = str(rng.choice(list(known)))
    words = [*WORDS, *runs * 3]

    def word(parameter: str = "") -> str:
        if rng.random() < 0.5 and parameter in ("run", "runs", "results"):
            return runs[int(rng.integers(len(runs)))]
        if rng.random() < 0.5 and parameter in FITTING:
            return FITTING[parameter]
        return words[int(rng.integers(len(words)))]

    line = [name] if rng.random() > 0.02 else [word()]
    for parameter in known[name]:
        if parameter.param_type_name == "argument":
            line += [word(parameter.name) for _ in range(int(rng.integers(3)) if rng.random() < 0.2 else 1)]
        elif rng.random() < 0.25:
            option = str(rng.choice(parameter.opts))
            line += [option] if parameter.is_flag else [option, word(parameter.name)]
    rest = [one for one in line[1:] if one not in runs]
    ends = {
        "run": ["--evaluations", "8", "--jobs", "1", "--out", "cli", "--corrections", "0"],
        "resume": ["--evaluations", "24", "--jobs", "1"],
        "evaluate": ["--random", "2"] if rng.random() < 0.5 else [],
        "reproduce": ["--out", "file.txt"],
        "suite": ["--out", "file.txt"],
    }
    if name in ("plot", "report", "bench", "explore"):  # only such as end before the work
        line = [name, *rest, "empty"]
    return line + ends.get(name, [])


def run_line(line: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it said on stderr."""
    from qdbench.cli import main

    out, err = io.StringIO(), io.StringIO()
    code = 0
    with patch.object(sys, "argv", ["qdbench", *line]), redirect_stdout(out), redirect_stderr(err):
        try:
            with warnings.catch_warnings(), not_long():
                warnings.simplefilter("ignore")
                main()
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            return -1, traceback.format_exc()
    return code, err.getvalue()


def judged(line: list[str], code: int, said: str) -> str:
    """Return what broke the law of the command line, or nothing."""
    what = f"qdbench {' '.join(map(repr, line))[:300]}"
    if code not in (0, 1, 2) or "Traceback" in said:
        return f"{what}: exit code {code}: {said[-400:]}"
    if code == 2 and len(said.strip().splitlines()) != 1:
        return f"{what}: exit code 2 with {len(said.strip().splitlines())} lines: {said[-400:]}"
    return ""


def _runs(folder: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in (folder / "results").rglob("run.json"))


def fuzz_commands(
    folder: Path, rng: Rng, cases: int, until: float = float("inf")
) -> tuple[Counter[str], list[str]]:
    """Run so many commands in this process; return how many of each, and what broke the law."""
    done: Counter[str] = Counter()
    broken: list[str] = []
    with chdir(folder):
        file_targets(folder)
        known, runs = commands(), _runs(folder)
        while done.total() < cases and time.monotonic() < until:
            line = odd_line(rng, known, runs)
            done[f"qdbench {line[0] if line[0] in known else '?'}"] += 1
            broken += filter(None, [judged(line, *run_line(line))])
    return done, broken


def fuzz_processes(folder: Path, rng: Rng, cases: int) -> list[str]:
    """Run so many commands as a shell would, a few at a time; return what broke the law."""
    from concurrent.futures import ThreadPoolExecutor

    known, runs = commands(), _runs(folder)
    lines = [[word.replace("\0", "") for word in odd_line(rng, known, runs)] for _ in range(cases)]

    def judge(line: list[str]) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "qdbench", *line],
            cwd=folder, capture_output=True, text=True, timeout=10 * MOST_SECONDS,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        return judged(line, done.returncode, done.stderr)

    with ThreadPoolExecutor(3) as pool:
        return list(filter(None, pool.map(judge, lines)))


def main() -> None:
    """Fuzz for FUZZ_SECONDS seconds, half of them each, and print counts and what broke the law."""
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("FUZZ_SEED", str(time.time_ns() % 10**9)))
    print(f"FUZZ_SEED={seed}", flush=True)
    rng = np.random.default_rng(seed)
    broken: list[str] = []
    for fuzz in (fuzz_python, fuzz_commands):
        with tempfile.TemporaryDirectory() as folder:
            counts, found = fuzz(Path(folder), rng, sys.maxsize, time.monotonic() + seconds / 2)
        broken += found
        print(f"{counts.total():,} cases, {len(found)} broken:", dict(counts.most_common()), flush=True)
    print(*broken, sep="\n")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
