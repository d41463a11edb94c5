"""told.log: what an algorithm was told, iteration by iteration.

Asking and telling a deterministic algorithm again in the same order brings it back to the same state,
without simulating anything. The file begins with what determined the run; every iteration follows as one
block, with a checksum of its own and a checksum of the batch that the algorithm had asked for.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import LARGEST
from qdbench.errors import DamagedFile
from qdbench.policy import Parameters
from qdbench.store.archive_file import require_same_run
from qdbench.store.files import FORMAT, MOST_JSON, damage_named, require_format
from qdbench.store.plain import as_json
from qdbench.store.record import Determinants

MAGIC = b"QDTOLD"
_BEGIN = struct.Struct("<6sHI")  # magic, format, length of the determinants
_BLOCK = struct.Struct("<IIIIIddd")  # the numbers of `Told`, the shape of its arrays, bytes of a step count
_WIDTHS = (1, 2, 4, 8)
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class Told:
    """One iteration: what came out of a batch, and where the run's clock stood after it."""

    iteration: int
    """Counted from 1."""
    asked: int
    """Checksum of the solutions that the algorithm had asked for."""
    seconds: float
    """Of the whole run so far, as the next two."""
    simulation_seconds: float
    algorithm_seconds: float
    fitness: NDArray[np.float64] = field(repr=False)  #: (n,) NaN where invalid
    descriptors: NDArray[np.float64] = field(repr=False)  #: (n, dimensions)
    steps: NDArray[Any] = field(repr=False)  #: (n,) control steps made, as `compact` makes them

    def to_bytes(self) -> bytes:
        """Return the iteration as a block with its checksum."""
        n, dimensions = self.descriptors.shape
        clock = (self.seconds, self.simulation_seconds, self.algorithm_seconds)
        width = self.steps.dtype.itemsize
        head = _BLOCK.pack(self.iteration, self.asked, n, dimensions, width, *clock)
        arrays = ((self.fitness, "<f8"), (self.descriptors, "<f8"), (self.steps, f"<u{width}"))
        data = head + b"".join(array.astype(kind).tobytes() for array, kind in arrays)
        return data + _CHECKSUM.pack(zlib.crc32(data))


def _size(n: int, dimensions: int, width: int) -> int:
    """Return how many bytes the arrays of a block have."""
    if width not in _WIDTHS:
        raise ValueError("a block has impossible numbers")
    return n * (8 * (1 + dimensions) + width)


def checksum(solutions: Parameters) -> int:
    """Return the checksum of a batch of solutions."""
    return zlib.crc32(np.ascontiguousarray(solutions, "<f4").data)


