"""The folders of new runs: can they be made, and do the runs beside them have the same options?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.environment import versions
from qdbench.experiments.job import Job
from qdbench.store.folder import RunFolder
from qdbench.store.plain import differences
from qdbench.store.record import Determinants, RunRecord


def require_places(jobs: Sequence[Job]) -> None:
    """Refuse, before anything is written, folders that cannot be made or that hold another variant.

    A run that has begun keeps its place: it can always be continued.
    """
    new = [job for job in jobs if not RunFolder(job.path).record_path.exists()]
    for there in {_existing(job.path): None for job in new}:
        _require_writable(there)
    beside = {folder: _kinds_in(folder) for folder in {job.path.parent for job in new}}
    for job in new:
        for kind, mujoco in beside[job.path.parent]:
            _require_same_kind(job, kind, mujoco)


def records_in(variant: Path) -> dict[int, RunRecord]:
    """Return the runs in a variant's folder, by seed. Damaged ones are for those who read their results."""
    found = {}
    for path in variant.glob("seed-*"):
        with suppress(QdbenchError, OSError):
            record = RunFolder(path).read_record()
            if record is not None and path.name == f"seed-{record.seed}":
                found[record.seed] = record
    return found


def _existing(path: Path) -> Path:
    """Return the folder that is there already, in which others have to be made; or what is in their way."""
    return next(one for one in (path, *path.parents) if os.path.lexists(one))


def _require_writable(there: Path) -> None:
    """Try it: the rights alone do not tell, for they allow root everything."""
    try:
        with TemporaryDirectory(prefix=".qdbench-", dir=there):
            return
    except OSError as error:
        why = error.strerror if there.is_dir() else "it is not a folder"
        raise InvalidInput(f"cannot write into {str(there)!r}: {why}; give another --out") from None


def _kinds_in(variant: Path) -> list[tuple[dict[str, Any], str]]:
    """Return what the runs of a folder are runs of, with which MuJoCo: each once, mostly a single one."""
    found: list[tuple[dict[str, Any], str]] = []
    for record in records_in(variant).values():
        one = _kind(record), record.environments[-1].mujoco
        found += [] if one in found else [one]
    return found


def _kind(run: Determinants) -> dict[str, Any]:
    """Return what all replications of a variant have in common, called as a message calls it."""
    task = {f"task {name}": value for name, value in run.task.options.items()}
    algorithm = {"the algorithm": run.algorithm.name, **run.algorithm.options}
    return {**algorithm, **task, "task fingerprint": run.task.fingerprint}


def _require_same_kind(job: Job, kind: dict[str, Any], mujoco: str) -> None:
    wanted = _kind(job.plan.determinants())
    if mujoco != versions().mujoco:  # the fingerprint differs for that reason alone
        wanted["task fingerprint"] = kind["task fingerprint"]
    others = differences(kind, wanted)
    if others:
        raise InvalidInput(
            f"{job.path.parent} has runs with {'; '.join(others)}; give --name to use another folder"
        )
