"""Carry out one run: begin it, continue it, skip it, or say why not."""

from __future__ import annotations

import platform
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np

from qdbench.algorithms.contract import Algorithm, HasArchive
from qdbench.algorithms.state import flatten, unflatten
from qdbench.archives.evaluated import Evaluated
from qdbench.errors import DamagedFile, InvalidInput, QdbenchError
from qdbench.experiments.correcting import Corrector, corrected_after, require_continuable
from qdbench.experiments.environment import versions
from qdbench.experiments.evaluators import Evaluators
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.loop import Listener, Loop
from qdbench.experiments.plan import Plan
from qdbench.seeds import stream
from qdbench.store.folder import RunFolder
from qdbench.store.metrics_file import MetricsFile
from qdbench.store.plain import differences
from qdbench.store.record import (
    Determinants,
    Environment,
    MetricsExtent,
    RunRecord,
    Status,
    Target,
    Totals,
)

WARM_UP_ITERATIONS = 3


@dataclass(frozen=True)
class Job:
    """A run to carry out: what, where, how far."""

    plan: Plan
    path: Path
    target: Target


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: Literal["finished", "skipped", "stopped", "failed", "not begun"]
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
    checkpoint_every: float = 30.0
    """Seconds between checkpoints, at least; longer where one takes long."""
    elsewhere: bool = False
    """Continue a run that began on another CPU or with other versions."""


def check_job(job: Job, *, elsewhere: bool) -> RunRecord | None:
    """Return the record of the run in a job's folder, if there is one and this job may continue it."""
    plan, target, folder = job.plan, job.target, RunFolder(job.path)
    record = folder.read_record()
    if target.corrections.points:
        require_continuable(folder, plan, target.corrections.reevaluations)
    if record is None:
        if folder.corrected_path.exists():
            raise InvalidInput(f"{folder.corrected_path} is of no run here; move it away to begin one")
        return None
    last, here = record.environments[-1].versions, versions()
    wanted = plan.determinants()
    recorded = record.determinants
    if last.mujoco != here.mujoco:  # the fingerprint differs for that reason alone
        recorded = _with_fingerprint(recorded, wanted.task.fingerprint)
    others = differences(recorded, wanted)
    if others:
        raise InvalidInput(
            f"{folder.path} holds another run ({'; '.join(others)}); give --name to make one beside it"
        )
    if is_done(record, job):
        return record
    if target.evaluations is not None and record.totals.previous_evaluations >= target.evaluations:
        raise InvalidInput(
            f"{folder.path} has made {record.totals.evaluations:,} evaluations already, more than "
            f"{target.evaluations:,}; give a larger --evaluations"
        )
    changed = differences(last, here)
    if changed and not elsewhere:
        raise InvalidInput(
            f"{folder.path} was started on another machine or with other versions ({'; '.join(changed)}); "
            "resuming may not reproduce it exactly. Give --elsewhere to resume anyway"
        )
    return record


def _with_fingerprint(determinants: Determinants, fingerprint: str) -> Determinants:
    return replace(determinants, task=replace(determinants.task, fingerprint=fingerprint))


def is_done(record: RunRecord, job: Job) -> bool:
    """Return whether nothing is left to do for a run."""
    if record.status != "finished" or not job.target.reached(record.totals):
        return False
    points = job.target.corrections.points
    return not points or record.totals.evaluations in corrected_after(RunFolder(job.path))


def execute(job: Job, settings: Settings, interrupt: Interrupt, listener: Listener) -> Outcome:
    """Carry out one run in its folder; whatever goes wrong, its last good state stays."""
    folder = RunFolder(job.path)
    totals = Totals()
    try:
        with folder.locked():
            record = check_job(job, elsewhere=settings.elsewhere)
            if record is not None:
                totals = record.totals
                if is_done(record, job):
                    return Outcome("skipped", folder.path, totals)
            with interrupt.allowed():  # setting up can take a while
                run = _Run(job, folder, settings, record)
            totals = run.totals
            return run.go(interrupt, listener)
    except Interrupted:
        return Outcome("stopped", folder.path, totals)
    except (Exception, SystemExit) as error:  # of a user's task or algorithm too: the other runs go on
        return _failure(error, folder, totals)


def _failure(error: BaseException, folder: RunFolder, totals: Totals) -> Outcome:
    reason = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, QdbenchError | OSError):
        reason = f"{type(error).__name__}: {reason}; see {folder.error_path}"
        with suppress(OSError):
            folder.error_path.write_text(traceback.format_exc(), encoding="utf-8")
    return Outcome("failed", folder.path, totals, reason, error)