class ToldLog:
    """The log of a run while it goes on: what is in it is read first, then it is appended to."""

    def __init__(
        self, path: Path, determinants: Determinants, *, begin: bool = False, only_read: bool = False
    ) -> None:
        """Open the log of a run, or begin one; the log of another run is refused.

        `begin` says that there was no run yet: then a link to somewhere else is not followed. `only_read`
        changes nothing: another process may be writing.
        """
        self.path, self._dimensions, self._only_read = path, len(determinants.task.cells), only_read
        if not only_read and (not path.is_file() or (begin and path.is_symlink())):
            path.unlink(missing_ok=True)
            text = json.dumps(as_json(determinants)).encode()
            head = _BEGIN.pack(MAGIC, FORMAT, len(text)) + text
            with path.open("xb") as new:
                new.write(head + _CHECKSUM.pack(zlib.crc32(head)))
        self._file: IO[bytes] = path.open("rb" if only_read else "r+b", buffering=0)
        self._size = os.fstat(self._file.fileno()).st_size
        self._reading = True
        try:
            with damage_named(path):
                self.first = self._read_head(determinants)
        except BaseException:
            self.close()
            raise
        self._offset = self.first
        self._starts: list[tuple[int, int]] = []  # first evaluation and place of every block, when needed
        self._kept: tuple[NDArray[Any], ...] = (
            np.empty(0),
            np.empty((0, self._dimensions)),
            np.empty(0, np.int64),
        )  # outcomes of the first blocks, when needed
        self._n_kept = 0

    def _read_head(self, determinants: Determinants) -> int:
        """Check whose log it is; return where its first block begins."""
        begin = self._read(0, _BEGIN.size)
        magic, found, length = _BEGIN.unpack(begin)
        if magic != MAGIC or length > MOST_JSON:
            raise ValueError("it is no log of a run")
        require_format(self.path, found)
        text = self._read(_BEGIN.size, length)
        (expected,) = _CHECKSUM.unpack(self._read(_BEGIN.size + length, _CHECKSUM.size))
        if zlib.crc32(begin + text) != expected:
            raise ValueError("its checksum does not fit")
        require_same_run(text.decode(), determinants, any_fingerprint=True)
        return _BEGIN.size + int(length) + _CHECKSUM.size

    def _read(self, offset: int, size: int) -> bytes:
        if offset + size > self._size:
            raise EOFError("it is cut short")
        return os.pread(self._file.fileno(), size, offset)

    def skip_to(self, offset: int, iteration: int) -> None:
        """Go on after what a checkpoint of this iteration knows.

        A log that was lost is begun anew there: then it is empty, or its first block is the next iteration.
        """
        if self._size == self.first or self._first_iteration == iteration + 1:
            self._offset = self.first
        elif offset > self._size:
            raise DamagedFile(f"{self.path} is damaged and was not used: it is shorter than it was")
        else:
            self._offset = offset

    def rewind(self) -> None:
        """Go back to the first iteration."""
        self._offset = self.first

    @property
    def reaches_back(self) -> bool:
        """Whether it has all from the first iteration on, as far as it goes."""
        return self._first_iteration == 1

    @property
    def _first_iteration(self) -> int | None:
        """The iteration that the log begins with; None if that cannot be read."""
        try:
            return self._block(self.first)[0].iteration
        except (EOFError, ValueError):
            return None

    @property
    def offset(self) -> int:
        """How much of the file has been read or written."""
        return self._offset

    def next(self) -> Told | None:
        """Return the next iteration that is known, or None where the log ends.

        A block that was cut off by a kill, and whatever is behind it, is removed: it is simulated again.
        """
        if not self._reading:
            return None
        try:
            told, end = self._block(self._offset)
        except (EOFError, ValueError):
            self._reading = False
            if self._only_read:
                return None
            os.ftruncate(self._file.fileno(), self._offset)
            self._file.seek(self._offset)
            return None
        self._offset = end
        return told

    def _block(self, offset: int) -> tuple[Told, int]:
        """Return the block at a place, and where it ends."""
        head = self._read(offset, _BLOCK.size)
        iteration, asked, n, dimensions, width, *times = _BLOCK.unpack(head)
        size = _size(n, dimensions, width)
        data = self._read(offset + _BLOCK.size, size)
        end = offset + _BLOCK.size + size + _CHECKSUM.size
        (expected,) = _CHECKSUM.unpack(self._read(end - _CHECKSUM.size, _CHECKSUM.size))
        if zlib.crc32(data, zlib.crc32(head)) != expected:
            raise ValueError("a checksum does not fit")
        clock: tuple[float, float, float] = (times[0], times[1], times[2])
        if not n or dimensions != self._dimensions or not all(0 <= t < inf for t in clock):
            raise ValueError("a block has impossible numbers")
        numbers = np.frombuffer(data, "<f8", n * (1 + dimensions)).astype(np.float64)
        steps = np.frombuffer(data, f"<u{width}", offset=numbers.nbytes).astype(f"u{width}")
        if (np.abs(numbers) > LARGEST).any():
            raise ValueError("a block has impossible numbers")
        fitness, descriptors = numbers[:n], numbers[n:].reshape(n, dimensions)
        return Told(iteration, asked, *clock, fitness, descriptors, steps), end

    def outcomes(
        self, evaluations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
        """Return fitness, descriptors and steps of some evaluations, by their numbers, in their shape.

        What was once read is kept: an algorithm that samples solutions again asks for the same ones often.
        """
        self._find_blocks()
        for evaluation, offset in self._starts[self._n_kept :]:
            with damage_named(self.path):
                told, _ = self._block(offset)
            self._keep(told, evaluation)
        fitness, descriptors, steps = (column[evaluations] for column in self._kept)
        return fitness, descriptors, steps

    def _keep(self, told: Told, first: int) -> None:
        end = first + len(told.fitness)
        if end > len(self._kept[0]):
            room = max(end, len(self._kept[0]) * 3 // 2)
            self._kept = tuple(_longer(column, room) for column in self._kept)
        for column, values in zip(self._kept, (told.fitness, told.descriptors, told.steps), strict=True):
            column[first:end] = values
        self._n_kept += 1

    def _find_blocks(self) -> None:
        """Note where blocks begin that were not known yet."""
        evaluation, offset = 0, self.first
        if self._starts:
            evaluation, offset = self._starts.pop()
        while offset < self._offset:
            self._starts.append((evaluation, offset))
            with damage_named(self.path):
                _, _, n, dimensions, width, *_ = _BLOCK.unpack(self._read(offset, _BLOCK.size))
                size = _size(n, dimensions, width)
            evaluation += n
            offset += _BLOCK.size + size + _CHECKSUM.size

    def append(self, told: Told) -> None:
        """Add an iteration."""
        data = told.to_bytes()
        try:
            written = self._file.write(data)
        except OSError:
            written = -1
        if written != len(data):
            os.ftruncate(self._file.fileno(), self._offset)  # no half block
            raise OSError(f"could not write to {self.path}; is the disk full?")
        self._offset += len(data)
        self._size = self._offset

    def sync(self) -> None:
        """Make sure that what was appended is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def told_so_far(path: Path, determinants: Determinants) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return fitness (n,) and descriptors (n, dimensions) of all evaluations so far, also of a going run."""
    log = ToldLog(path, determinants, only_read=True)
    try:
        told = list(iter(log.next, None))
    finally:
        log.close()
    empty = np.empty(0), np.empty((0, len(determinants.task.cells)))
    return (
        np.concatenate([empty[0], *(one.fitness for one in told)]),
        np.concatenate([empty[1], *(one.descriptors for one in told)]),
    )


def _longer(column: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.empty((room, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
