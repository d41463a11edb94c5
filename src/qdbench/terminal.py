"""What the command line prints: tables, JSON, progress."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
err = Console(stderr=True, highlight=False, markup=False)


def table(*columns: str) -> Table:
    """Return an empty table; the first column is text, the others are numbers."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        rows.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return rows


def print_json(value: Any) -> None:
    """Print a value as JSON that any parser reads."""
    print(json.dumps(_without_nan(value), indent=1))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal; elsewhere a line now and then, so that logs stay readable."""
    if not err.is_terminal:
        last = time.monotonic()

        def line(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last > 10:
                last = time.monotonic()
                print(f"{title}: {done:,} of {total:,} {unit}", file=sys.stderr, flush=True)

        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn(),
        console=err, transient=True,
    )  # fmt: skip
    with bar:
        row = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(row, completed=done, total=total)
