"""metrics.csv: one row per iteration, appended while a run goes on, with a running checksum."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import DamagedFile
from qdbench.store.files import damage_named
from qdbench.store.record import MetricsExtent

Row = Mapping[str, int | float]
Columns = dict[str, NDArray[Any]]

COLUMNS = (
    "iteration", "evaluations", "steps", "seconds", "simulation_seconds", "algorithm_seconds",
    "coverage", "qd_score", "max_fitness", "sum_fitness", "min_fitness",
    "grid_coverage", "grid_qd_score", "grid_max_fitness", "grid_sum_fitness", "grid_min_fitness",
    "lowest_fitness", "highest_fitness", "invalid",
)  # fmt: skip


class MetricsFile:
    """metrics.csv while a run writes it."""

    def __init__(self, path: Path, written: MetricsExtent) -> None:
        """Begin a file, or continue one after what is known to be `written`, which must have its checksum."""
        self._n_bytes, self._crc32 = written.n_bytes, written.crc32
        if written.n_bytes:
            require_written(path, written)
            os.truncate(path, written.n_bytes)
        self._file: IO[bytes] = path.open("ab" if written.n_bytes else "wb", buffering=0)
        if not written.n_bytes:
            self._append(",".join(COLUMNS))

    @property
    def written(self) -> MetricsExtent:
        """How much there is."""
        return MetricsExtent(self._n_bytes, self._crc32)

    def append(self, row: Row) -> None:
        """Add a row; numbers are written so that reading them gives exactly the same numbers."""
        self._append(",".join(repr(row[column]) for column in COLUMNS))

    def _append(self, line: str) -> None:
        data = f"{line}\n".encode()
        try:
            written = self._file.write(data)
        except OSError:
            written = -1
        if written != len(data):
            self._file.truncate(self._n_bytes)  # no half row: what is there can still be read
            raise OSError(f"could not write a row to {self._file.name}; is the disk full?")
        self._n_bytes += len(data)
        self._crc32 = zlib.crc32(data, self._crc32)

    def sync(self) -> None:
        """Make sure that the rows are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def require_written(path: Path, written: MetricsExtent) -> bytes:
    """Return the first bytes of metrics.csv if they are those that were written."""
    with damage_named(path), path.open("rb") as file:
        data = file.read(written.n_bytes)
    if len(data) != written.n_bytes or zlib.crc32(data) != written.crc32:
        raise DamagedFile(f"{path} is damaged and was not used: its checksum does not fit")
    return data


def read_metrics(path: Path, written: MetricsExtent, *, growing: bool) -> Columns:
    """Return the columns of metrics.csv; of a growing file also the rows since the last checkpoint."""
    data = require_written(path, written)
    if growing:
        data = path.read_bytes()
    elif path.stat().st_size != written.n_bytes:
        raise DamagedFile(f"{path} is damaged and was not used: it is longer than what was written")
    with damage_named(path):
        whole = data[: data.rfind(b"\n") + 1].decode().splitlines()  # without a row that a kill cut off
        header, *rows = (line.split(",") for line in whole)
        if any(len(row) != len(header) for row in rows):
            raise ValueError("a row has not as many numbers as the header has names")
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise ValueError(f"it has no column {missing[0]!r}")
        columns = zip(*rows, strict=True) if rows else ((),) * len(header)
        return {name: _numbers(values) for name, values in zip(header, columns, strict=True)}


def _numbers(values: Sequence[str]) -> NDArray[Any]:
    try:
        return np.array([int(value) for value in values], np.int64)
    except ValueError:
        return np.array([float(value) for value in values], np.float64)
