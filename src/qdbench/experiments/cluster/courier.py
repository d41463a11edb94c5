"""What carries out a run on a node: a process as at home, in a folder of the node, and a courier beside it.

The courier is a Ray actor. It receives the files of a run that is continued, starts the process, and hands
over its news: progress, and what is new in its files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from qdbench.experiments.cluster.left_over import remove_left_over
from qdbench.experiments.cluster.nodes import About, about_this_process
from qdbench.experiments.job import Outcome, Settings
from qdbench.experiments.launchers import Recipe, died, start
from qdbench.experiments.loop import RunProgress
from qdbench.store.copying import PIECE_BYTES, Inbox, Outbox, Piece

FOLDER = "qdbench-run-"
"""How the folders of runs on a node begin; the number of the process follows."""
NEWS_SECONDS = 0.5
"""News are handed over at least so often, if there are any."""
GATHER_SECONDS = 0.1
"""Iterations that end within this time travel together."""


@dataclass(frozen=True, eq=False)
class News:
    """What has happened in a run since the last news."""

    progress: list[RunProgress] = field(default_factory=list)
    """All new rows of metrics.csv, and the last of what a progress bar shows."""
    pieces: list[Piece] = field(default_factory=list)
    outcome: Outcome | None = None
    """With the last news: how it ended. All files have been handed over."""


class Courier:
    """Makes a run in a folder of its node, and hands over what comes out."""

    def __init__(self, blas_threads: int) -> None:
        remove_left_over(FOLDER)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        self._inbox = Inbox(self.folder)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # Ray sets the first to the CPUs of a task
            os.environ[name] = str(blas_threads)

    def about(self) -> About:
        """Return versions and host."""
        return about_this_process()

    def receive(self, piece: Piece) -> None:
        """Take a piece of a run that is continued."""
        self._inbox.receive(piece)

    def start(self, recipe: Recipe, settings: Settings) -> str:
        """Start the process that makes the run; return its folder."""
        self._connection, self._process = start(replace(recipe, path=self.folder), settings)
        self._outbox = Outbox(self.folder)
        self._round: Iterator[Piece] = iter(())
        self._begun = self._told_to_stop = False
        self._outcome: Outcome | None = None
        return str(self.folder)

    def news(self, stop: bool) -> News:
        """Wait for news, but not long; `stop` lets the run end as after Ctrl-C."""
        if stop and not self._told_to_stop:
            self._told_to_stop = True
            self._process.terminate()
        progress = [] if self._outcome else self._heard()  # first: what it tells of is in its files
        pieces, complete = self._some_pieces()
        if self._outcome is None or not complete:
            return News(progress, pieces)
        shutil.rmtree(self.folder, ignore_errors=True)
        return News(progress, pieces, self._outcome)

    def _heard(self) -> list[RunProgress]:
        """Listen to the process; when it has ended, `_outcome` is set and a last round of files begins."""
        rows: list[RunProgress] = []
        last: RunProgress | None = None
        deadline = time.monotonic() + NEWS_SECONDS
        while self._outcome is None and self._connection.poll(max(0.0, deadline - time.monotonic())):
            try:
                message = self._connection.recv()
            except (EOFError, OSError):  # it ended without a message
                self._process.join()
                message = died(self.folder, self._process.exitcode)
            if isinstance(message, Outcome):
                self._process.join()
                self._connection.close()
                self._outcome = message
                self._round = self._then_another(self._round)
            elif message.row is not None:
                self._begun |= not message.replaying  # from now on its files only grow
                rows.append(message)
                last = None
                deadline = min(deadline, time.monotonic() + GATHER_SECONDS)
            else:
                last = message
        return [*rows, last] if last is not None else rows

    def _then_another(self, current: Iterator[Piece]) -> Iterator[Piece]:
        yield from current
        yield from self._outbox.round()

    def _some_pieces(self) -> tuple[list[Piece], bool]:
        """Return pieces up to a limit, and whether these were the last of their round."""
        found: list[Piece] = []
        while sum(len(piece.data) for piece in found) < PIECE_BYTES:
            piece = next(self._round, None)
            if piece is None:
                if self._begun and self._outcome is None:
                    self._round = self._outbox.round()
                return found, True
            found.append(piece)
        return found, False
