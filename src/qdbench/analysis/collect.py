"""Find all runs in some folders, and group the replications of each variant on each task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qdbench.errors import QdbenchError, UnknownName
from qdbench.store.folder import folders_without_record, run_folders
from qdbench.store.loading import StoredRun, load


@dataclass(frozen=True)
class Skipped:
    """A run folder that cannot be used, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class LeftOut:
    """A task whose runs cannot be compared, and why."""

    task: str
    reason: str


@dataclass(frozen=True, eq=False)
class Variant:
    """The replications, by seed, of one algorithm with one set of options on one task."""

    task: str
    label: str
    """The name of the algorithm, followed by the name of the runs if they have one."""
    runs: tuple[StoredRun, ...]


@dataclass(frozen=True, eq=False)
class Collected:
    """All runs that were found."""

    variants: tuple[Variant, ...]
    skipped: tuple[Skipped, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks, in alphabetical order."""
        return tuple(dict.fromkeys(variant.task for variant in self.variants))

    def of_task(self, task: str) -> tuple[Variant, ...]:
        """Return the variants of a task."""
        return tuple(variant for variant in self.variants if variant.task == task)


def collect(paths: Iterable[Path], *, tasks: Sequence[str] = ()) -> Collected:
    """Read all runs in some folders. Unfinished, failed and damaged ones are skipped with a reason.

    Only run.json and metrics.csv are read here; archives are read when they are used.
    """
    runs: list[StoredRun] = []
    paths = list(paths)
    without = "it has an archive.npz or checkpoint.npz, but no run.json"
    skipped = [Skipped(path, without) for path in folders_without_record(paths)]
    known: set[str] = set()
    for path in run_folders(paths):
        try:
            run = load(path)
            reason = _unusable(run)
            if not reason:
                known.add(run.record.task.name)
            if tasks and run.record.task.name not in tasks:
                continue
        except (QdbenchError, OSError) as error:
            reason = str(error)
        if reason:
            skipped.append(Skipped(path, reason))
        else:
            runs.append(run)
    for name in tasks:
        if name not in known:  # do not continue without it
            names = ", ".join(sorted(known)) or "none"
            raise UnknownName("task", name, known, f"there are finished runs of {names}")
    return Collected(_grouped(runs), tuple(skipped))


def _unusable(run: StoredRun) -> str:
    if run.status != "finished":
        reason = run.record.reason
        return f"its status is {run.status}{': ' * bool(reason)}{reason}"
    return "" if len(run.metrics["evaluations"]) else "it has no iterations"


def _grouped(runs: Sequence[StoredRun]) -> tuple[Variant, ...]:
    groups: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        groups.setdefault((run.record.task.name, run.record.variant), []).append(run)
    return tuple(
        Variant(task, label, tuple(sorted(members, key=lambda run: run.record.seed)))
        for (task, label), members in sorted(groups.items())
    )
