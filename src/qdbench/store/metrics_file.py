"""metrics.csv: one row per iteration, appended while a run goes on, with a running checksum."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from qdbench.store.files import damage_named, open_to_read
from qdbench.store.record import MetricsExtent

Row = Mapping[str, int | float]
Columns = dict[str, NDArray[Any]]

COLUMNS = (
    "iteration", "evaluations", "steps", "seconds", "simulation_seconds", "algorithm_seconds",
    "coverage", "qd_score", "max_fitness", "sum_fitness", "min_fitness", "alive_coverage", "alive_qd_score",
    "grid_coverage", "grid_qd_score", "grid_max_fitness", "grid_sum_fitness", "grid_min_fitness",
    "grid_alive_coverage", "grid_alive_qd_score",
    "lowest_fitness", "highest_fitness", "invalid",
)  # fmt: skip
COUNTS = ("iteration", "evaluations", "steps", "coverage", "grid_coverage", "invalid")
SECONDS = ("seconds", "simulation_seconds", "algorithm_seconds")


class MetricsFile:
    """metrics.csv while a run writes it."""

    def __init__(self, path: Path, written: MetricsExtent) -> None:
        """Begin a file, or continue one after what is known to be `written`, which must have its checksum."""
        self._n_bytes, self._crc32 = written.n_bytes, written.crc32
        if written.n_bytes:
            require_written(path, written)
            os.truncate(path, written.n_bytes)
        else:
            path.unlink(missing_ok=True)  # it may be a link to somewhere else
        self._file: IO[bytes] = path.open("ab" if written.n_bytes else "xb", buffering=0)
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
    return _data(path, written)[: written.n_bytes]


def _data(path: Path, written: MetricsExtent) -> bytes:
    with damage_named(path), open_to_read(path) as file:
        if os.fstat(file.fileno()).st_size < written.n_bytes:
            raise ValueError("it is cut short")
        data = file.read()
        if zlib.crc32(memoryview(data)[: written.n_bytes]) != written.crc32:
            raise ValueError("its checksum does not fit")
    return data


def read_metrics(path: Path, written: MetricsExtent, *, growing: bool) -> Columns:
    """Return the columns of metrics.csv; of a growing file also the rows since the last checkpoint."""
    data = _data(path, written)
    with damage_named(path):
        if not growing and len(data) != written.n_bytes:
            raise ValueError("it is longer than what was written")
        data = data[: data.rfind(b"\n") + 1]  # without a row that a kill cut off
        if data.count(b"\n") * 2 * len(COLUMNS) > len(data) + 2 * len(COLUMNS):
            raise ValueError("a row has not as many numbers as the header has names")
        header, *rows = (line.split(",") for line in data.decode("ascii").removesuffix("\n").split("\n"))
        if header != list(COLUMNS):
            raise ValueError("its header is not that of metrics.csv")
        if any(len(row) != len(header) for row in rows):
            raise ValueError("a row has not as many numbers as the header has names")
        columns = zip(*rows, strict=True) if rows else ((),) * len(header)
        found = {name: _numbers(name, values) for name, values in zip(header, columns, strict=True)}
        _require_progress(found)
        return found


def _numbers(name: str, values: Sequence[str]) -> NDArray[Any]:
    if name in COUNTS:
        return np.array([int(value) for value in values], np.int64)
    return np.array([float(value) for value in values], np.float64)


def _require_progress(columns: Columns) -> None:
    """Refuse rows that no run can have: counts start above 0 and never go down."""
    n = len(columns["iteration"])
    if not np.array_equal(columns["iteration"], np.arange(1, n + 1)):
        raise ValueError("its iterations are not numbered 1, 2, 3 and so on")
    if not (np.diff(columns["evaluations"], prepend=0) > 0).all():
        raise ValueError("its evaluations do not go up")
    for name in ("steps", "invalid", *SECONDS):
        if not (np.diff(columns[name], prepend=0) >= 0).all():
            raise ValueError(f"its {name.replace('_', ' ')} go down")
    if n and min(columns["coverage"].min(), columns["grid_coverage"].min()) < 0:
        raise ValueError("its coverage is below 0")
