"""Settings of native libraries during simulations.

They are valid for the complete process. So they are set when the first simulation starts and restored when
the last one ends, in whatever threads these run.
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
    """Limit BLAS to one thread; keep MuJoCo's warnings off the terminal and the disk.

    More BLAS threads per worker would compete for the cores, and add in another order. MuJoCo's warnings are
    read from its counters instead.
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
