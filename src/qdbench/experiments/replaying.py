"""An elite's stored episode, simulated again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qdbench.archives.geometry import Grid
from qdbench.checks import checked_count, checked_flag, checked_list, is_whole, shown
from qdbench.errors import InvalidInput
from qdbench.experiments.plan import reevaluation_seeds
from qdbench.store.archive_file import StoredArchive
from qdbench.store.loading import StoredRun, load
from qdbench.tasks.contract import Task

if TYPE_CHECKING:
    from qdbench.simulation import Episode
    from qdbench.tasks.robot_task import RobotTask


def replay(
    run: StoredRun | str | Path,
    elite: int | Literal["best"] = "best",
    *,
    cell: int | Sequence[int] | None = None,
    sample: int = 0,
    task: Task | None = None,
    trust: bool = False,
) -> Episode:
    """Return the episode of an elite, exactly as it was when the elite was found, step by step.

    `elite` is a row of the archive or `"best"`; `cell` chooses by cell instead: its number or, on a grid, its
    place along every dimension, like (3, 7). An elite that was evaluated several times has as many samples.
    `task` is only needed where the run's task was made in Python; `trust` allows to import a module of your
    own that the run names.
    """
    stored = run if isinstance(run, StoredRun) else load(run)
    trust, sample = checked_flag("trust", trust), checked_count("sample", sample, 0)
    walking = replayable_task(stored, task, trust=trust)
    row = elite_row(stored.archive, elite, cell)
    seeds = stored.archive.seeds[row][stored.archive.evaluations[row] >= 0]
    if sample >= len(seeds):
        raise InvalidInput(f"the sample is {sample}, but elite {row} has {len(seeds)}, numbered from 0")
    return walking.rollout(stored.archive.elites.solutions[row], int(seeds[sample]))


def replayable_task(run: StoredRun, task: Task | None = None, *, trust: bool = False) -> RobotTask:
    """Return the task of a run, or the one given for it, if its episodes can be simulated again."""
    if task is not None and not isinstance(task, Task):
        raise InvalidInput(f"the task is {shown(task)}; give an object with the members of qdbench.Task")
    found: Any = task or run.make_task(trust=trust)
    if found.fingerprint != run.record.task.fingerprint:
        raise InvalidInput(
            f"{run.path} was made with fingerprint {run.record.task.fingerprint}, but the task here "
            f"has {found.fingerprint}; its episodes cannot be simulated in the same way"
        )
    if not hasattr(found, "rollout"):
        raise InvalidInput(f"{found.name} has no robot, so it has neither episodes nor policies")
    walking: RobotTask = found
    return walking


def ghosts(run: StoredRun, task: RobotTask, row: int, n: int, *, workers: int | None = None) -> list[Episode]:
    """Return episodes of an elite under `n` other seeds: those of its first `n` re-evaluations.

    If the run was corrected, they are exactly the stored re-evaluations.
    """
    record, elites = run.record, run.archive.elites
    seeds = reevaluation_seeds(record.seed, record.algorithm.name, int(elites.evaluations[row, 0]), n)
    return task.rollouts(np.repeat(elites.solutions[row][None], n, axis=0), seeds, workers=workers)


def elite_row(
    archive: StoredArchive, elite: int | Literal["best"], cell: int | Sequence[int] | None = None
) -> int:
    """Return the row of an elite in an archive, chosen by its number, its fitness or its cell."""
    if not len(archive):
        raise InvalidInput(f"{archive.path} holds no elites")
    if cell is not None:
        number = _cell_number(archive, cell)
        rows = np.flatnonzero(archive.cells == number)
        if not len(rows):
            raise InvalidInput(f"no elite is in the cell {shown(cell)} of {archive.path}")
        return int(rows[np.argmax(archive.fitness[rows])])
    if isinstance(elite, str) and elite == "best":
        return int(np.argmax(archive.fitness))
    if isinstance(elite, str) or not is_whole(elite) or not 0 <= elite < len(archive):
        raise InvalidInput(
            f"elite is {shown(elite)}; {archive.path} has {len(archive):,}, numbered from 0; or give 'best'"
        )
    return int(elite)


def _cell_number(archive: StoredArchive, cell: int | Sequence[int]) -> int:
    geometry = archive.geometry
    cure = "give its number or, on a grid, its place along every dimension, like (3, 7)"
    given = [cell] if is_whole(cell) else checked_list("cell", cell, cure)
    if not all(map(is_whole, given)):
        raise InvalidInput(f"cell is {shown(cell)}; {cure}")
    place = tuple(map(int, given))
    if len(place) == 1:
        return place[0]
    if not isinstance(geometry, Grid):
        raise InvalidInput(f"the cells of a {geometry.kind} archive have one number each, not {place}")
    if len(place) != len(geometry.shape) or not all(
        0 <= i < n for i, n in zip(place, geometry.shape, strict=False)
    ):
        shape = "x".join(map(str, geometry.shape))
        raise InvalidInput(f"the cell {place} is not in a grid of {shape} cells, numbered from 0")
    return int(np.ravel_multi_index(place, geometry.shape))
