"""A run's files on their way from the node that makes it to the folder where its results belong.

A run that goes on elsewhere is copied in rounds. A round first opens run.json, then the other files: so each
of them is at least as new as the record says. It is sent in the opposite order, and the record arrives last.
Wherever a copy is cut off, the run can be continued from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from qdbench.store.folder import GROWING, REPLACED

PIECE_BYTES = 2**24
"""What is in memory at once, however large a checkpoint is."""


@dataclass(frozen=True)
class Piece:
    """A part of a file."""

    name: str
    offset: int
    data: bytes = field(repr=False)
    whole: bool
    """The file is sent from its beginning, to replace the one that is there."""
    last: bool
    """The file is complete with it."""
    removed: bool = False
    """The file is no longer there."""


class Outbox:
    """The files of a run that is being made in a folder: what is new since the last round."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sent: dict[str, int] = {}  # bytes of growing files
        self._seen = {name: self._state(name) for name in REPLACED}

    def _state(self, name: str) -> tuple[int, int, int] | None:
        """Return what changes whenever a file is replaced; None where there is none."""
        try:
            found = os.stat(self._folder / name)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def round(self) -> Iterator[Piece]:
        """Yield what is new, in an order in which it can be cut off anywhere.

        A growing file is sent whole at first: a run that is continued may have cut off its end.
        """
        with ExitStack() as opened:
            changed: list[tuple[str, IO[bytes] | None]] = []
            for name in REPLACED:  # run.json first
                state = self._state(name)
                if state != self._seen[name]:
                    self._seen[name] = state
                    changed.append((name, self._opened(name, opened)))
            growing = [(name, file) for name in GROWING if (file := self._opened(name, opened))]
            for name, file in growing:
                yield from self._grown(name, file)
            for name, replaced in reversed(changed):
                if replaced is None:
                    yield Piece(name, 0, b"", whole=True, last=True, removed=True)
                else:
                    yield from _pieces(name, replaced, 0, _size(replaced), whole=True)

    def _opened(self, name: str, opened: ExitStack) -> IO[bytes] | None:
        try:
            return opened.enter_context((self._folder / name).open("rb"))
        except FileNotFoundError:
            return None

    def _grown(self, name: str, file: IO[bytes]) -> Iterator[Piece]:
        before, size = self._sent.get(name), _size(file)
        if before is None or size > before:
            yield from _pieces(name, file, before or 0, size, whole=before is None)
            self._sent[name] = size


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _pieces(name: str, file: IO[bytes], start: int, end: int, *, whole: bool) -> Iterator[Piece]:
    file.seek(start)
    for offset in range(start, end, PIECE_BYTES) or [start]:
        data = file.read(min(PIECE_BYTES, end - offset))
        yield Piece(name, offset, data, whole=whole, last=offset + len(data) >= end)


class Inbox:
    """The folder where the results belong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def receive(self, piece: Piece) -> None:
        """Write a piece. A file that is replaced appears when it is complete."""
        path = self._folder / piece.name
        if piece.removed:
            path.unlink(missing_ok=True)
            return
        beside = path.with_name(f".{path.name}.{os.getpid()}") if piece.whole else path
        if piece.whole and not piece.offset:
            beside.unlink(missing_ok=True)  # it may be a link to somewhere else
            beside.touch()
        with beside.open("r+b") as file:
            file.truncate(piece.offset)
            file.seek(piece.offset)
            file.write(piece.data)
            if piece.whole and piece.last:
                file.flush()
                os.fsync(file.fileno())
        if piece.whole and piece.last:
            os.replace(beside, path)

    def forget(self) -> None:
        """Remove what has not arrived completely."""
        for name in (*GROWING, *REPLACED):
            (self._folder / f".{name}.{os.getpid()}").unlink(missing_ok=True)


def all_pieces(folder: Path) -> Iterator[Piece]:
    """Yield all files of a run, to continue it elsewhere."""
    for name in (*GROWING, *REPLACED):
        path = folder / name
        if path.is_file():
            with path.open("rb") as file:
                yield from _pieces(name, file, 0, _size(file), whole=True)
