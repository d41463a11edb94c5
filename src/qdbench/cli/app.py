"""The Typer application and the arguments that several commands share."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import qdbench
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench import Task

app = typer.Typer(
    name="qdbench",
    help="Benchmark Quality-Diversity algorithms that evolve neural robot controllers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="A name from `qdbench tasks`, or module:attribute.")
]
SolutionsFile = Annotated[
    Path | None, typer.Option("--solutions", metavar="FILE.npy", help="Solutions, float32, one row each.")
]
RandomCount = Annotated[
    int | None, typer.Option("--random", metavar="N", help="Use N fresh random policies.")
]
Seed = Annotated[int, typer.Option(min=0, help="Root seed of the random policies and the episodes.")]
EpisodeLength = Annotated[
    int | None, typer.Option(metavar="T", help="Control steps at most. [default: 1000]")
]
ResetNoise = Annotated[
    float | None, typer.Option(help="± on joint angles and velocities. [default: the task's]")
]
Workers = Annotated[int | None, typer.Option(metavar="W", help="Threads. [default: all cores]")]
Results = Annotated[
    list[Path], typer.Argument(metavar="RESULTS...", help="Folders of runs, or folders with runs below.")
]
OnlyTasks = Annotated[
    list[str] | None, typer.Option("--task", metavar="T", help="Only this task; repeat for several.")
]
IntervalKind = Annotated[
    Literal["fixed", "pooled"],
    typer.Option("--interval", help="Of the QD score: the task's own, or all fitness values of all runs."),
]
MeasuredOn = Annotated[
    Literal["own", "grid"],
    typer.Option("--on", help="Measure on each algorithm's own container, or all on the task's grid."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(qdbench.__version__)
        raise typer.Exit


def command_line(name: str, task_name: str, options: dict[str, Any]) -> str:
    """Return a command that can be pasted; options that are None are left out."""
    words = [str(word) for pair in options.items() if pair[1] is not None for word in pair]
    return shlex.join(["qdbench", name, task_name, *words])


def chosen_task(name: str, episode_length: int | None, reset_noise: float | None) -> Task:
    """Return the task of that name with the options that were given."""
    options = {"episode_length": episode_length, "reset_noise": reset_noise}
    return qdbench.make(name, **{key: value for key, value in options.items() if value is not None})


def require_writable(path: Path, *endings: str) -> None:
    """Say so before the work, not after it, when a result could not be written."""
    if path.suffix not in endings:
        raise InvalidInput(f"cannot write {str(path)!r}: its name must end in {' or '.join(endings)}")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(
            f"cannot write {str(path)!r}: its folder is missing or read-only, or it is a folder"
        )
