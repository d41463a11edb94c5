"""Are the stored numbers what the task gives? Some elites simulated again, and all files compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from qdbench.checks import checked_count, checked_flag, checked_paths, checked_workers, shown
from qdbench.errors import DamagedFile, InvalidInput
from qdbench.experiments.consistency import (
    off_by,
    told,
    untold,
    wrong_corrections,
    wrong_metrics,
    wrong_seeds,
)
from qdbench.experiments.environment import versions
from qdbench.seeds import stream
from qdbench.store.folder import run_folders
from qdbench.store.loading import StoredRun, load
from qdbench.store.plain import differences
from qdbench.tasks.contract import Task

CHUNK = 256
"""Elites that are simulated at once."""


@dataclass
class Verification:
    """What was found out about one run."""

    run: StoredRun = field(repr=False)
    elites: int = 0
    """In the archive."""
    simulated: int = 0
    """How many of them were simulated again."""
    differing: int = 0
    """How many of those have other numbers than the task gives."""
    fitness_off: float = 0.0
    """The largest difference between a stored fitness and what the task gives; infinite: it is invalid."""
    descriptors_off: float = 0.0
    """Likewise of descriptors."""
    logged: bool = False
    """Whether told.log is whole, so that all elites could be compared with it."""
    versions: list[str] = field(default_factory=list)
    """In what this machine differs from where the run ended; else all numbers must be equal to the bit."""
    problems: list[str] = field(default_factory=list)
    """What is wrong, one sentence each."""

    @property
    def is_right(self) -> bool:
        """Whether nothing differs."""
        return not self.problems


def verify(
    runs: str | Path | Sequence[str | Path],
    *,
    elites: int = 20,
    workers: int | None = None,
    trust: bool = False,
    task: Task | None = None,
) -> list[Verification]:
    """Simulate some elites of runs again from their stored seeds, and compare the files of each run.

    `runs` are folders of runs, or folders with runs below. `elites` are chosen at random, always the same
    ones. On the same versions and CPU all numbers must be equal to the bit; elsewhere it is told by how much
    they differ. `trust` allows to import modules of your own that the runs name; `task` is only needed where
    the runs' task was made in Python. Nothing is written.
    """
    paths, n = checked_paths("runs", runs), checked_count("elites", elites)
    n_workers, trust = checked_workers(workers), checked_flag("trust", trust)
    if task is not None and not isinstance(task, Task):
        raise InvalidInput(f"the task is {shown(task)}; give an object with the members of qdbench.Task")
    return [verify_run(folder, n, n_workers, trust=trust, task=task) for folder in run_folders(paths)]


def verify_run(
    path: Path, elites: int, workers: int, *, trust: bool = False, task: Task | None = None
) -> Verification:
    """Verify one run: simulate some of its elites again, and compare its files."""
    run = load(path)
    if run.status not in ("finished", "stopped"):
        raise InvalidInput(f"{path} has the status {run.status}; finish it before it is verified")
    task = task or run.make_task(trust=trust)
    found = Verification(run, versions=differences(run.record.environments[-1].versions, versions()))
    if not run.has_archive:
        found.problems.append("archive.npz is missing")
        return found
    for problems in (
        wrong_seeds(run),
        wrong_metrics(run),
        wrong_corrections(run),
        _wrong_elites(found),
        _simulated(found, task, elites, workers),
    ):
        try:
            found.problems += list(problems)
        except (DamagedFile, FileNotFoundError) as error:
            found.problems.append(str(error))
    found.problems[:] = dict.fromkeys(found.problems)  # a damaged file is noticed more than once
    return found


def _wrong_elites(found: Verification) -> Iterator[str]:
    """Compare all elites with what the algorithm was told, if all of that is still there."""
    found.elites = len(found.run.archive)
    known = told(found.run)
    found.logged = known is not None
    if known is not None:
        yield from untold(found.run, known)


def _simulated(found: Verification, task: Task, most: int, workers: int) -> Iterator[str]:
    """Simulate some elites again, every sample of each, and compare fitness, descriptor and steps."""
    record, archive = found.run.record, found.run.archive
    here, there = task.fingerprint, record.task.fingerprint
    same_mujoco = record.environments[-1].mujoco == versions().mujoco  # it is part of the fingerprint
    if task.n_parameters != record.task.n_parameters or (here != there and same_mujoco):
        yield f"the task has changed: its fingerprint was {there}, here it is {here}"
        return
    rows = np.sort(stream(record.seed, "verify").permutation(len(archive))[:most])
    for start in range(0, len(rows), CHUNK):
        some = rows[start : start + CHUNK]
        numbers = archive.evaluations[some]
        whose, which = np.nonzero(numbers >= 0)
        solutions = archive.elites.solutions[some][whose]
        again = task.evaluate(solutions, archive.seeds[some][whose, which], workers=workers)
        for i, row in enumerate(some.tolist()):
            fitness = off_by(archive.fitness[row], again.fitness[whose == i])
            descriptors = off_by(archive.descriptors[row], again.descriptors[whose == i])
            lives = archive.steps[row][numbers[i] >= 0]
            found.differing += bool(fitness or descriptors or (lives != again.steps[whose == i]).any())
            found.fitness_off = max(found.fitness_off, fitness)
            found.descriptors_off = max(found.descriptors_off, descriptors)
    found.simulated = len(rows)
    if found.differing:
        elsewhere = f"; the run was made with other versions ({'; '.join(found.versions)})"
        yield (
            f"{found.differing} of {found.simulated} elites differ from what the task gives: fitness by up "
            f"to {found.fitness_off:.3g}, descriptors by up to {found.descriptors_off:.3g}"
            f"{elsewhere if found.versions else ''}"
        )
