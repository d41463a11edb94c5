"""What the tests of the explorer share: a stage that notes what it is told, sessions, and views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qdbench.explorer.catalogue import catalogue
from qdbench.explorer.library import Library
from qdbench.explorer.session import Session
from qdbench.explorer.view import View, view_of


class Recorded:
    """A stage, or a floor, that notes what it is told to draw."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *what: self.told.append((name, what))

    def last(self, name: str) -> tuple[Any, ...]:
        return next(what for said, what in reversed(self.told) if said == name)


def session_of(*paths: Path, **how: Any) -> tuple[Session, list[Any]]:
    stages: list[Any] = [Recorded(), Recorded()]
    library = Library(catalogue(paths), **how)
    session = Session(library, stages, Recorded())
    session.open(library.first())
    return session, stages


def views(out: Path) -> list[View]:
    return [view_of(listed.path) for listed in catalogue([out]).runs]
