"""Does a change of the code leave every result as it was? Runs of two checkouts, compared bit for bit.

    python studies/same_results.py BEFORE AFTER

BEFORE and AFTER are checkouts of this repository, each with its own `.venv` (`make lint`). Both
run every task with every built-in algorithm. All arrays of archive.npz and corrected.npz and all columns of
metrics.csv are compared, except times and what only names a run's origin (`PROVENANCE`). An entry that AFTER
lacks is a difference; one that it adds is listed. `--out FOLDER` keeps the runs and reuses finished ones.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

UNI = ("hopper_uni", "walker_uni", "halfcheetah_uni", "ant_uni", "humanoid_uni", "hexapod_uni")
TASKS = (*UNI, "ant_omni", "humanoid_omni", "hexapod_omni")
OURS = ("map_elites", "cvt_map_elites", "map_elites_unstructured", "random_search")
ALGORITHMS = (*OURS, "ribs_map_elites", "cma_me", "cma_mae")
FILES = ("archive.npz", "corrected.npz", "metrics.csv")
PROVENANCE = (
    "format", "task", "fingerprint", "algorithm", "seed", "determinants", "environment", "versions",
    "fitness_bounds", "grid_shape",  # since format 2 in the determinants
)  # fmt: skip
RENAMED = {"n_snapshots": "n_points", "snapshot_": "point_", "container_": "geometry_"}  # since format 2

Entries = dict[str, np.ndarray[Any, Any]]  # what a run stored, by "file: name"


def commit(checkout: Path) -> str:
    commands = (("rev-parse", "--short", "HEAD"), ("status", "--porcelain"))
    number, changes = (subprocess.check_output(["git", *c], cwd=checkout, text=True) for c in commands)
    return number.strip() + ("-changed" if changes else "")


def make_runs(checkout: Path, task: str, out: Path, chosen: argparse.Namespace) -> bool:
    """All algorithms in one process, one after the other: pyribs' archives are large."""
    command = [str(checkout / ".venv/bin/qdbench"), "run", task, "--out", str(out)]
    command += [word for name in chosen.algorithms for word in ("--algorithm", name)]
    command += ["--evaluations", str(chosen.evaluations), "--episode-length", str(chosen.episode_length)]
    command += ["--batch-size", "64", "--corrections", "2", "--reevaluations", "3"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # its own code
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{task}: {checkout} failed with exit code {done.returncode}\n{done.stderr}", flush=True)
    return not done.returncode


def read(folder: Path) -> Entries:
    """Return all that a run stored; nothing if one of its files is missing."""
    if not all((folder / file).exists() for file in FILES):
        return {}
    entries: Entries = {}
    for file in FILES[:-1]:
        with np.load(folder / file, allow_pickle=False) as stored:
            entries |= {f"{file}: {renamed(name)}": stored[name] for name in stored}
    with (folder / FILES[-1]).open(newline="", encoding="utf-8") as lines:
        names, *rows = csv.reader(lines)
    columns = np.array(rows, dtype=np.float64).T
    return entries | {f"metrics.csv: {name}": column for name, column in zip(names, columns, strict=True)}


def renamed(name: str) -> str:
    for old, new in RENAMED.items():
        name = name.replace(old, new)
    return name


def difference(before: Entries, after: Entries) -> str | None:
    """Return the first difference, or None if AFTER has all that BEFORE has, to the last bit."""
    if not before or not after:
        return f"no complete run in {'AFTER' if before else 'BEFORE'}"
    compared = [name for name in before if name.split(": ")[1] not in PROVENANCE and "seconds" not in name]
    for name in compared:
        if name not in after:
            return f"{name}: not in AFTER"
        old, new = before[name], after[name]
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            return f"{name}: {old.dtype} {old.shape} in BEFORE, {new.dtype} {new.shape} in AFTER"
        # as bytes: NaN equals itself, and 0 differs from -0
        a, b = (np.frombuffer(array.tobytes(), f"V{array.itemsize}") for array in (old, new))
        if differs := np.flatnonzero(a != b).tolist():
            values = f"the first {old.flat[differs[0]]} in BEFORE, {new.flat[differs[0]]} in AFTER"
            return f"{name}: {len(differs)} of {old.size} values, {values}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkouts", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS)
    parser.add_argument("--evaluations", type=int, default=600)  # 256 at random, then offspring
    parser.add_argument("--episode-length", type=int, default=30)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    checkouts = [path.resolve() for path in chosen.checkouts]
    commits = [commit(checkout) for checkout in checkouts]
    if chosen.out and any(name.endswith("-changed") for name in commits):
        sys.exit("--out keeps runs by commit; commit the changes of both checkouts first, or leave it out")
    print(f"BEFORE is {commits[0]}, AFTER is {commits[1]}", flush=True)
    succeeded, verdicts, only_before, only_after = [], [], set[str](), set[str]()
    with tempfile.TemporaryDirectory() as temporary:
        out = (chosen.out or Path(temporary)).resolve()
        outs = [out / f"before-{commits[0]}", out / f"after-{commits[1]}"]
        for task in chosen.tasks:
            succeeded += [make_runs(checkouts[i], task, outs[i], chosen) for i in range(2)]
            for algorithm in chosen.algorithms:
                before, after = (read(folder / task / algorithm / "seed-0") for folder in outs)
                only_before.update(before.keys() - after.keys())
                only_after.update(after.keys() - before.keys())
                verdicts.append(difference(before, after))
                print(f"{task} {algorithm}: {verdicts[-1] or f'equal, {len(before)} entries'}", flush=True)
    print("only in BEFORE:", ", ".join(sorted(only_before)) or "nothing")
    print("only in AFTER:", ", ".join(sorted(only_after)) or "nothing")
    print(f"{verdicts.count(None)} of {len(verdicts)} equal")
    sys.exit(any(verdicts) or not all(succeeded))


if __name__ == "__main__":
    main()
