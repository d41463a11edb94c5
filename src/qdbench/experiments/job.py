"""A run to carry out, how, and how it ended; whether a folder's run may go on, and whether it is done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.correcting import corrected_after, require_continuable
from qdbench.experiments.environment import versions
from qdbench.experiments.evaluators import Evaluators
from qdbench.experiments.plan import Plan
from qdbench.store.folder import RunFolder
from qdbench.store.loading import StoredRun
from qdbench.store.npz import require_intact
from qdbench.store.plain import differences
from qdbench.store.record import Determinants, RunRecord, Target, Totals
from qdbench.tasks.contract import score_interval

if TYPE_CHECKING:
    from qdbench.experiments.launchers import Launcher

ELSEWHERE: Final = "in progress elsewhere"
"""The status of a run that another process is making."""


class StartedElsewhere(InvalidInput):
    """A run was started on another CPU or with other versions."""


@dataclass(frozen=True)
class Job:
    """A run to carry out: what, where, how far."""

    plan: Plan
    path: Path
    target: Target


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: Literal["finished", "skipped", "stopped", "failed", "not begun", "in progress elsewhere"]
    folder: Path
    totals: Totals
    reason: str = ""
    error: BaseException | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run is carried out; nothing here changes its results, only its times."""

    evaluators: Evaluators
    jobs: int = 1
    """Runs at a time."""
    launcher: Launcher | None = None
    """Carries out the runs; None: this process, or several of this machine."""
    checkpoint_every: float = 30.0
    """Seconds between checkpoints, at least; longer where one takes long."""
    elsewhere: bool = False
    """Continue a run that began on another CPU or with other versions."""
    changed_code: bool = False
    """Continue a run whose algorithm's code has changed since."""


def check_job(job: Job, settings: Settings) -> RunRecord | None:
    """Return the record of the run in a job's folder, if there is one and this job may continue it."""
    plan, target, folder = job.plan, job.target, RunFolder(job.path)
    record = folder.read_record()
    if record is None:
        if folder.corrected_path.exists():
            raise InvalidInput(
                f"{folder.corrected_path} belongs to no run in this folder; move or delete it, then start "
                "again"
            )
        return None
    last, here = record.environments[-1].versions, versions()
    wanted = plan.determinants()
    recorded = record.determinants
    if last.mujoco != here.mujoco:  # the fingerprint differs for that reason alone
        recorded = _with_fingerprint(recorded, wanted.task.fingerprint)
    others = differences(recorded, wanted)
    if others:
        raise InvalidInput(
            f"{folder.path} holds another run ({'; '.join(others)}); give --name to use another folder"
        )
    if target.corrections.points:
        require_continuable(folder, plan, target.corrections.reevaluations)
    if is_done(record, job):
        return record
    if target.evaluations is not None and record.totals.previous_evaluations >= target.evaluations:
        raise InvalidInput(
            f"{folder.path} has made {record.totals.evaluations:,} evaluations already, more than "
            f"{target.evaluations:,}; give a larger --evaluations"
        )
    if record.environments[-1].source != plan.source and not settings.changed_code:
        raise InvalidInput(
            f"{folder.path} was made with other code of {plan.algorithm}: the file that defines it has "
            "changed. Give --changed-code to go on anyway, or --name to use another folder"
        )
    changed = differences(last, here)
    if changed and not settings.elsewhere:
        raise StartedElsewhere(
            f"{folder.path} was started on another CPU or with other versions ({'; '.join(changed)}); "
            "resuming may not reproduce it exactly. Give --elsewhere to resume anyway"
        )
    return record


def _with_fingerprint(determinants: Determinants, fingerprint: str) -> Determinants:
    return replace(determinants, task=replace(determinants.task, fingerprint=fingerprint))


def is_done(record: RunRecord, job: Job) -> bool:
    """Return whether nothing is left to do for a run: it is finished, and its results can be read."""
    if record.status != "finished" or not job.target.reached(record.totals):
        return False
    if other_interval(record, job.plan):
        return False
    points = job.target.corrections.points
    if points and record.totals.evaluations not in corrected_after(RunFolder(job.path)):
        return False
    run = StoredRun(job.path, record)
    try:
        run.metrics, run.archive  # noqa: B018
        require_intact(run.archive.path)
    except (QdbenchError, OSError):  # the same command makes them again
        return False
    return True


def other_interval(record: RunRecord, plan: Plan) -> str:
    """Say that a run's QD scores are on another interval than the task's; empty if they are not.

    Such a run is measured again from what its algorithm was told: nothing is simulated.
    """
    before, now = record.facts.score_interval, score_interval(plan.task)
    return "" if before == now else f"its QD scores are on the interval {before}, the task's is now {now}"
