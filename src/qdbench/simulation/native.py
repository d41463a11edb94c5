"""Settings of native libraries for simulations.

They are valid for the complete process. So most are set when the first simulation starts and restored when
the last one ends, in whatever threads these run.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
from threadpoolctl import ThreadpoolController


def stop_mujoco_s_timers() -> None:
    """Switch off timers that cost about 5 % of a step and that nobody reads here.

    Once and for all: another thread may just be stepping. `set_mjcb_time(None)` restores them instead.
    """
    try:
        library = ctypes.CDLL(str(importlib.import_module("mujoco._callbacks").__file__))
        ctypes.c_void_p.in_dll(library, "mjcb_time").value = None
    except (ImportError, OSError, ValueError):  # Windows does not look into the libraries of a library
        pass


stop_mujoco_s_timers()
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
