"""Re-evaluate a run's elites: each once, kept in corrected.npz, continued after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cells, Geometry
from qdbench.checks import (
    checked_count,
    checked_flag,
    checked_function,
    checked_paths,
    usable,
)
from qdbench.errors import InvalidInput
from qdbench.experiments.environment import versions
from qdbench.experiments.evaluators import Evaluator, Evaluators, evaluators_on, interruptible, nodes_of
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.plan import Plan, plan_from
from qdbench.store.corrections_file import (
    CorrectionPoint,
    Corrections,
    read_corrections,
    read_header,
    write_corrections,
)
from qdbench.store.folder import RunFolder, run_folders
from qdbench.store.loading import StoredRun, load
from qdbench.store.plain import differences

CHUNK_BYTES = 2**28
"""Parameters that are evaluated at once: enough to keep all workers busy, little beside an archive."""
SAVE_EVERY = 30.0  # seconds; and never more than a fiftieth of the time
CorrectionProgress = Callable[[int, int], None]
"""Called with the number of re-evaluations done and needed, of one correction point."""


def _silent(done: int, total: int) -> None:
    """Tell nobody."""


class Corrector:
    """Makes correction points of a run; an elite that was in an earlier one is not evaluated again."""

    def __init__(
        self, plan: Plan, folder: RunFolder, geometry: Geometry, n: int, evaluate: Evaluator
    ) -> None:
        self.plan, self._path, self._evaluate = plan, folder.corrected_path, evaluate
        require_continuable(folder, plan, n)
        self._made = (
            read_corrections(self._path, plan.determinants())
            if self._path.exists()
            else Corrections.none_yet(geometry, n)
        )

    def has(self, evaluations: int) -> bool:
        """Return whether there is a correction point after that many evaluations."""
        return self._made.at(evaluations) is not None

    def correct(
        self,
        evaluations: int,
        elites: Evaluated,
        cells: Cells,
        interrupt: Interrupt,
        progress: CorrectionProgress = _silent,
    ) -> None:
        """Re-evaluate the elites after that many evaluations, as far as they are new, and write all down.

        An interruption keeps what is done; the same call continues it.
        """
        if self.has(evaluations):
            return
        keys, n = elites.evaluations[:, 0], self._made.n_reevaluations
        missing = self._missing(keys, elites.fitness)
        total, saved, pause = len(missing) * n, time.monotonic(), SAVE_EVERY
        size = max(1, CHUNK_BYTES // (4 * self.plan.task.n_parameters * n))
        try:
            for start in range(0, len(missing), size):
                told = partial(_report, interrupt, progress, start * n, total)
                self._reevaluate(elites, missing[start : start + size], interrupt, told)
                if time.monotonic() - saved > pause:
                    begun = time.monotonic()
                    self._write()
                    saved = time.monotonic()
                    pause = max(SAVE_EVERY, 50 * (saved - begun))
        except BaseException:
            self._write()
            raise
        row_of = {key: row for row, key in enumerate(self._made.keys.tolist())}
        rows = np.array([row_of[key] for key in keys.tolist()], np.int64)
        columns = (cells.copy(), elites.fitness.copy(), elites.descriptors.copy())
        points = [*self._made.points, CorrectionPoint(evaluations, rows, *columns)]
        points.sort(key=lambda point: point.evaluations)
        self._made = replace(self._made, points=tuple(points))
        self._write()

    def _missing(self, keys: NDArray[np.int64], fitness: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return which elites are to be re-evaluated: each once.

        In a run continued elsewhere an evaluation may have another outcome than it had: then it is another
        elite.
        """
        known = dict(zip(self._made.keys.tolist(), self._made.originals.tolist(), strict=True))
        new = [known.get(key) != value for key, value in zip(keys.tolist(), fitness.tolist(), strict=True)]
        _, first = np.unique(keys, return_index=True)
        return np.array([i for i in np.sort(first) if new[i]], np.int64)

    def _reevaluate(
        self,
        elites: Evaluated,
        some: NDArray[np.int64],
        interrupt: Interrupt,
        progress: CorrectionProgress,
    ) -> None:
        n, keys = self._made.n_reevaluations, elites.evaluations[some, 0].tolist()
        seeds = np.concatenate([self.plan.reevaluation_seeds(key, n) for key in keys])
        repeated = np.repeat(elites.solutions[some], n, axis=0)
        with interruptible(self._evaluate, interrupt):
            found = self._evaluate(repeated, seeds, progress=progress)
        valid = found.valid & usable(found.fitness, found.descriptors)
        self._made = self._made.extended(
            keys,
            elites.fitness[some],
            np.where(valid, found.fitness, np.nan).reshape(len(keys), n),
            np.where(valid[:, None], found.descriptors, np.nan).reshape(len(keys), n, -1),
            found.steps.reshape(len(keys), n),
        )

    def _write(self) -> None:
        write_corrections(self._path, self.plan.determinants(), versions(), self._made)


