"""Find the runs below some folders, and group them: per task, per algorithm, the replications."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qdbench.errors import InvalidInput, QdbenchError, UnknownName
from qdbench.experiments.loading import StoredRun, load


@dataclass(frozen=True)
class Skipped:
    """A folder that looks like a run and cannot be used, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, eq=False)
class Variant:
    """One algorithm with one set of options on one task: its replications, by seed."""

    task: str
    label: str
    """The algorithm's name, with the run's own name if it has one."""
    runs: tuple[StoredRun, ...]


@dataclass(frozen=True, eq=False)
class Collected:
    """What was found."""

    variants: tuple[Variant, ...]
    skipped: tuple[Skipped, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks in order of their names."""
        return tuple(dict.fromkeys(variant.task for variant in self.variants))

    def of_task(self, task: str) -> tuple[Variant, ...]:
        """Return a task's variants."""
        return tuple(variant for variant in self.variants if variant.task == task)


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the folders of runs among these and below them, seed-2 before seed-10."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            raise InvalidInput(f"{str(path)!r} is not a folder; give the folder of a run")
        here = [path] if (path / "run.json").exists() else [file.parent for file in path.rglob("run.json")]
        if not here:
            raise InvalidInput(f"{str(path)!r} holds no run: there is no run.json in it or below")
        found |= dict.fromkeys(sorted(here, key=_natural))
    return list(found)


def collect(paths: Iterable[Path], *, tasks: Sequence[str] = ()) -> Collected:
    """Read all runs below some folders; unfinished, failed and damaged ones are skipped with a reason.

    Only what is needed is read: run.json and metrics.csv here, archives when they are looked at.
    """
    runs: list[StoredRun] = []
    paths = list(paths)
    skipped = [
        Skipped(path, "it has an archive.npz or checkpoint.npz, but no run.json") for path in _orphans(paths)
    ]
    known: set[str] = set()
    for path in run_folders(paths):
        try:
            run = load(path)
            reason = _unusable(run)
            if not reason:
                known.add(run.record["task"]["name"])
            if tasks and run.record["task"]["name"] not in tasks:
                continue
        except (QdbenchError, OSError) as error:
            reason = str(error)
        except (KeyError, TypeError) as error:
            reason = f"its run.json is not one of ours: {type(error).__name__} {error}"
        if reason:
            skipped.append(Skipped(path, reason))
        else:
            runs.append(run)
    for name in tasks:
        if name not in known:  # rather than go on without it
            names = ", ".join(sorted(known)) or "none"
            raise UnknownName("task", name, known, f"the finished runs are of {names}")
    return Collected(_grouped(runs), tuple(skipped))


def _orphans(paths: Iterable[Path]) -> list[Path]:
    """Return folders with the files of a run, but for the one that says what it is."""
    files = (
        file for path in paths for name in ("archive", "checkpoint") for file in path.rglob(f"{name}.npz")
    )
    folders = dict.fromkeys(file.parent for file in files)
    return sorted((folder for folder in folders if not (folder / "run.json").exists()), key=_natural)


def _unusable(run: StoredRun) -> str:
    if run.status != "finished":
        reason = run.record["reason"]
        return f"its status is {run.status}{': ' * bool(reason)}{reason}"
    return "" if len(run.metrics["evaluations"]) else "it has no iterations"


def _grouped(runs: Sequence[StoredRun]) -> tuple[Variant, ...]:
    groups: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        record = run.record
        name = f"-{record['name']}" if record["name"] else ""
        groups.setdefault((record["task"]["name"], f"{record['algorithm']['name']}{name}"), []).append(run)
    return tuple(
        Variant(task, label, tuple(sorted(members, key=lambda run: int(run.record["seed"]))))
        for (task, label), members in sorted(groups.items())
    )


def _natural(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]