def warm_up(plan: Plan) -> float:
    """Let an algorithm that compiles code when first used do so on a tiny copy; return the seconds."""
    start = time.perf_counter()
    algorithm = plan.small()
    if not getattr(algorithm, "compiles", False):
        return 0.0
    rng = stream(0, "warm-up")
    bounds = np.array(plan.task.descriptor_bounds)
    for iteration in range(WARM_UP_ITERATIONS):
        solutions = algorithm.ask()
        n = len(solutions)
        numbers = np.arange(iteration * n, (iteration + 1) * n)[:, None]
        descriptors = rng.uniform(bounds[:, 0], bounds[:, 1], (n, len(bounds)))
        algorithm.tell(Evaluated(solutions, rng.random(n), descriptors, numbers, numbers.astype(np.uint64)))
    return time.perf_counter() - start


class _Run:
    """One run between its start or continuation and its end."""

    def __init__(self, job: Job, folder: RunFolder, settings: Settings, record: RunRecord | None) -> None:
        self._job, self._folder, self._settings = job, folder, settings
        plan, wanted = job.plan, job.target.corrections
        warming = warm_up(plan)
        start = time.perf_counter()
        algorithm = plan.build()
        flatten(algorithm.state())  # what cannot be saved is found now, not at the first checkpoint
        self.totals, metrics = self._continued(algorithm, record)
        evaluate = settings.evaluators(plan.task)
        self._loop = Loop(plan, algorithm, self.totals, evaluate)
        self.totals.setup_seconds += time.perf_counter() - start
        self.totals.warm_up_seconds += warming
        self._record = self._begun(algorithm, record)
        self._corrector = (
            Corrector(plan, folder, self._loop.geometry, wanted.reevaluations, evaluate)
            if wanted.points
            else None
        )
        self._metrics = MetricsFile(folder.metrics_path, metrics)

    def _begun(self, algorithm: Algorithm, record: RunRecord | None) -> RunRecord:
        plan, settings, determinants = self._job.plan, self._settings, self._job.plan.determinants()
        here = Environment(
            **vars(versions()),
            packages={name: version(name) for name in getattr(algorithm, "packages", ())},
            host=platform.node(),
            workers=settings.evaluators.workers,
            jobs=settings.jobs,
        )
        before = record.environments if record else ()
        return RunRecord(
            **vars(determinants),
            name=plan.name,
            facts=plan.facts(),
            own_archive=isinstance(algorithm, HasArchive),
            environments=(*before, here) if before[-1:] != (here,) else before,
            begun=record.begun if record else _now(),
            updated=_now(),
            status="running",
            target=self._job.target,
            totals=self.totals,
        )

    def _continued(self, algorithm: Algorithm, record: RunRecord | None) -> tuple[Totals, MetricsExtent]:
        """Restore the algorithm from the checkpoint, if there is one; return the loop's numbers."""
        folder = self._folder
        if record is None and folder.checkpoint_path.exists():
            raise DamagedFile(f"{folder.checkpoint_path} has no run.json beside it, so it was not used")
        saved = None if record is None else folder.read_checkpoint(record.determinants)
        if saved is None:
            if record is not None and record.status == "finished":
                raise InvalidInput(f"{folder.path} has no checkpoint, so it cannot be extended")
            return Totals(), MetricsExtent()
        algorithm.restore(unflatten(saved.arrays, saved.rest))
        return saved.totals, saved.metrics

    def go(self, interrupt: Interrupt, listener: Listener) -> Outcome:
        """Iterate; leave archive, checkpoint and record behind, in this order."""
        folder, loop = self._folder, self._loop
        try:
            self._write_record("running")
            done = loop.run(
                self._job.target,
                folder,
                self._metrics,
                interrupt,
                checkpoint_every=self._settings.checkpoint_every,
                listener=listener,
                on_checkpoint=lambda: self._write_record("running"),
                corrector=self._corrector,
            )
            loop.checkpoint(folder, self._metrics)
            loop.write_archive(folder)
            self._write_record("finished" if done else "stopped")
            folder.error_path.unlink(missing_ok=True)
        except (Exception, SystemExit) as error:
            outcome = _failure(error, folder, self.totals)
            with suppress(OSError):  # unless that is why it failed
                self._write_record("failed", outcome.reason)
            return outcome
        finally:
            self._metrics.close()
        return Outcome("finished" if done else "stopped", folder.path, self.totals)

    def _write_record(self, status: Status, reason: str = "") -> None:
        written = self._metrics.written
        self._folder.write_record(
            replace(self._record, status=status, reason=reason, updated=_now(), metrics=written)
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
