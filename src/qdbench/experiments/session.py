"""Carry out one run: begin it, continue it, skip it, or say why not."""

from __future__ import annotations

import platform
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from qdbench.algorithms.contract import Algorithm
from qdbench.algorithms.state import flatten
from qdbench.errors import DamagedFile, InvalidInput, QdbenchError
from qdbench.experiments.corrections import Corrector, moments_corrected, require_continuable
from qdbench.experiments.environment import environment
from qdbench.experiments.files import damage_named
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.loop import COLUMNS, Listener, Loop, Target, Totals
from qdbench.experiments.plan import Plan, differences
from qdbench.experiments.store import MetricsFile, RunFolder

Status = Literal["finished", "skipped", "stopped", "failed", "not begun"]


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: Status
    folder: Path
    totals: Totals
    reason: str = ""
    error: BaseException | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run is carried out; nothing here changes its results, only its times."""

    workers: int
    jobs: int = 1
    checkpoint_every: float = 30.0
    """Seconds between checkpoints, at least; longer where one takes long."""
    elsewhere: bool = False
    """Continue a run that began on another CPU or with other versions."""


def check_plan(plan: Plan, folder: RunFolder, target: Target, *, elsewhere: bool) -> dict[str, Any] | None:
    """Return the record of the run in a folder, if there is one and this plan may continue it."""
    record = folder.read_record()
    if target.corrections.moments:
        require_continuable(folder, plan, target.corrections.reevaluations)
    if record is None:
        if folder.corrected_path.exists():
            raise InvalidInput(f"{folder.corrected_path} is of no run here; move it away to begin one")
        return None
    here = environment()
    last = record["environments"][-1]
    changed = differences({key: last.get(key) for key in here}, here)
    wanted = plan.determinants()
    recorded = {key: record[key] for key in wanted}
    if last.get("mujoco") != here["mujoco"]:  # the fingerprint differs for that reason alone
        recorded["task"] = {**recorded["task"], "fingerprint": wanted["task"]["fingerprint"]}
    others = differences(recorded, wanted)
    if others:
        raise InvalidInput(
            f"{folder.path} holds another run ({'; '.join(others)}); give --name to make one beside it"
        )
    if is_done(record, target, folder):
        return record
    before = record["totals"]["previous_evaluations"]
    if target.evaluations is not None and before >= target.evaluations:
        raise InvalidInput(
            f"{folder.path} has made {record['totals']['evaluations']:,} evaluations already, more than "
            f"{target.evaluations:,}; give a larger --evaluations"
        )
    if changed and not elsewhere:
        raise InvalidInput(
            f"{folder.path} was begun elsewhere ({'; '.join(changed)}): continued here, its bits may differ "
            "from an uninterrupted run; give --elsewhere to continue all the same"
        )
    return record


def is_done(record: Mapping[str, Any], target: Target, folder: RunFolder) -> bool:
    """Return whether nothing is left to do for a run."""
    totals = Totals.from_json(record["totals"])
    if record["status"] != "finished" or not target.reached(totals):
        return False
    return not target.corrections.moments or totals.evaluations in moments_corrected(folder)


def execute(
    plan: Plan, path: Path, target: Target, settings: Settings, interrupt: Interrupt, listener: Listener
) -> Outcome:
    """Carry out one run in its folder; whatever goes wrong, its last good state stays."""
    folder = RunFolder(path)
    totals = Totals()
    try:
        with folder.locked():
            record = check_plan(plan, folder, target, elsewhere=settings.elsewhere)
            if record is not None:
                totals = Totals.from_json(record["totals"])
                if is_done(record, target, folder):
                    return Outcome("skipped", folder.path, totals)
            with interrupt.allowed():  # setting up can take a while
                run = _Session(plan, folder, target, settings, record)
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


def _plug_ins() -> dict[str, str]:
    """Return the version of pyribs where the algorithm is one of its."""
    return {"ribs": version("ribs")} if "ribs" in sys.modules else {}


class _Session:
    """One run between its begin or continuation and its end."""

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        target: Target,
        settings: Settings,
        record: Mapping[str, Any] | None,
    ) -> None:
        self._plan, self._folder, self._target, self._settings = plan, folder, target, settings
        start = time.perf_counter()
        algorithm = plan.build()
        flatten(algorithm.state())  # what cannot be saved is found now, not at the first checkpoint
        self.totals, metrics = self._continued(algorithm, record)
        self._loop = Loop(plan, algorithm, self.totals, settings.workers)
        self.totals.setup_seconds += time.perf_counter() - start
        now = datetime.now(UTC).isoformat(timespec="seconds")
        how = {"host": platform.node(), "workers": settings.workers, "jobs": settings.jobs}
        here = {**environment(), **_plug_ins(), **how}
        before = list(record["environments"]) if record else []
        self._record: dict[str, Any] = {
            **plan.determinants(),
            "name": plan.name,
            "environments": [*before, here] if before[-1:] != [here] else before,
            "begun": record["begun"] if record else now,
        }
        wanted, container = target.corrections, self._loop.container
        self._corrector = (
            Corrector(plan, folder, container, wanted.reevaluations, settings.workers)
            if wanted.moments
            else None
        )
        self._metrics = MetricsFile(folder.metrics_path, COLUMNS, *metrics)

    def _continued(
        self, algorithm: Algorithm, record: Mapping[str, Any] | None
    ) -> tuple[Totals, tuple[int, int]]:
        """Restore the algorithm from the checkpoint, if there is one; return the loop's numbers."""
        saved = self._folder.read_checkpoint()
        if saved is None:
            if record is not None and record["status"] == "finished":
                raise InvalidInput(f"{self._folder.path} has no checkpoint, so it cannot be extended")
            return Totals(), (0, 0)
        state, meta = saved
        path = self._folder.checkpoint_path
        if record is None:
            raise DamagedFile(f"{path} has no run.json beside it, so it was not used")
        with damage_named(path):
            recorded = {key: record[key] for key in meta["determinants"]}
            # the fingerprint holds MuJoCo's version, which a run continued elsewhere may change
            recorded["task"] = {**record["task"], "fingerprint": meta["determinants"]["task"]["fingerprint"]}
            others = differences(meta["determinants"], recorded)
            if others:
                raise ValueError(f"it is of another run ({'; '.join(others)})")
            totals = Totals.from_json(meta["totals"])
            written = int(meta["metrics"]["bytes"]), int(meta["metrics"]["crc32"])
        algorithm.restore(state)
        return totals, written

    def go(self, interrupt: Interrupt, listener: Listener) -> Outcome:
        """Iterate; leave archive, checkpoint and record behind, in this order."""
        folder, loop = self._folder, self._loop
        status: Status = "failed"
        try:
            self._write_record("running")
            done = loop.run(
                self._target,
                folder,
                self._metrics,
                interrupt,
                checkpoint_every=self._settings.checkpoint_every,
                listener=listener,
                on_checkpoint=lambda: self._write_record("running"),
                corrector=self._corrector,
            )
            loop.checkpoint(folder, self._metrics)
            folder.write_archive({**self._provenance(), **loop.archive_arrays()})
            status = "finished" if done else "stopped"
            self._write_record(status)
            folder.error_path.unlink(missing_ok=True)
        except (Exception, SystemExit) as error:
            outcome = _failure(error, folder, self.totals)
            self._try_to_record(outcome.reason)
            return outcome
        finally:
            self._metrics.close()
        return Outcome(status, folder.path, self.totals)

    def _try_to_record(self, reason: str) -> None:
        """Say in run.json why the run failed, unless that is why it failed."""
        with suppress(OSError):
            self._write_record("failed", reason)

    def _write_record(self, status: str, reason: str = "") -> None:
        totals = self.totals
        self._folder.write_record(
            {
                **self._record,
                "status": status,
                "reason": reason,
                "updated": datetime.now(UTC).isoformat(timespec="seconds"),
                "target": {"evaluations": self._target.evaluations, "seconds": self._target.seconds},
                "corrections": asdict(self._target.corrections),
                "totals": totals.to_json(),
                "rest_seconds": totals.seconds - totals.simulation_seconds - totals.algorithm_seconds,
                "metrics": {"bytes": self._metrics.n_bytes, "crc32": self._metrics.crc},
            }
        )

    def _provenance(self) -> dict[str, Any]:
        plan = self._plan
        return {
            "task": plan.task.name,
            "fingerprint": plan.task.fingerprint,
            "algorithm": plan.algorithm,
            "seed": plan.seed,
            "fitness_bounds": plan.task.fitness_bounds,
            "grid_shape": plan.task.cells,
            "n_evaluations": self.totals.evaluations,
        }
