"""Settings of the native libraries that must hold while robots are simulated.

They are process-wide, so they are set when the first simulation begins and put back when the last
one ends, whichever threads those run in.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
from threadpoolctl import ThreadpoolController

_blas = ThreadpoolController()
_lock = threading.Lock()
_users = 0
_restore: list[Any] = []


@contextmanager
def quiet_and_single_threaded() -> Iterator[None]:
    """Keep BLAS to one thread and MuJoCo's warnings off the terminal and the disk.

    One BLAS thread per worker: more would fight over the cores, and sum in another order.
    MuJoCo's warnings are read from its counters instead.
    """
    global _users
    with _lock:
        if _users == 0:
            log = mujoco.MjLogConfig.get()
            _restore[:] = _blas.limit(limits=1, user_api="blas"), log.logto_console, log.logto_file
            log.logto_console = log.logto_file = False
            log.set()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                limiter, console, file = _restore
                limiter.restore_original_limits()
                log = mujoco.MjLogConfig.get()
                log.logto_console, log.logto_file = console, file
                log.set()
