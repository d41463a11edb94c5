"""An elite's stored episode, simulated again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from qdbench.archives.geometry import Grid
from qdbench.errors import InvalidInput
from qdbench.store.archive_file import StoredArchive
from qdbench.store.loading import StoredRun, load
from qdbench.tasks.contract import Task

if TYPE_CHECKING:
    from qdbench.simulation import Episode


def replay(
    run: StoredRun | str | Path,
    elite: int | Literal["best"] = "best",
    *,
    cell: int | Sequence[int] | None = None,
    sample: int = 0,
    task: Task | None = None,
) -> Episode:
    """Return the episode of an elite, exactly as it was when the elite was found, step by step.

    `elite` is a row of the archive or `"best"`; `cell` chooses by cell instead: its number or, on a grid, its
    place along every dimension, like (3, 7). An elite that was evaluated several times has as many samples.
    `task` is only needed where the run's task was made in Python.
    """
    stored = run if isinstance(run, StoredRun) else load(run)
    task = task or stored.task
    if task.fingerprint != stored.record.task.fingerprint:
        raise InvalidInput(
            f"{stored.path} was made with the fingerprint {stored.record.task.fingerprint}, here it is "
            f"{task.fingerprint}: its episodes cannot be simulated as they were"
        )
    rollout = getattr(task, "rollout", None)
    if rollout is None:
        raise InvalidInput(f"{task.name} has no robot whose episode could be replayed")
    row = elite_row(stored.archive, elite, cell)
    seeds = stored.archive.seeds[row][stored.archive.evaluations[row] >= 0]
    if not 0 <= sample < len(seeds):
        raise InvalidInput(f"the sample is {sample}, but elite {row} has {len(seeds)}, numbered from 0")
    episode: Episode = rollout(stored.archive.elites.solutions[row], int(seeds[sample]))
    return episode


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
            raise InvalidInput(f"no elite is in the cell {cell} of {archive.path}")
        return int(rows[np.argmax(archive.fitness[rows])])
    if elite == "best":
        return int(np.argmax(archive.fitness))
    if isinstance(elite, bool) or not isinstance(elite, int | np.integer) or not 0 <= elite < len(archive):
        raise InvalidInput(
            f"elite is {elite!r}; {archive.path} has {len(archive):,}, numbered from 0; or give 'best'"
        )
    return int(elite)


def _cell_number(archive: StoredArchive, cell: int | Sequence[int]) -> int:
    geometry = archive.geometry
    if isinstance(cell, int | np.integer):
        return int(cell)
    place = tuple(cell)
    if len(place) == 1:
        return int(place[0])
    if not isinstance(geometry, Grid):
        raise InvalidInput(f"the cells of a {geometry.kind} archive have one number each, not {place}")
    if len(place) != len(geometry.shape) or not all(
        0 <= i < n for i, n in zip(place, geometry.shape, strict=False)
    ):
        shape = "x".join(map(str, geometry.shape))
        raise InvalidInput(f"the cell {place} is not in a grid of {shape} cells, numbered from 0")
    return int(np.ravel_multi_index(place, geometry.shape))
