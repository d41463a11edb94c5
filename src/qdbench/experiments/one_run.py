"""Carry out one run: begin it, continue it, skip it, or say why not."""

from __future__ import annotations

import platform
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from qdbench.algorithms.contract import Algorithm, HasArchive, SavesState
from qdbench.algorithms.state import flatten, unflatten
from qdbench.archives.evaluated import Evaluated
from qdbench.errors import DamagedFile, QdbenchError
from qdbench.experiments.correcting import Corrector
from qdbench.experiments.environment import versions
from qdbench.experiments.evaluators import nodes_of
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.job import (
    ELSEWHERE,
    Job,
    Outcome,
    Settings,
    check_job,
    is_done,
    other_interval,
)
from qdbench.experiments.loop import Listener, Loop
from qdbench.experiments.plan import Plan
from qdbench.experiments.steps_made import StepsMade
from qdbench.experiments.true_elites import require_known_elites
from qdbench.seeds import stream
from qdbench.store.files import plain_text, write_text
from qdbench.store.folder import Checkpoint, RunFolder
from qdbench.store.locks import InUse
from qdbench.store.metrics_file import MetricsFile, require_written
from qdbench.store.record import (
    Environment,
    MetricsExtent,
    RunRecord,
    Status,
    Totals,
)
from qdbench.store.told_log import ToldLog

if TYPE_CHECKING:
    pass

WARM_UP_ITERATIONS = 3


def execute(job: Job, settings: Settings, interrupt: Interrupt, listener: Listener) -> Outcome:
    """Carry out one run in its folder; whatever goes wrong, its last good state stays."""
    folder = RunFolder(job.path)
    totals = Totals()
    try:
        with folder.locked():
            record = check_job(job, settings)
            if record is not None:
                totals = record.totals
                if is_done(record, job):
                    return Outcome("skipped", folder.path, totals)
            warming = warm_up(job.plan, interrupt)
            with interrupt.allowed():  # setting up can take a while
                run = _Run(job, folder, settings, record)
            run.totals.warm_up_seconds += warming
            totals = run.totals
            return run.go(interrupt, listener)
    except Interrupted:
        return Outcome("stopped", folder.path, totals)
    except InUse as error:
        return Outcome(ELSEWHERE, folder.path, totals, str(error), error)
    except (Exception, SystemExit) as error:  # of a user's task or algorithm too: the other runs go on
        return failure(error, folder, totals)


