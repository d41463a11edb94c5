"""The folder of a run, and where such folders lie.

run.json         what determined the run, where it ran, how far it came, where its time went
metrics.csv      one row per iteration
archive.npz      the elites, when the run has ended or was stopped
corrected.npz    the re-evaluations of elites, if any were made
checkpoint.npz   all that is needed to continue exactly
error.txt        why it failed, if it did

A run lies in RESULTS/TASK/VARIANT/seed-S.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from numpy.typing import NDArray

from qdbench.errors import InvalidInput
from qdbench.store.archive_file import require_same_run
from qdbench.store.files import FORMAT, damage_named, read_json, read_npz, write_json, write_npz
from qdbench.store.plain import as_json, from_json
from qdbench.store.record import Determinants, MetricsExtent, RunRecord, Totals

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Checkpoint:
    """What checkpoint.npz holds: an algorithm's state, taken apart, and the loop's numbers."""

    arrays: Arrays
    """The arrays of the state, by path."""
    rest: dict[str, Any]
    """The rest of the state, as JSON holds it."""
    totals: Totals
    metrics: MetricsExtent


class RunFolder:
    """One run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record_path = path / "run.json"
        self.metrics_path = path / "metrics.csv"
        self.archive_path = path / "archive.npz"
        self.corrected_path = path / "corrected.npz"
        self.checkpoint_path = path / "checkpoint.npz"
        self.error_path = path / "error.txt"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out; the system lets go when this one dies, however it dies."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise InvalidInput(f"{self.path} is in use by another process; wait for it or stop it") from None
        try:
            for left_over in self.path.glob(".*.*.[0-9]*"):  # by a kill in the middle of writing
                left_over.unlink()
            yield
        finally:
            lock.release()

    def read_record(self) -> RunRecord | None:
        """Return run.json, or None where there is none yet."""
        if not self.record_path.exists():
            return None
        content = read_json(self.record_path)
        with damage_named(self.record_path):
            return from_json(RunRecord, content, "the record")

    def write_record(self, record: RunRecord) -> None:
        """Replace run.json."""
        write_json(self.record_path, as_json(record))

    def write_checkpoint(self, determinants: Determinants, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint."""
        about = {"totals": as_json(checkpoint.totals), "metrics": as_json(checkpoint.metrics)}
        named = {f"state/{path}": array for path, array in checkpoint.arrays.items()}
        text = {"determinants": determinants, "about": about, "state": checkpoint.rest}
        plain = {name: json.dumps(as_json(value)) for name, value in text.items()}
        write_npz(self.checkpoint_path, {"format": FORMAT, **plain, **named})

    def read_checkpoint(self, determinants: Determinants) -> Checkpoint | None:
        """Return the checkpoint of the run with these determinants, or None where there is none."""
        if not self.checkpoint_path.exists():
            return None
        arrays = read_npz(self.checkpoint_path)
        with damage_named(self.checkpoint_path):
            require_same_run(str(arrays.pop("determinants")), determinants, any_fingerprint=True)
            about, rest = (json.loads(str(arrays.pop(name))) for name in ("about", "state"))
            state = {path.removeprefix("state/"): array for path, array in arrays.items()}
            totals, metrics = about["totals"], about["metrics"]
            return Checkpoint(state, rest, from_json(Totals, totals), from_json(MetricsExtent, metrics))

    def require_record(self) -> RunRecord:
        """Return run.json, or say that this is not the folder of a run."""
        record = self.read_record()
        if record is None:
            raise InvalidInput(f"{str(self.path)!r} is not the folder of a run: it has no run.json")
        return record


def run_path(results: Path, task: str, variant: str, seed: int) -> Path:
    """Return where a run's folder is."""
    return results / file_name(task) / file_name(variant) / f"seed-{seed}"


def results_of(path: Path) -> Path | None:
    """Return the results folder that a run lies in, if it lies deep enough."""
    return path.parents[2] if len(path.parents) > 2 else None


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the folders of runs among these and below them, seed-2 before seed-10."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            raise InvalidInput(f"{str(path)!r} is not a folder; give the folder of a run")
        here = [path] if (path / "run.json").exists() else [file.parent for file in path.rglob("run.json")]
        if not here:
            raise InvalidInput(f"{str(path)!r} holds no run: there is no run.json in it or below")
        found |= dict.fromkeys(sorted(here, key=_natural))
    return list(found)


def folders_without_record(paths: Iterable[Path]) -> list[Path]:
    """Return folders with the files of a run, but for the one that says what it is."""
    files = (
        file for path in paths for name in ("archive", "checkpoint") for file in path.rglob(f"{name}.npz")
    )
    folders = dict.fromkeys(file.parent for file in files)
    return sorted((folder for folder in folders if not (folder / "run.json").exists()), key=_natural)


def file_name(text: str) -> str:
    """Return the text if a folder can be called so."""
    if not re.fullmatch(r"[\w@.+-]+", text) or text.startswith("."):
        raise InvalidInput(f"{text!r} cannot name a folder; use letters, digits and _ . + - @")
    return text


def _natural(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]
