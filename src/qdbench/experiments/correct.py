"""Correct a run afterwards: re-evaluate the elites of its final archive."""

from __future__ import annotations

from pathlib import Path

from qdbench.errors import InvalidInput
from qdbench.experiments.corrections import CorrectionProgress, Corrector
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.loading import load
from qdbench.experiments.plan import Plan, plan_from
from qdbench.experiments.store import RunFolder


def correct_run(
    path: Path,
    n_reevaluations: int,
    workers: int,
    interrupt: Interrupt,
    progress: CorrectionProgress,
    *,
    plan: Plan | None = None,
) -> None:
    """Re-evaluate what has not been; `plan` is only needed where the task has no name."""
    folder = RunFolder(path)
    with folder.locked():
        run = load(path)
        if run.status not in ("finished", "stopped"):
            raise InvalidInput(f"{path} has the status {run.status}; finish it before it is corrected")
        if not run.record["totals"]["evaluations"]:
            raise InvalidInput(f"{path} was stopped in its first iteration: it has no elites to correct")
        plan = plan or plan_from(run.record, run.record["name"])
        recorded = run.record["task"]["fingerprint"]
        if plan.task.fingerprint != recorded:
            raise InvalidInput(
                f"{path} was made with the fingerprint {recorded}, here it is {plan.task.fingerprint}: "
                "its elites cannot be evaluated as they were"
            )
        archive = run.archive
        corrector = Corrector(plan, folder, archive.container, n_reevaluations, workers)
        evaluations = int(archive.about["n_evaluations"])
        if not corrector.taken(evaluations):
            corrector.take(evaluations, archive.elites, archive.cells, interrupt, progress)
