"""A hash of the code that computes something, so that edited code gives another fingerprint."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
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