def _report(
    interrupt: Interrupt, progress: CorrectionProgress, before: int, total: int, done: int, of_chunk: int
) -> None:
    interrupt.check()  # where a signal must not be raised
    progress(before + done, total)


def require_continuable(folder: RunFolder, plan: Plan, n: int) -> None:
    """Refuse re-evaluations of another run, or another number of them."""
    path = folder.corrected_path
    header = read_header(path)
    if header is None:
        return
    others = differences(header.determinants, plan.determinants())
    if others:
        raise InvalidInput(f"{path} is of another run ({'; '.join(others)}); delete it to start again")
    if header.n_reevaluations != n:
        raise InvalidInput(
            f"{path} has {header.n_reevaluations} re-evaluations per elite, not {n}; "
            f"give --reevaluations {header.n_reevaluations}, or delete the file to start again"
        )


def corrected_after(folder: RunFolder) -> tuple[int, ...]:
    """Return after how many evaluations the elites of a run have been re-evaluated."""
    header = read_header(folder.corrected_path)
    return () if header is None else header.points


def import_tasks(folders: Sequence[Path], *, trust: bool) -> None:
    """Import the modules that runs name, so that their code goes to the nodes of a cluster."""
    for record in (load(path).record for path in folders):
        if ":" in record.task.source:
            plan_from(record.determinants, trust=trust)


USUAL_REEVALUATIONS = 50


def correct_run(
    path: Path,
    n_reevaluations: int | None,
    evaluators: Evaluators,
    interrupt: Interrupt,
    progress: CorrectionProgress = _silent,
    *,
    plan: Plan | None = None,
    trust: bool = False,
) -> list[str]:
    """Re-evaluate the final elites of a run; `plan` is only needed where the task has no name.

    None re-evaluates as often as the run was corrected before, else 50 times.

    Return in what this machine differs from where the run ended: the numbers may not be exactly those that
    the run would have got there.
    """
    folder = RunFolder(path)
    with folder.locked():
        run = load(path)
        record = run.record
        if run.status not in ("finished", "stopped"):
            raise InvalidInput(f"{path} has the status {run.status}; finish the run first")
        if not record.totals.evaluations:
            raise InvalidInput(f"{path} was stopped in its first iteration: it has no elites to correct")
        plan = plan or plan_from(record.determinants, record.name, trust=trust)
        recorded = record.task.fingerprint
        if plan.task.fingerprint != recorded:
            raise InvalidInput(
                f"{path} was made with fingerprint {recorded}, but the task here has "
                f"{plan.task.fingerprint}; its elites cannot be evaluated in the same way"
            )
        archive = run.archive
        header = read_header(folder.corrected_path)
        n = n_reevaluations or (USUAL_REEVALUATIONS if header is None else header.n_reevaluations)
        corrector = Corrector(plan, folder, archive.geometry, n, evaluators(plan.task))
        if corrector.has(archive.n_evaluations):
            return []
        corrector.correct(archive.n_evaluations, archive.elites, archive.cells, interrupt, progress)
        here = differences(record.environments[-1].versions, versions())
        nodes = [f"node {node.host} has {node.differs}" for node in nodes_of(evaluators) if node.differs]
        return [*here, *nodes]


def correct(
    runs: str | Path | Sequence[str | Path],
    *,
    reevaluations: int | None = None,
    workers: int | None = None,
    evaluators: Evaluators | None = None,
    on: str | None = None,
    elsewhere: bool = False,
    trust: bool = False,
    progress: CorrectionProgress = _silent,
) -> list[StoredRun]:
    """Re-evaluate the elites of finished or stopped runs, and return the runs.

    `runs` are folders of runs, or folders with runs below. What was re-evaluated before is not done again.
    `reevaluations` is the number per elite: if not given, as often as before, else 50. `on="ray"` evaluates
    on all nodes of a cluster, `elsewhere` also on those with another CPU or other versions; `evaluators`
    makes something else that evaluates. `trust` allows to import modules of your own that the runs name.
    """
    paths = checked_paths("runs", runs)
    n = None if reevaluations is None else checked_count("reevaluations", reevaluations)
    trust, progress = checked_flag("trust", trust), checked_function("progress", progress)
    elsewhere = checked_flag("elsewhere", elsewhere)
    interrupt, done, folders = Interrupt(), [], run_folders(paths)
    if on is not None:
        import_tasks(folders, trust=trust)
    with evaluators_on(on, workers=workers, elsewhere=elsewhere) as usual, interrupt.listening():
        for folder in folders:
            correct_run(folder, n, evaluators or usual, interrupt, progress, trust=trust)
            done.append(load(folder))
    return done
