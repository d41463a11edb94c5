"""What all viewers share: the runs, the views that are open, and the replays."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import QdbenchError
from qdbench.experiments.replaying import ghosts
from qdbench.explorer.catalogue import Catalogue, Listed
from qdbench.explorer.parts import Part, parts_of
from qdbench.explorer.replays import Replay, Replays, replay_of
from qdbench.explorer.view import View, signature, view_of
from qdbench.tasks.contract import Task

Draw = Callable[[NDArray[np.float32]], Any]
"""A user's own picture of a solution: a line (n, 2) or (n, 3), or an image (height, width, 3) of bytes."""

MOST_VIEWS = 4
"""Runs that stay open: the policies of one can take hundreds of megabytes."""


@dataclass(eq=False)
class Library:
    """Runs, views and replays; every viewer asks here."""

    catalogue: Catalogue
    task: Task | None = None
    trust: bool = False
    draw: Draw | None = None
    replays: Replays = field(default_factory=Replays)
    _views: OrderedDict[Path, View] = field(default_factory=OrderedDict)
    _parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def view(self, path: Path) -> View:
        """Return a run, read again if its files have changed."""
        with self._lock:
            kept = self._views.get(path)
            if kept is None or kept.signature != signature(path):
                kept = self._views[path] = view_of(path, self.task, trust=self.trust)
            self._views.move_to_end(path)
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
            return kept

    def first(self) -> Listed:
        """Return the first run that can be shown; if none can, say what is wrong with the first."""
        problems: list[QdbenchError | OSError] = []
        for listed in self.catalogue.runs:
            try:
                self.view(listed.path).plane("as found")
            except (QdbenchError, OSError) as error:
                problems.append(error)
            else:
                return listed
        raise problems[0]

    def parts(self, view: View) -> tuple[Part, ...]:
        """Return the parts of a run's robot; nothing if it has none."""
        task = view.cast.task
        if task is None:
            return ()
        if task.fingerprint not in self._parts:
            self._parts[task.fingerprint] = parts_of(task.anatomy)
        return self._parts[task.fingerprint]

    def replay(self, view: View, row: int) -> Replay:
        """Return the stored episode of an elite, simulated again."""
        task = view.cast.task

        def simulated() -> list[Replay]:
            episode = task.rollout(view.solution(row), view.seed(row))
            return [replay_of(episode, task.robot.control_step)]

        return self.replays.get((view.run.path, view.signature, row), simulated)[0]

    def ghosts(self, view: View, row: int, n: int) -> tuple[Replay, ...]:
        """Return an elite under the seeds of its first `n` re-evaluations."""
        task = view.cast.task

        def simulated() -> list[Replay]:
            episodes = ghosts(view.run, task, row, n)
            return [replay_of(episode, task.robot.control_step) for episode in episodes]

        return self.replays.get((view.run.path, view.signature, row, n), simulated) if n else ()
