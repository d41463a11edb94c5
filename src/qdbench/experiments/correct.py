"""Correct a run afterwards: re-evaluate the elites of its final archive."""

from __future__ import annotations

from pathlib import Path

from qdbench.errors import InvalidInput
from qdbench.experiments.corrections import CorrectionProgress, Corrector
from qdbench.experiments.environment import environment
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.loading import load
from qdbench.experiments.plan import Plan, differences, plan_from
from qdbench.experiments.store import RunFolder


def correct_run(
    path: Path,
    n_reevaluations: int,
    workers: int,
    interrupt: Interrupt,
    progress: CorrectionProgress,
    *,
    plan: Plan | None = None,
) -> list[str]:
    """Re-evaluate what has not been; `plan` is only needed where the task has no name.

    Return in what this place differs from where the run ended: there, the bits of a re-evaluation may differ.
    """
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
        if corrector.taken(evaluations):
            return []
        corrector.take(evaluations, archive.elites, archive.cells, interrupt, progress)
        here, there = environment(), run.record["environments"][-1]
        return differences({key: there.get(key) for key in here}, here)
