"""Measure runs for a command: show the progress, then warnings, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qdbench.cli import terminal

if TYPE_CHECKING:
    from qdbench.analysis.measured import IntervalKind, Measured
    from qdbench.analysis.measures import On
    from qdbench.reports.replays import Replays


def measured(
    results: Sequence[Path], tasks: Sequence[str] | None, interval: IntervalKind, on: On
) -> Measured:
    """Measure all runs; print warnings and skipped runs on stderr."""
    from qdbench.analysis.measuring import measure

    with terminal.progress("measuring", "runs") as progress:
        found = measure(results, tasks=tasks or (), interval=interval, on=on, progress=progress)
    for one in found.skipped:
        terminal.err.print(f"skipped: {one.path}: {one.reason}", soft_wrap=True)
    for warning in found.warnings:
        terminal.err.print(f"warning: {warning}", style="bold red", soft_wrap=True)
    return found


def filmed(found: Measured) -> Replays:
    """Film elites of every algorithm, for the page."""
    from qdbench.reports.page import film_page

    with terminal.progress("filming", "algorithms") as progress:
        return film_page(found, progress)


def say_next(command: str, results: Sequence[Path]) -> None:
    """Print what to do next with the same results."""
    terminal.out.print(f"Next: {shlex.join(['qdbench', command, *map(str, results)])}", soft_wrap=True)
