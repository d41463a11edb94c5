"""Every exception qdbench raises on purpose.

    QdbenchError
    ├── InvalidInput     (also a ValueError)    an argument's shape, type or value is wrong
    ├── UnknownName      (also a LookupError)   no task, algorithm, option or robot part has that name
    ├── BrokenTask       (also a RuntimeError)  a user's robot or function does not keep its promise
    ├── BrokenAlgorithm  (also a RuntimeError)  an algorithm does not keep the ask/tell contract
    └── DamagedFile      (also an OSError)      a file of a run is not what was written

A message says what was wrong, the value, and what to do. At the command line each becomes one
line and exit code 2; one that ends a run under way is reported with it, and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class QdbenchError(Exception):
    """What every error of this package derives from."""


class InvalidInput(QdbenchError, ValueError):
    """An argument has the wrong shape, type or value."""


class UnknownName(QdbenchError, LookupError):
    """A name that nothing answers to."""

    def __init__(self, kind: str, name: str, known: Iterable[str], cure: str) -> None:
        close = get_close_matches(name, list(known), n=1)
        suggestion = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(f"no {kind} {name!r}; {suggestion}{cure}")


class BrokenTask(QdbenchError, RuntimeError):
    """A robot file or a task function that does not do what its record says."""


class BrokenAlgorithm(QdbenchError, RuntimeError):
    """An algorithm that does not keep the ask/tell contract."""


class DamagedFile(QdbenchError, OSError):
    """A file that was cut short, changed, or written by another version; it is never used."""
