"""The folder of a run, and where such folders lie.

run.json         what determined the run, where it ran, how far it came, where its time went
metrics.csv      one row per iteration
archive.npz      the elites, when the run has ended or was stopped
corrected.npz    the re-evaluations of elites, if any were made
told.log         what the algorithm was told: enough to continue exactly
checkpoint.npz   how far all of it belongs together; an algorithm's state, where it can save it
error.txt        why it failed, if it did

A run lies in RESULTS/TASK/VARIANT/seed-S.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qdbench.errors import InvalidInput
from qdbench.store.archive_file import require_same_run
from qdbench.store.files import FORMAT, damage_named, read_json, write_json, write_npz
from qdbench.store.locks import locked
from qdbench.store.npz import Arrays, compact, json_value, read_npz, text, unsigned
from qdbench.store.plain import as_json, from_json
from qdbench.store.record import Determinants, MetricsExtent, RunRecord, Totals, file_name
from qdbench.store.sound import require_sound, require_sound_extent, require_sound_totals

REPLACED = ("run.json", "archive.npz", "corrected.npz", "checkpoint.npz", "error.txt")
"""The files that are written beside and renamed over."""
GROWING = ("told.log", "metrics.csv")
"""The files that are appended to; a copy of them is renamed over, too."""
_LEFT_OVER = re.compile(rf"\.({'|'.join(map(re.escape, (*REPLACED, *GROWING)))})\.\d+")


CHECKPOINT, STATE = ("determinants", "about", "state", "steps"), re.compile("^state/")


@dataclass(frozen=True)
class _About:
    """The loop's numbers."""

    totals: Totals
    metrics: MetricsExtent
    told_bytes: int


@dataclass(frozen=True)
class Checkpoint:
    """What checkpoint.npz holds: the loop's numbers, and the state of an algorithm that saves it."""

    totals: Totals
    metrics: MetricsExtent
    told_bytes: int
    """How much of told.log belongs to it."""
    arrays: Arrays
    """The arrays of the state, by path."""
    rest: dict[str, Any] | None
    """The rest of the state, as JSON holds it; None of an algorithm that has to be told again."""
    steps: NDArray[Any]
    """Control steps of every evaluation so far; empty if the algorithm has to be told again."""


class RunFolder:
    """One run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record_path = path / "run.json"
        self.metrics_path = path / "metrics.csv"
        self.archive_path = path / "archive.npz"
        self.corrected_path = path / "corrected.npz"
        self.told_path = path / "told.log"
        self.checkpoint_path = path / "checkpoint.npz"
        self.error_path = path / "error.txt"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out, and remove what a kill in the middle of writing left behind."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            for file in os.listdir(self.path):
                if _LEFT_OVER.fullmatch(file) and not (self.path / file).is_dir():
                    (self.path / file).unlink()
            yield

    def read_record(self) -> RunRecord | None:
        """Return run.json, or None where there is none yet."""
        if not self.record_path.exists():
            return None
        content = read_json(self.record_path)
        with damage_named(self.record_path):
            record = from_json(RunRecord, content, "the record")
            require_sound(record)
            return record

    def write_record(self, record: RunRecord) -> None:
        """Replace run.json; one that could not be read again is refused."""
        require_sound(record)
        write_json(self.record_path, as_json(record))

    def write_checkpoint(self, determinants: Determinants, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint."""
        about = _About(checkpoint.totals, checkpoint.metrics, checkpoint.told_bytes)
        named = {f"state/{path}": array for path, array in checkpoint.arrays.items()}
        text = {"determinants": determinants, "about": about, "state": checkpoint.rest}
        plain = {name: json.dumps(as_json(value)) for name, value in text.items()}
        steps = compact(checkpoint.steps)
        write_npz(self.checkpoint_path, {"format": FORMAT, **plain, "steps": steps, **named})

    def read_checkpoint(self, determinants: Determinants) -> Checkpoint | None:
        """Return the checkpoint of the run with these determinants, or None where there is none."""
        if not self.checkpoint_path.exists():
            return None
        arrays = read_npz(self.checkpoint_path)
        with damage_named(self.checkpoint_path):
            require_same_run(text(arrays, "determinants"), determinants, any_fingerprint=True)
            rest = json_value(arrays, "state")
            state = {name: array for name, array in arrays.items() if name not in CHECKPOINT}
            if not (rest is None or isinstance(rest, dict)) or not all(map(STATE.match, state)):
                raise ValueError("it holds no state")
            about = from_json(_About, json_value(arrays, "about"), "the checkpoint")
            require_sound_totals(about.totals)
            require_sound_extent(about.metrics)
            named = {STATE.sub("", name): array for name, array in state.items()}
            steps = unsigned(arrays, "steps", (0 if rest is None else about.totals.evaluations,))
            return Checkpoint(about.totals, about.metrics, about.told_bytes, named, rest, steps)

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
        here = [path] if (path / "run.json").exists() else _below(path, "run.json")
        if not here:
            raise InvalidInput(f"{str(path)!r} holds no run: there is no run.json in it or below")
        found |= dict.fromkeys(sorted(here, key=_natural))
    return list({os.path.realpath(path): path for path in reversed(found)}.values())[::-1]


def _below(path: Path, *names: str) -> list[Path]:
    """Return the folders below that have one of these files, also behind links, each once."""
    found, seen, waiting = [], set(), [path]
    while waiting:
        folder = waiting.pop()
        if (real := os.path.realpath(folder)) in seen:
            continue
        seen.add(real)
        try:
            inside = list(os.scandir(folder))
        except OSError:  # one that may not be read
            continue
        waiting = [folder / e.name for e in inside if e.is_symlink() and e.is_dir()] + waiting
        waiting += [folder / e.name for e in inside if e.is_dir(follow_symlinks=False)]
        if any(entry.name in names for entry in inside):
            found.append(folder)
    return found


def folders_without_record(paths: Iterable[Path]) -> list[Path]:
    """Return folders with the files of a run, but for the one that says what it is."""
    folders = dict.fromkeys(f for path in paths for f in _below(path, "archive.npz", "checkpoint.npz"))
    return sorted((folder for folder in folders if not (folder / "run.json").exists()), key=_natural)


def _natural(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]