def failure(error: BaseException, folder: RunFolder, totals: Totals) -> Outcome:
    """Return the outcome of a run that an error ended; what is not ours is described in error.txt."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, QdbenchError | OSError):
        reason = f"{type(error).__name__}: {reason}; see {folder.error_path}"
        with suppress(OSError):
            write_text(folder.error_path, traceback.format_exc())
    return Outcome("failed", folder.path, totals, reason, error)


def warm_up(plan: Plan, interrupt: Interrupt) -> float:
    """Let an algorithm that compiles code when first used do so on a tiny copy; return the seconds.

    A compiler must not be left in the middle: an interruption takes effect between two calls.
    """
    start = time.perf_counter()
    algorithm = plan.small()
    if not getattr(algorithm, "compiles", False):
        return 0.0
    rng = stream(0, "warm-up")
    bounds = np.array(plan.task.descriptor_bounds)
    for iteration in range(WARM_UP_ITERATIONS):
        interrupt.check()
        solutions = algorithm.ask()
        interrupt.check()
        n = len(solutions)
        numbers = np.arange(iteration * n, (iteration + 1) * n)[:, None]
        descriptors = rng.uniform(bounds[:, 0], bounds[:, 1], (n, len(bounds)))
        algorithm.tell(Evaluated(solutions, rng.random(n), descriptors, numbers, numbers.astype(np.uint64)))
    return time.perf_counter() - start


KEPT_SECONDS = (
    "metrics_seconds", "checkpoint_seconds", "setup_seconds", "warm_up_seconds", "correction_seconds",
)  # fmt: skip
"""Times that telling an algorithm again does not bring back."""


@dataclass(frozen=True)
class _Saved:
    """Where a run goes on."""

    totals: Totals
    """Of the algorithm as it is now."""
    reached: Totals
    """Of the run before: further, if the algorithm has to be told again."""
    metrics: MetricsExtent = field(default_factory=MetricsExtent)
    measured_until: int = 0
    """How many iterations have their rows in that much of metrics.csv."""
    steps: StepsMade = field(default_factory=StepsMade)
    """Of all evaluations that the algorithm knows."""


def _only_kept(totals: Totals) -> Totals:
    """Return the totals of a run that is told again from its start."""
    return Totals(**{name: getattr(totals, name) for name in KEPT_SECONDS})


class _Run:
    """One run between its start or continuation and its end."""

    def __init__(self, job: Job, folder: RunFolder, settings: Settings, record: RunRecord | None) -> None:
        self._job, self._folder, self._settings = job, folder, settings
        start = time.perf_counter()
        self._log = ToldLog(folder.told_path, job.plan.determinants(), begin=record is None)
        try:
            self._set_up(record, start)
        except BaseException:
            self._log.close()
            raise

    def _set_up(self, record: RunRecord | None, start: float) -> None:
        plan, wanted, folder = self._job.plan, self._job.target.corrections, self._folder
        algorithm, saved = self._restored(record)
        self.totals = saved.totals
        evaluate = self._settings.evaluators(plan.task)
        self._loop = Loop(
            plan, algorithm, self.totals, self._log, evaluate,
            reached=saved.reached, steps=saved.steps, measured_until=saved.measured_until,
        )  # fmt: skip
        self.totals.setup_seconds += time.perf_counter() - start
        self._record = self._begun(algorithm, record)
        self._corrector = (
            Corrector(plan, folder, self._loop.geometry, wanted.reevaluations, evaluate)
            if wanted.points
            else None
        )
        self._metrics = MetricsFile(folder.metrics_path, saved.metrics)

    def _begun(self, algorithm: Algorithm, record: RunRecord | None) -> RunRecord:
        plan, settings, determinants = self._job.plan, self._settings, self._job.plan.determinants()
        here = Environment(
            **vars(versions()),
            packages={name: version(name) for name in getattr(algorithm, "packages", ())},
            host=platform.node(),
            workers=settings.evaluators.workers,
            jobs=settings.jobs,
            source=plan.source,
            nodes=nodes_of(settings.evaluators),
        )
        before = record.environments if record else ()
        self._n_before = len(before)
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

    def _restored(self, record: RunRecord | None) -> tuple[Algorithm, _Saved]:
        """Return the algorithm where the checkpoint left it; else at its start, to be told all again."""
        folder = self._folder
        if record is None:
            if folder.checkpoint_path.exists():
                raise DamagedFile(f"{folder.checkpoint_path} has no run.json beside it, so it was not used")
            return self._built(), _Saved(Totals(), Totals())
        known = None
        try:
            known, other = self._checkpoint(record), other_interval(record, self._job.plan)
            if known is not None and not other:
                require_written(folder.metrics_path, known.metrics)
                return self._continued(known)
            missing = f"{folder.checkpoint_path} is missing"
            lost = (other or missing) if record.totals.iteration else ""
        except (DamagedFile, FileNotFoundError) as error:
            lost = str(error)
        if lost and not self._log.reaches_back:
            raise DamagedFile(
                f"{lost}; and {folder.told_path} does not hold the run from its start, so it cannot be made "
                "again from that. Move the folder away to run it anew"
            )
        reached = max(record.totals, known.totals if known else Totals(), key=lambda one: one.iteration)
        if record.status == "failed":  # it may have failed in the middle of an iteration
            reached = known.totals if known else Totals()
        return self._built(), _Saved(_only_kept(reached), reached)

    def _checkpoint(self, record: RunRecord) -> Checkpoint | None:
        """Return the checkpoint; of a run that has ended it must be that of its end."""
        path, ended = self._folder.checkpoint_path, record.status in ("finished", "stopped")
        found, end = self._folder.read_checkpoint(record.determinants), record.totals.iteration
        if found is not None and ended and found.totals.iteration != end:
            at = found.totals.iteration
            raise DamagedFile(f"{path} was not used: it is of iteration {at:,}, the run of {end:,}")
        return found

    def _built(self) -> Algorithm:
        algorithm = self._job.plan.build()
        if isinstance(algorithm, SavesState):
            flatten(algorithm.state())  # what cannot be saved is found now, not at the first checkpoint
        return algorithm

    def _continued(self, known: Checkpoint) -> tuple[Algorithm, _Saved]:
        """Return the algorithm of a checkpoint: restored where it has a state."""
        algorithm, totals, path = self._built(), known.totals, self._folder.checkpoint_path
        if known.rest is None:  # its clock goes on, and what it did is done again
            if totals.iteration and not self._log.reaches_back:
                raise DamagedFile(f"{path} has no state of the algorithm")
            return algorithm, _Saved(_only_kept(totals), totals, known.metrics, totals.iteration)
        if not isinstance(algorithm, SavesState):
            raise DamagedFile(f"{path} was not used: the algorithm cannot restore a state")
        self._log.skip_to(known.told_bytes, totals.iteration)
        steps = StepsMade(known.steps)
        try:
            algorithm.restore(unflatten(known.arrays, known.rest))
            require_known_elites(algorithm.collection(), steps, self._job.plan, self._log)
            algorithm.ask()  # a state it cannot go on from is found here; the loop's ask returns the same
        except Exception as error:
            self._log.rewind()
            reason = plain_text(str(error)) or type(error).__name__
            raise DamagedFile(f"{path} is damaged and was not used: {reason}") from error
        return algorithm, _Saved(totals, replace(totals), known.metrics, totals.iteration, steps)

    def go(self, interrupt: Interrupt, listener: Listener) -> Outcome:
        """Iterate; leave archive, checkpoint and record behind, in this order."""
        folder, loop = self._folder, self._loop
        try:
            done = loop.run(
                self._job.target,
                folder,
                self._metrics,
                interrupt,
                checkpoint_every=self._settings.checkpoint_every,
                listener=listener,
                on_saved=lambda: self._write_record("running"),
                corrector=self._corrector,
            )
            if loop.is_behind:  # interrupted before it was back where it had been: it can begin again
                return Outcome("stopped", folder.path, self.totals)
            loop.checkpoint(folder, self._metrics)
            loop.write_archive(folder)
            self._write_record("finished" if done else "stopped")
            folder.error_path.unlink(missing_ok=True)
        except (Exception, SystemExit) as error:
            outcome = failure(error, folder, self.totals)
            if not loop.is_behind:
                with suppress(OSError):  # unless that is why it failed
                    self._write_record("failed", outcome.reason)
            return outcome
        finally:
            self._metrics.close()
            self._log.close()
        return Outcome("finished" if done else "stopped", folder.path, self.totals)

    def _note_nodes(self) -> None:
        """Write down which nodes of a cluster evaluate: at first, and whenever it is others."""
        evaluators, environments = self._settings.evaluators, self._record.environments
        now = replace(environments[-1], workers=evaluators.workers, nodes=nodes_of(evaluators))
        if not now.nodes:
            return
        if len(environments) > self._n_before and not environments[-1].nodes:  # none had started yet
            environments = environments[:-1]
        known = now in environments
        self._record = replace(self._record, environments=environments if known else (*environments, now))

    def _write_record(self, status: Status, reason: str = "") -> None:
        self._note_nodes()
        written = self._metrics.written
        self._folder.write_record(
            replace(self._record, status=status, reason=reason, updated=_now(), metrics=written)
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
