"""What a viewer did, waiting for the session's thread: of several changes of one control, the last counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

Action = Callable[[], None]


class Mailbox:
    """Actions from many threads for one."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, Action] = {}
        self._changed = threading.Condition()
        self._closed = False

    def post(self, key: Hashable, action: Action) -> None:
        """Leave an action; one that waits under the same key is replaced."""
        with self._changed:
            self._waiting.pop(key, None)  # so that it comes last
            self._waiting[key] = action
            self._changed.notify()

    def close(self) -> None:
        """Let the thread end."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self, timeout: float | None) -> list[Action] | None:
        """Return what waits, after `timeout` seconds at the latest; None if the mailbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout)
            actions = list(self._waiting.values())
            self._waiting.clear()
            return None if self._closed else actions
