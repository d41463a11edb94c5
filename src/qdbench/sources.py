"""A hash of the code that computes something, so that edited code gives another fingerprint."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from qdbench.errors import InvalidInput


def source_digest(thing: Any) -> str:
    """Return a hash of the file that defines a function, a class or an object's class.

    The complete file counts, because a function may call others. In a notebook there is no such file; there
    the source of the function or class itself counts.
    """
    while isinstance(thing, functools.partial):
        thing = thing.func
    defined = thing if hasattr(thing, "__qualname__") else type(thing)
    return hashlib.sha256(_source(defined).encode()).hexdigest()[:16]


def subclass_digests(thing: Any, base: type) -> list[str]:
    """Return a hash for each subclass between an object's class and `base`; none for `base` itself."""
    classes = type(thing).__mro__
    return [source_digest(subclass) for subclass in classes[: classes.index(base)]]


def import_problem(error: BaseException, module: str) -> str:
    """Return why something could not be imported, with the cure if there is one."""
    words = f"{type(error).__name__}: {error}"
    if module == "__main__":
        return f"{words}; it was defined in a script: put it into a module that can be imported"
    return f"{words}; is its folder on PYTHONPATH?" if isinstance(error, ModuleNotFoundError) else words


def require_trust(what: str, name: str) -> None:
    """Refuse to import a module that a file names; nothing of it is run to say where it is."""
    module = name.partition(":")[0].partition(".")[0]
    try:
        found = PathFinder.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        found = None
    where = f"from {found.origin}" if found is not None and found.origin else "which is not found here"
    raise InvalidInput(
        f"{what} {name!r} is code that the run's files name: it would import the module {module!r}, {where}. "
        "If you trust it, allow it: --trust on the command line, trust=True in Python"
    )


def _source(defined: Any) -> str:
    file = getattr(sys.modules.get(defined.__module__ or ""), "__file__", None)
    try:
        if file is not None and Path(file).suffix == ".py":
            return Path(file).read_text(encoding="utf-8")
        return inspect.getsource(defined)
    except (OSError, TypeError, UnicodeDecodeError):
        raise InvalidInput(
            f"cannot read the source of {defined.__qualname__!r}, so changes of it cannot be detected; "
            "define it in a file, or give version=1 and raise it with every change"
        ) from None
