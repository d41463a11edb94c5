"""One process per folder: the system's lock where there is one, else a file that says who holds it."""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from qdbench.errors import InvalidInput

try:
    import fcntl
except ImportError:  # Windows: filelock has its own way there
    fcntl = None  # type: ignore[assignment]  # Windows has no such module


class InUse(InvalidInput):
    """Another process has locked the folder."""


NAME, HELD = ".lock", ".lock-held"
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}
"""What file systems without locks answer, some NFS and Lustre among them."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder."""
    with _by_system(folder) if _system_can(folder / NAME) else _by_file(folder):
        yield


def in_use(folder: Path) -> bool:
    """Return whether another process has locked a folder."""
    if not folder.is_dir():
        return False
    try:
        with locked(folder):
            return False
    except InUse:
        return True


@contextmanager
def _by_system(folder: Path) -> Iterator[None]:
    """The system lets go when this process dies, however it dies."""
    lock = FileLock(folder / NAME)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InUse(f"{folder} is in use by another process; wait for it or stop it") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _by_file(folder: Path) -> Iterator[None]:
    """A file that only one process can make; a kill leaves it behind."""
    path = folder / HELD
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise _in_use(folder, path) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {platform.node()}\n")
        yield
    finally:
        path.unlink(missing_ok=True)


def _in_use(folder: Path, path: Path) -> InvalidInput:
    """Return who holds a folder, and what to do if nobody does."""
    try:
        pid, _, host = path.read_text(encoding="utf-8", errors="replace")[:300].strip().partition(" ")
    except OSError:
        pid, host = "", ""
    if not (pid.isdecimal() and host.isprintable()):
        return InUse(f"{folder} is in use by another process; if there is none, delete {path}")
    if host == platform.node() and not _is_alive(int(pid)):
        return InvalidInput(
            f"{folder} was in use by process {pid}, which was killed; delete {path} and try again"
        )
    return InUse(f"{folder} is in use by process {pid} on {host}; if it has ended there, delete {path}")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _system_can(path: Path) -> bool:
    """Return whether the file system has locks."""
    if fcntl is None:
        return True
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in NO_LOCKS
    finally:
        os.close(handle)
    return True
