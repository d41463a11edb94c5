"""Does any signal at any moment lose or change anything? Runs that are killed and continued.

    python studies/kills.py --signals 100

Every trial starts a command in a folder of its own, sends SIGKILL, SIGTERM or SIGINT at a random moment
(also during set-up, correction and report), repeats the command until it ends, and compares all arrays and
all metrics but the times with those of a run that nothing disturbed. Commands are `run` with corrections,
one or two runs at a time, `correct`, and `report`.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from qdbench import stream
from qdbench.algorithms.registry import algorithms

TASK = """
import numpy as np
from qdbench import FunctionTask

def function(solutions, seeds):
    x = solutions.astype(np.float64)
    for _ in range(8):
        x = np.sin(np.arcsin(np.clip(x, -1, 1)))
    noise = (seeds % np.uint64(1000)).astype(np.float64) / 1e4
    return -np.square(x).sum(axis=1) + noise, x[:, :2] + noise[:, None]

task = FunctionTask(
    name="noisy", function=function, noisy=True, n_parameters=400, cells=(12, 12),
    descriptor_bounds=((-1, 1), (-1, 1)), fitness_bounds=(-400, 1),
)
"""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def start(folder: Path, command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "qdbench", *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def contents(results: Path) -> dict[str, bytes]:
    """Everything that must not depend on interruptions."""
    found: dict[str, bytes] = {}
    for file in sorted(results.rglob("*.npz")):
        if file.name == "checkpoint.npz":
            continue
        with np.load(file) as arrays:
            found |= {f"{file.parent} {file.name} {name}": arrays[name].tobytes() for name in arrays.files}
    for file in sorted(results.rglob("metrics.csv")):
        with file.open(newline="") as lines:
            names, *rows = csv.reader(lines)
        kept = [i for i, name in enumerate(names) if "seconds" not in name]
        found[f"{file.parent} metrics"] = repr([[row[i] for i in kept] for row in rows]).encode()
    return {name.replace(str(results), ""): data for name, data in found.items()}


def run_command(algorithm: str, jobs: int) -> list[str]:
    return [
        "run", "mine:task", "--algorithm", algorithm, "--seeds", "0-1", "--evaluations", "4800",
        "--batch-size", "48", "--checkpoint-every", "0.2", "--corrections", "2", "--reevaluations", "5",
        "--jobs", str(jobs),
    ]  # fmt: skip


def expected_codes(number: int) -> tuple[int, ...]:
    """A command ends by itself, or as the signal says; a signal before Python listens ends it at once."""
    return (0, -number) if number == signal.SIGKILL else (0, 128 + number, -number)


def trial(folder: Path, command: list[str], seconds: float, number: int, wait: float) -> str:
    """Disturb a command once, then let it end; return what went wrong."""
    process = start(folder, command)
    time.sleep(wait * seconds)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    if process.returncode not in expected_codes(number):
        return f"exit code {process.returncode} after signal {number}: {err[-300:]}"
    if "Traceback" in err:
        return f"a traceback after signal {number}: {err[-600:]}"
    again = start(folder, command)
    _, err = again.communicate(timeout=600)
    return "" if again.returncode == 0 else f"exit code {again.returncode} when repeated: {err[-300:]}"


def prepared(folder: Path, before: Path | None) -> Path:
    shutil.copytree(before, folder) if before else folder.mkdir()
    (folder / "mine.py").write_text(TASK)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--signals", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--algorithms", nargs="+", default=list(algorithms()))
    chosen = parser.parse_args()
    rng, verdicts = stream(chosen.seed, "kills"), Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        kinds: list[tuple[str, list[str], Path | None]] = []
        for algorithm in chosen.algorithms:
            kinds += [
                (f"run {algorithm}, {jobs} at a time", run_command(algorithm, jobs), None) for jobs in (1, 2)
            ]
        plain = prepared(root / "plain", None)
        start(plain, [*run_command("map_elites", 1)[:-6], "--jobs", "1"]).communicate()
        kinds.append(("correct", ["correct", "results", "--reevaluations", "60", "--trust"], plain))
        kinds.append(("report", ["report", "results"], plain))
        known: dict[str, tuple[dict[str, bytes], float]] = {}
        for i in range(chosen.signals):
            label, command, before = kinds[i % len(kinds)]
            if label not in known:
                whole = prepared(root / f"whole-{len(known)}", before)
                begun = time.monotonic()
                _, err = start(whole, command).communicate()
                known[label] = contents(whole / "results"), time.monotonic() - begun
                assert known[label][0], err
            expected, seconds = known[label]
            folder = prepared(root / f"trial-{i}", before)
            number = SIGNALS[int(rng.integers(len(SIGNALS)))]
            problem = trial(folder, command, seconds, number, float(rng.random()))
            if not problem and contents(folder / "results") != expected:
                problem = "other results"
            if not problem and label == "report" and not (folder / "report.html").exists():
                problem = "no report"
            verdicts[problem or "identical"] += 1
            print(f"{i + 1:4} {label}, {signal.Signals(number).name}: {problem or 'identical'}", flush=True)
            shutil.rmtree(folder)
    print(f"{verdicts['identical']} of {chosen.signals} identical")
    sys.exit(verdicts["identical"] != chosen.signals)


if __name__ == "__main__":
    main()
