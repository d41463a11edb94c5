"""The Typer application and the arguments that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import qdbench
from qdbench.cli.run_options import whole_from
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench import Task

EXIT_FAILED = 1

app = typer.Typer(
    name="qdbench",
    help="Benchmark Quality-Diversity algorithms that evolve neural robot controllers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK", help="A name from `qdbench tasks`, or module:attribute for your own task."
    ),
]
SolutionsFile = Annotated[
    Path | None,
    typer.Option(
        "--solutions",
        metavar="FILE",
        help="Evaluate the solutions in this file: an .npy array (float32, one row each), or an .npz "
        "file with an array `solutions`, such as a run's archive.npz.",
    ),
]
RandomCount = Annotated[
    int | None,
    typer.Option("--random", parser=whole_from(1), metavar="N", help="Evaluate N random solutions."),
]
Seed = Annotated[
    int,
    typer.Option(
        parser=whole_from(0), metavar="S", help="Root seed of the random solutions and of the episodes."
    ),
]
EpisodeLength = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(1),
        metavar="T",
        help="Control steps per episode. The same as --task-set episode_length=T.",
        show_default="the task's; 1000 for the nine tasks",
    ),
]
ResetNoise = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Start noise, uniform in ±X on joint angles and velocities. The same as "
        "--task-set reset_noise=X.",
        show_default="the task's",
    ),
]
TaskSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--task-set",
        metavar="NAME=VALUE",
        help="Set an option of the task. May be repeated. Examples: hidden=64x64, cells=30x30, "
        "descriptor_bounds=-5:5x-5:5.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(parser=whole_from(1), metavar="W", help="Number of threads.", show_default="all cores"),
]
Results = Annotated[
    list[Path],
    typer.Argument(metavar="RESULTS...", help="Run folders, or folders that contain run folders."),
]
OnlyTasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task", metavar="T", help="Use only runs of this task. May be repeated.", show_default="all tasks"
    ),
]
IntervalOption = Annotated[
    Literal["fixed", "pooled", "possible"],
    typer.Option(
        "--interval",
        help="Interval of the QD score: the task's fixed one, the range of all fitness values of all runs, "
        "or the possible fitness.",
    ),
]
MeasuredOn = Annotated[
    Literal["own", "grid"],
    typer.Option("--on", help="Measure each algorithm on its own archive, or all on the task's grid."),
]
Replays = Annotated[
    bool,
    typer.Option(
        "--replays/--no-replays",
        help="Film elites of every algorithm, by simulating them again; at most 5 MB of the page.",
    ),
]
Trust = Annotated[bool, typer.Option("--trust", help="Import modules of your own that the runs' files name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(qdbench.__version__)
        raise typer.Exit


def command_line(name: str, argument: str, options: dict[str, Any]) -> str:
    """Return a command line to copy. Options that are None are left out; lists are repeated."""
    words = []
    for option, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else [option, str(one)]
    return shlex.join(["qdbench", name, argument, *words])


def chosen_task(
    name: str, episode_length: int | None, reset_noise: float | None, settings: Sequence[str] | None
) -> Task:
    """Return the task of that name, with the given options."""
    from qdbench.tasks.options import read_options

    task = qdbench.make(name)
    shortcuts = {"episode_length": episode_length, "reset_noise": reset_noise}
    given = {key: value for key, value in shortcuts.items() if value is not None}
    options = read_options(task, settings or ())
    twice = next((key for key in given if key in options), None)
    if twice is not None:
        raise InvalidInput(
            f"{twice} is given twice: by --{twice.replace('_', '-')} and by --task-set; give it once"
        )
    return qdbench.make(name, **options, **given)
