"""Simulate elites of a run again, each with its ghosts, for films."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qdbench.archives.geometry import Grid
from qdbench.errors import InvalidInput
from qdbench.experiments.plan import reevaluation_seeds
from qdbench.experiments.replaying import elite_row, replayable_task
from qdbench.films.choosing import chosen_elites
from qdbench.films.takes import Take
from qdbench.metrics.returns import Elites, returned
from qdbench.metrics.robustness import Reevaluations
from qdbench.store.loading import StoredRun
from qdbench.tasks.robot_task import RobotTask

GHOSTS = 4
"""Episodes of the same elite under other seeds that are shown beside it."""

MOST_STEPS = 20_000
"""Longer episodes are not filmed unasked: a file of someone else may name any length."""


@dataclass(frozen=True)
class Reevaluated:
    """What the re-evaluations of an elite say."""

    n: int
    fitness: float
    """Their mean; NaN if one was invalid."""
    returned: int
    """How many came back to the elite's cell."""


@dataclass(frozen=True, eq=False)
class Performer:
    """An elite on film: its stored episode, and ghosts: the same policy under other seeds."""

    row: int
    """In the archive."""
    why: str
    """`best`, `median`, `diverse`, or how it was asked for."""
    take: Take
    ghosts: tuple[Take, ...]
    cell: tuple[int, ...]
    """Its place along every dimension of a grid, or the number of its cell."""
    stored: float
    """Its fitness in the archive."""
    same: bool
    """Whether the episode simulated here gave exactly the stored fitness."""
    again: Reevaluated | None
    """None if the archive was not corrected."""


@dataclass(frozen=True, eq=False)
class Film:
    """Elites of one run on film."""

    run: StoredRun
    task: RobotTask
    performers: tuple[Performer, ...]


def film_run(
    run: StoredRun,
    chosen: Sequence[tuple[int, str]] | None = None,
    *,
    ghosts: int | None = None,
    trust: bool = False,
    workers: int | None = None,
) -> Film | None:
    """Return elites of a run on film, given by row and reason; by default those of `chosen_elites`.

    Without a number of ghosts, there are some if the run was corrected. None if the task has no robot, or
    the archive no elites. Raises InvalidInput if the task cannot be made again as it was.
    """
    task = run.make_task(trust=trust)
    if not isinstance(task, RobotTask):
        return None
    if task.episode_length > MOST_STEPS:
        raise InvalidInput(
            f"{task.name} has episodes of {task.episode_length:,} steps, and a page films at most "
            f"{MOST_STEPS:,}; `qdbench film` films one elite of any length"
        )
    rows = chosen_elites(run.archive) if chosen is None else chosen
    if not rows:
        return None
    if ghosts is None:
        ghosts = 0 if run.final_point is None else GHOSTS
    return Film(run, task, film_elites(run, replayable_task(run, task), rows, ghosts, workers=workers))


def film_elite(
    run: StoredRun,
    elite: int | Literal["best"],
    cell: int | Sequence[int] | None,
    ghosts: int,
    *,
    trust: bool = False,
) -> Film:
    """Return one elite on film, chosen as in `replay`."""
    task = replayable_task(run, trust=trust)
    row = elite_row(run.archive, elite, cell)
    why = str(elite) if cell is None and isinstance(elite, str) else f"elite {row}"
    return Film(run, task, film_elites(run, task, [(row, why)], ghosts))


def film_elites(
    run: StoredRun,
    task: RobotTask,
    chosen: Sequence[tuple[int, str]],
    ghosts: int,
    *,
    workers: int | None = None,
) -> tuple[Performer, ...]:
    """Return elites on film, given by row and reason: exactly the stored episodes, simulated again.

    Ghosts have the seeds of the elite's first re-evaluations.
    """
    archive, record = run.archive, run.record
    solutions, seeds = [], []
    for row, _ in chosen:
        number = int(archive.evaluations[row, 0])
        others = reevaluation_seeds(record.seed, record.algorithm.name, number, ghosts)
        seeds += [int(archive.seeds[row, 0]), *(int(seed) for seed in others)]
        solutions += [archive.elites.solutions[row]] * (1 + ghosts)
    episodes = task.rollouts(np.stack(solutions), np.array(seeds, np.uint64), workers=workers)
    takes = [Take.of(episode) for episode in episodes]
    corrected = run.final_point is not None
    each = 1 + ghosts
    return tuple(
        Performer(
            row=row,
            why=why,
            take=takes[i * each],
            ghosts=tuple(takes[i * each + 1 : (i + 1) * each]),
            cell=_cell(run, row),
            stored=float(archive.fitness[row]),
            same=not _is_one_sample(run, row) or takes[i * each].fitness == archive.fitness[row],
            again=_reevaluated(run, row) if corrected else None,
        )
        for i, (row, why) in enumerate(chosen)
    )


def _is_one_sample(run: StoredRun, row: int) -> bool:
    """Return whether the stored fitness is that of one episode, not a mean."""
    return int((run.archive.evaluations[row] >= 0).sum()) == 1


def _cell(run: StoredRun, row: int) -> tuple[int, ...]:
    number = int(run.archive.cells[row])
    if not isinstance(run.geometry, Grid):
        return (number,)
    return tuple(int(i) for i in np.unravel_index(number, run.geometry.shape))


def _reevaluated(run: StoredRun, row: int) -> Reevaluated:
    assert run.corrections is not None
    point = run.final_point
    assert point is not None
    which = point.rows[row : row + 1]
    again = Reevaluations(run.corrections.fitness[which], run.corrections.descriptors[which])
    elite = Elites(run.archive.fitness[row : row + 1], run.archive.descriptors[row : row + 1])
    back = returned(run.geometry, elite, again)
    return Reevaluated(again.n_samples, float(again.means()[0][0]), int(back.sum()))
