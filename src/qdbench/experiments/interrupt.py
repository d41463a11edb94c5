"""Ctrl-C and SIGTERM while a run is going on: never in the middle of a change."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let signals wait, also in a process that is started inside (where the system can)."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # now: when multiprocessing starts it by itself, it lets the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def signals_let_through() -> None:
    """Receive what was held back when this process was started."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


class Interrupted(BaseException):
    """Raised where an interruption is allowed; not an Exception, so that nobody swallows it."""


class Interrupt:
    """Remembers a signal, and raises it at once only inside `allowed()`."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._allowed = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take over Ctrl-C and SIGTERM; outside the main thread, where Python cannot, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {number: signal.signal(number, self._receive) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Let an interruption that came take effect now."""
        if self.signal is not None:
            raise Interrupted

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let an interruption stop what runs inside."""
        self._allowed = True
        try:
            self.check()
            yield
        finally:
            self._allowed = False

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        if self._allowed:
            self._allowed = False  # once: a second one must not stop the cleaning up
            raise Interrupted
