"""All exceptions that qdbench raises on purpose.

    QdbenchError
    ├── InvalidInput     (also a ValueError)    an argument's shape, type or value is wrong
    ├── UnknownName      (also a LookupError)   no task, algorithm, option or robot part has that name
    ├── BrokenTask       (also a RuntimeError)  a user's robot, term or function is wrong
    ├── BrokenAlgorithm  (also a RuntimeError)  an algorithm breaks the ask/tell contract
    └── DamagedFile      (also an OSError)      a file of a run is damaged, or has another format

A promise: whatever is public raises one of these for a wrong value and for a wrong type alike. Only a wrong
number or name of arguments is Python's own TypeError; what the system refuses (a full disk, a missing right,
too little memory) is an OSError or a MemoryError; and errors of your own functions come through as they are.

A message says what is wrong, the value, and what to do. On the command line it is one line, and the exit
code is 2. If the error ends a run that has started, it is reported with that run, and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches


class QdbenchError(Exception):
    """The base class of all exceptions of qdbench."""


class InvalidInput(QdbenchError, ValueError):
    """An argument has the wrong shape, type or value."""


class UnknownName(QdbenchError, LookupError):
    """There is no task, algorithm, option or robot part of that name."""

    def __init__(self, kind: str, name: object, known: Iterable[str], cure: str) -> None:
        close = get_close_matches(name, list(known), n=1) if isinstance(name, str) else []
        suggestion = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(f"no {kind} {name!r}; {suggestion}{cure}")


class BrokenTask(QdbenchError, RuntimeError):
    """A user's robot, term or function does not do what its record says."""


class BrokenAlgorithm(QdbenchError, RuntimeError):
    """An algorithm breaks the ask/tell contract."""


class DamagedFile(QdbenchError, OSError):
    """A file was cut off, changed, or has another format. It is not used."""


def require_known_options(given: Iterable[str], known: Collection[str], who: str) -> None:
    """Refuse the first option that is not known; `who` takes the known ones."""
    for name in given:
        if name not in known:
            raise UnknownName("option", name, known, f"{who} takes {', '.join(known) or 'none'}")
