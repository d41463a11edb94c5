"""The runs that can be chosen: by task, algorithm and seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qdbench.analysis.collect import Skipped
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.store.folder import run_folders
from qdbench.store.loading import load


@dataclass(frozen=True)
class Listed:
    """A run that can be chosen."""

    path: Path
    task: str
    algorithm: str
    """The algorithm, followed by the name of the runs if they have one."""
    seed: str
    """The seed in words; with the folder, where two runs would be called the same."""


@dataclass(frozen=True)
class Catalogue:
    """All runs that can be shown, and those that cannot."""

    runs: tuple[Listed, ...]
    skipped: tuple[Skipped, ...]

    def tasks(self) -> tuple[str, ...]:
        """Return the names of all tasks."""
        return _different(run.task for run in self.runs)

    def algorithms(self, task: str) -> tuple[str, ...]:
        """Return the algorithms that ran on a task."""
        return _different(run.algorithm for run in self.runs if run.task == task)

    def seeds(self, task: str, algorithm: str) -> tuple[str, ...]:
        """Return the seeds of an algorithm on a task."""
        return tuple(run.seed for run in self.runs if (run.task, run.algorithm) == (task, algorithm))

    def nearest(self, task: str, algorithm: str = "", seed: str = "") -> Listed:
        """Return the run of these names; where there is none, the first with the earlier ones."""
        among: Sequence[Listed] = self.runs
        for name, wanted in (("task", task), ("algorithm", algorithm), ("seed", seed)):
            among = [run for run in among if getattr(run, name) == wanted] or among
        return among[0]


def _different(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def catalogue(paths: Sequence[Path]) -> Catalogue:
    """List the runs in some folders. Those that cannot be shown are left out with a reason.

    InvalidInput if none is left.
    """
    listed: list[Listed] = []
    skipped: list[Skipped] = []
    for path in run_folders(paths):
        try:
            run = load(path)
        except (QdbenchError, OSError) as error:
            skipped.append(Skipped(path, str(error)))
            continue
        if not run.has_archive and run.status != "running":
            skipped.append(Skipped(path, f"it has no archive; its status is {run.status}"))
            continue
        record = run.record
        seed = f"seed {record.seed}"
        same = (record.task.name, record.variant, seed)
        if any((one.task, one.algorithm, one.seed) == same for one in listed):
            seed = f"seed {record.seed} ({path})"
        listed.append(Listed(path, record.task.name, record.variant, seed))
    if not listed:
        raise InvalidInput(f"{skipped[0].path} cannot be explored: {skipped[0].reason}")
    return Catalogue(tuple(listed), tuple(skipped))
