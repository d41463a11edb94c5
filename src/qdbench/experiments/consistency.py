"""Do the files of a run belong together? Each function yields what is wrong, one sentence each."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.experiments.true_elites import ROUNDING
from qdbench.metrics.lives import lived
from qdbench.metrics.scores import fittest, scores
from qdbench.seeds import numbered_seeds
from qdbench.store.folder import RunFolder
from qdbench.store.loading import StoredRun
from qdbench.store.told_log import ToldLog

Numbers = NDArray[np.float64]


def off_by(stored: Any, samples: Numbers) -> float:
    """Return how far numbers are from one sample, or from the mean of several but for rounding."""
    off = float(np.max(np.abs(stored - samples.mean(axis=0)), initial=0)) if len(samples) else math.inf
    rounding = ROUNDING * float(np.abs(samples).max()) if len(samples) > 1 else 0.0
    return 0.0 if off <= rounding else math.inf if math.isnan(off) else off


def wrong_seeds(run: StoredRun) -> Iterator[str]:
    """A seed follows from the run's seed and the evaluation's number: nobody can choose one."""
    record, numbers, n = run.record, run.archive.evaluations, run.record.totals.evaluations
    if (numbers >= n).any() or (numbers < 0).all(axis=1).any():
        yield "an elite is of an evaluation that the run never made"
    own = numbered_seeds(record.seed, "run", record.algorithm.name, first=0, n=n)
    known = (numbers >= 0) & (numbers < n)
    if not np.array_equal(own[numbers[known]], run.archive.seeds[known]):
        yield "the seed of an elite is not that of its evaluation"


def wrong_metrics(run: StoredRun) -> Iterator[str]:
    """The last row of metrics.csv must be that of the archive, projected onto the task's grid."""
    archive = run.archive
    last = {name: values[-1].item() for name, values in run.metrics.items() if len(values)}
    if not last and not len(archive):
        return
    best = fittest(archive.fitness, run.grid.cells(archive.descriptors))
    alive = lived(archive.steps[best], archive.evaluations[best], run.record.task.episode_length)
    measured = vars(scores(archive.fitness[best], run.record.facts.score_interval, alive))
    expected = {"evaluations": archive.n_evaluations} | {f"grid_{key}": measured[key] for key in measured}
    for name, value in expected.items():
        if not np.isclose(last.get(name, math.nan), value, rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
            yield f"metrics.csv ends with {name} {last.get(name)}, but the archive has {value}"


def wrong_corrections(run: StoredRun) -> Iterator[str]:
    """Re-evaluations of the final archive must be of its elites."""
    made, point = run.corrections, run.final_point
    if made is None or point is None:
        return
    if not (
        np.array_equal(made.keys[point.rows], run.archive.evaluations[:, 0])
        and np.array_equal(made.originals[point.rows], run.archive.fitness)
    ):
        yield "the re-evaluations in corrected.npz are not of the elites in archive.npz"


@dataclass(frozen=True, eq=False)
class AllTold:
    """What all evaluations of a run gave."""

    fitness: Numbers  #: (n,)
    descriptors: Numbers  #: (n, dimensions)
    steps: NDArray[Any]  #: (n,)


def told(run: StoredRun) -> AllTold | None:
    """Return what all evaluations gave by told.log, or None where it is not whole."""
    path, blocks = RunFolder(run.path).told_path, []
    if not path.exists():
        return None
    with TemporaryDirectory() as folder:  # a log is opened to be continued: look at a copy
        log = ToldLog(Path(shutil.copyfile(path, Path(folder) / path.name)), run.record.determinants)
        while (block := log.next()) is not None:
            blocks.append(block)
        log.close()
    iterations, totals = [block.iteration for block in blocks], run.record.totals
    if not blocks or iterations != list(range(1, totals.iteration + 1)):
        return None
    columns = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ("fitness", "descriptors", "steps")
    }
    return AllTold(**columns) if len(columns["fitness"]) == totals.evaluations else None


def untold(run: StoredRun, known: AllTold) -> Iterator[str]:
    """What every elite remembers must be what the algorithm was told; the first that differs is named."""
    archive = run.archive
    for row, numbers in enumerate(archive.evaluations):
        made = (numbers >= 0) & (numbers < len(known.fitness))
        its = numbers[made]
        if (
            off_by(archive.fitness[row], known.fitness[its])
            or off_by(archive.descriptors[row], known.descriptors[its])
            or not np.array_equal(archive.steps[row][made], known.steps[its])
        ):
            yield f"elite {row} differs from what the algorithm was told, by told.log"
            return
