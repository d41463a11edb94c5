"""The folder of a run: the only place that knows what lies where.

run.json         what determined the run, where it ran, how far it came, where its time went
metrics.csv      one row per iteration
archive.npz      the elites, when the run has ended or was stopped
checkpoint.npz   all that is needed to continue to the same bits
error.txt        why it failed, if it did
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from qdbench.algorithms.contract import State
from qdbench.algorithms.state import flatten, unflatten
from qdbench.errors import DamagedFile, InvalidInput
from qdbench.experiments.files import FORMAT, damage_named, read_json, read_npz, write_json, write_npz

Row = Mapping[str, int | float]


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

    def read_record(self) -> dict[str, Any] | None:
        """Return run.json, or None where there is none yet."""
        return read_json(self.record_path) if self.record_path.exists() else None

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replace run.json."""
        write_json(self.record_path, record)

    def write_checkpoint(self, state: State, meta: Mapping[str, Any]) -> None:
        """Replace the checkpoint."""
        arrays, rest = flatten(state)
        text = json.dumps({"state": rest, **meta})
        named = {f"state/{path}": array for path, array in arrays.items()}
        write_npz(self.checkpoint_path, {"format": FORMAT, "meta": text, **named})

    def read_checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the algorithm's state and the loop's numbers, or None where there is no checkpoint."""
        if not self.checkpoint_path.exists():
            return None
        arrays = read_npz(self.checkpoint_path)
        with damage_named(self.checkpoint_path):
            meta = json.loads(str(arrays.pop("meta")))
            named = {path.removeprefix("state/"): array for path, array in arrays.items()}
            return unflatten(named, meta.pop("state")), meta

    def write_archive(self, arrays: Mapping[str, Any]) -> None:
        """Replace archive.npz."""
        write_npz(self.archive_path, {"format": FORMAT, **arrays})


class MetricsFile:
    """metrics.csv while a run writes it: appended row by row, with a running checksum."""

    def __init__(self, path: Path, columns: Sequence[str], n_bytes: int = 0, crc: int = 0) -> None:
        """Begin a file, or continue one after its first `n_bytes`, which must have this checksum."""
        self.n_bytes, self.crc = n_bytes, crc
        self._columns = tuple(columns)
        if n_bytes:
            require_metrics(path, n_bytes, crc)
            os.truncate(path, n_bytes)
        self._file: IO[bytes] = path.open("ab" if n_bytes else "wb", buffering=0)
        if not n_bytes:
            self._append(",".join(self._columns))

    def append(self, row: Row) -> None:
        """Add a row; numbers are written so that reading them gives the same bits."""
        self._append(",".join(repr(row[column]) for column in self._columns))

    def _append(self, line: str) -> None:
        data = f"{line}\n".encode()
        try:
            written = self._file.write(data)
        except OSError:
            written = -1
        if written != len(data):
            self._file.truncate(self.n_bytes)  # no half row: what is there can still be read
            raise OSError(f"could not write a row to {self._file.name}; is the disk full?")
        self.n_bytes += len(data)
        self.crc = zlib.crc32(data, self.crc)

    def sync(self) -> None:
        """Make sure that the rows are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def require_metrics(path: Path, n_bytes: int, crc: int) -> bytes:
    """Return the first bytes of metrics.csv if they are those that were written."""
    with damage_named(path), path.open("rb") as file:
        data = file.read(n_bytes)
    if len(data) != n_bytes or zlib.crc32(data) != crc:
        raise DamagedFile(f"{path} is damaged and was not used: its checksum does not fit")
    return data


def read_metrics(path: Path, data: bytes) -> dict[str, NDArray[Any]]:
    """Return the columns of metrics.csv; a last row that was cut off by a kill is left out."""
    with damage_named(path):
        whole = data[: data.rfind(b"\n") + 1].decode().splitlines()
        header, *rows = (line.split(",") for line in whole)
        if any(len(row) != len(header) for row in rows):
            raise ValueError("a row has not as many numbers as the header has names")
        columns = zip(*rows, strict=True) if rows else ((),) * len(header)
        return {name: _numbers(values) for name, values in zip(header, columns, strict=True)}


def _numbers(values: Sequence[str]) -> NDArray[Any]:
    try:
        return np.array([int(value) for value in values], np.int64)
    except ValueError:
        return np.array([float(value) for value in values], np.float64)
