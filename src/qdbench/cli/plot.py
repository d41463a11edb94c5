"""The command `plot`: the paper's figure and three more, per task."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from qdbench import terminal
from qdbench.cli.app import IntervalKind, MeasuredOn, OnlyTasks, Results, app
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.analysis.collect import Collected, Skipped
    from qdbench.report.measured import MeasuredTask


@app.command()
def plot(
    results: Results,
    tasks: OnlyTasks = None,
    interval: IntervalKind = "fixed",
    on: MeasuredOn = "own",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where figures go.")] = Path("figures"),
) -> None:
    """Draw the paper's figure of every task, its archives, and what more re-evaluations change.

    Writes TASK-figure, TASK-self-normalised (the QD score on each archive's own range), TASK-archives and,
    where elites were re-evaluated, TASK-samples as PNG, SVG and PDF.
    Unfinished, failed and damaged runs are named and left out; runs with other tasks, budgets or options
    under one name are refused.
    """
    from qdbench.analysis.collect import collect

    if find_spec("matplotlib") is None:
        raise InvalidInput("drawing needs matplotlib: pip install 'qdbench[plot]'")
    _require_folder(out)
    collected = collect(results, tasks=tasks or ())
    measured = _measured(collected, interval, on)
    written = [line for task in measured for line in _draw(task, collected, out)]
    for line in written:
        terminal.out.print(f"Written: {line}", soft_wrap=True)
    corrected = all(len(v.corrected) == len(v.runs) for task in measured for v in task.variants)
    command = ["qdbench", "compare" if corrected else "correct", *map(str, results)]
    terminal.out.print(f"Next: {shlex.join(command)}", soft_wrap=True)


def _require_folder(out: Path) -> None:
    """Say so before the work, not after it, when figures could not be written."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InvalidInput(f"cannot write into {str(out)!r}: {str(there)!r} is not a folder, or read-only")


def _measured(
    collected: Collected, interval: Literal["fixed", "pooled"], on: Literal["own", "grid"]
) -> list[MeasuredTask]:
    """Return all tasks in numbers; say what was left out, and what is wrong with the rest."""
    from qdbench.report.measured import measure

    found: list[MeasuredTask] = []
    skipped = list(collected.skipped)
    total, done = sum(len(variant.runs) for variant in collected.variants), 0
    with terminal.progress("measuring", "runs") as progress:

        def one_more() -> None:
            nonlocal done
            done += 1
            progress(done, total)

        for task in collected.tasks:
            measured, unusable = measure(collected.of_task(task), interval, on, one_more)
            skipped += unusable
            found += [] if measured is None else [measured]
    if not found:
        why = f"{skipped[0].path}: {skipped[0].reason}" if skipped else "there is none"
        more = f"; and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        raise InvalidInput(f"no run can be drawn ({why}{more})")
    _warn(found, skipped)
    return found


def _warn(found: Sequence[MeasuredTask], skipped: Sequence[Skipped]) -> None:
    for one in skipped:
        terminal.err.print(f"skipped: {one.path}: {one.reason}", soft_wrap=True)
    for measured in found:
        for sentence in measured.warnings:
            terminal.err.print(f"warning: {sentence}", soft_wrap=True)


def _draw(measured: MeasuredTask, collected: Collected, out: Path) -> list[str]:
    """Draw one task, say by what it was measured, and return what was written."""
    from qdbench.experiments.plan import file_name
    from qdbench.report.archives import archives_figure
    from qdbench.report.figures import paper_figure, self_normalised_figure
    from qdbench.report.samples import samples_figure
    from qdbench.report.style import FORMATS, looks, save_figure

    look = looks(
        variant.label for variant in collected.variants
    )  # of all tasks: a colour means one algorithm
    out.mkdir(parents=True, exist_ok=True)
    n = len(measured.variants)
    terminal.out.print(
        f"{measured.task}: {n} algorithm{'s' * (n != 1)}, {len(measured.runs)} runs; {measured.by}",
        soft_wrap=True,
    )
    figures = {
        "figure": paper_figure,
        "self-normalised": self_normalised_figure,
        "archives": archives_figure,
        "samples": samples_figure,
    }
    if not any(variant.corrected for variant in measured.variants):
        del figures["samples"]
    lines = []
    for name, draw in figures.items():
        stem = out / f"{file_name(measured.task)}-{name}"
        save_figure(draw(measured, look), stem)
        lines.append(f"{stem}.{{{','.join(FORMATS)}}}")
    return lines
