"""Printing of the command line: tables, JSON, progress."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, colour it or turn its text around; a line's end is none."""
_WORD = re.compile(r"^ *\S+|\S+")
"""A word of a cell, the first with its indentation."""


def plain(text: str) -> str:
    """Return text without characters that steer a terminal: names and reasons come from files."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


class _Console(Console):
    """A console that prints what it is given, and obeys nothing of it."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            harmless = segment.control or not _STEERING.search(segment.text)
            yield segment if harmless else Segment(plain(segment.text), segment.style)


def _is_terminal() -> bool:
    return sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()


out = _Console(width=None if _is_terminal() else 120, highlight=False, markup=False)
err = _Console(stderr=True, highlight=False, markup=False)


def table(*columns: str) -> Table:
    """Return an empty table. The first column is text, the others are numbers."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        rows.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return rows


def filled(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a table with its rows, whose lines end between words if they fit into the terminal."""
    found, cells = table(*columns), [[*row] for row in rows]
    for row in cells:
        found.add_row(*row)
    least = _widths(columns, cells)
    if not _is_within(least):
        return found
    widths = [max(len(cell) for cell in column) for column in zip(columns, *cells, strict=True)]
    while not _is_within(widths):  # one that can best become narrower
        slack = [width - few for width, few in zip(widths, least, strict=True)]
        widths[slack.index(max(slack))] -= 1
    for column, width in zip(found.columns, widths, strict=True):
        column.width = width
    return found


def fits(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Return whether a table fits into the terminal without a break in a word."""
    return _is_within(_widths(columns, rows))


def _widths(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> list[int]:
    """Return the length of the longest word of every column, with the indentation of its cell."""
    return [
        max((len(word) for cell in column for word in _WORD.findall(str(cell))), default=0)
        for column in zip(columns, *rows, strict=True)
    ]


def _is_within(widths: Sequence[int]) -> bool:
    return sum(widths) + 2 * (len(widths) - 1) <= out.width


def print_json(value: Any) -> None:
    """Print a value as JSON that every parser can read."""
    print(json.dumps(_without_nan(value), indent=1))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


Bars = Callable[[str, float | None, float, str], None]
"""Called with a label, how much is done (None: it has ended), how much there is, and a short text."""


@contextmanager
def bars() -> Iterator[Bars]:
    """Show one bar per label on a terminal. Without a terminal, print a line every ten seconds for each."""
    if not err.is_terminal:
        last: dict[str, float] = {}

        def line(label: str, done: float | None, total: float, words: str) -> None:
            now = time.monotonic()
            if done is None or now - last.setdefault(label, now) > 10:
                last[label] = now
                share = "" if done is None else f"{done / total:4.0%} "
                print(plain(f"{label}: {share}{words}"), file=sys.stderr, flush=True)

        yield line
        return
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class _TwoLines(Progress):
        def get_renderables(self) -> Iterator[Any]:
            for task in self.tasks:
                yield self.make_tasks_table([task])
                yield f"  {task.fields['words']}"

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with _TwoLines(*columns, console=err, transient=True) as shown:
        rows: dict[str, TaskID] = {}

        def bar(label: str, done: float | None, total: float, words: str) -> None:
            if done is None:
                if label in rows:
                    shown.remove_task(rows.pop(label))
                shown.console.print(f"{label}: {words}")
                return
            if label not in rows:
                rows[label] = shown.add_task(label, total=total, words=words)
            shown.update(rows[label], completed=done, words=words)

        yield bar


@contextmanager
def progress(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal. Without a terminal, print a line every ten seconds."""
    if not err.is_terminal:
        last = time.monotonic()

        def line(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last > 10:
                last = time.monotonic()
                print(plain(f"{title}: {done:,} of {total:,} {unit}"), file=sys.stderr, flush=True)

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
