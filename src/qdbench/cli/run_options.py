"""The options of the commands that make runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def whole_from(low: int) -> Callable[[str], int]:
    """Return what reads a whole number of an option."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if number < low:
            raise typer.BadParameter(f"give a whole number of {low} or more, not {text!r}")
        return number

    return read


def not_negative(text: str) -> float:
    """Read a number of an option."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:  # NaN is not, either
        raise typer.BadParameter(f"give a number of 0 or more, not {text!r}")
    return number


AlgorithmNames = Annotated[
    list[str] | None,
    typer.Option(
        "--algorithm",
        metavar="A",
        help="A name from `qdbench algorithms`, or package.module:Class for your own. May be repeated.",
        show_default="map_elites",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        parser=whole_from(1),
        metavar="J",
        help="Number of runs at a time. Parallel runs share cores; do not compare their times.",
    ),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ray",
        help="Use a Ray cluster: `ray` is the one in RAY_ADDRESS, else one on this machine; ray://HOST:PORT "
        "names one. With --jobs J, J whole runs at a time; else every batch on all nodes.",
        show_default="this machine, without Ray",
    ),
]
CheckpointEvery = Annotated[
    float,
    typer.Option(
        parser=not_negative,
        metavar="SECONDS",
        help="Least time between checkpoints; longer if writing one takes long.",
    ),
]
NCorrections = Annotated[
    int,
    typer.Option(
        parser=whole_from(0),
        metavar="K",
        help="Re-evaluate all elites at K points of the run, the last at its end. Re-evaluations count "
        "neither as evaluations nor as time.",
    ),
]
NReevaluations = Annotated[
    int, typer.Option(parser=whole_from(1), metavar="N", help="Number of re-evaluations of each elite.")
]
Elsewhere = Annotated[
    bool,
    typer.Option(
        "--elsewhere",
        help="Also resume runs that were started on another CPU or with other versions, and use nodes of a "
        "cluster that have such. Results may not be exactly reproducible.",
    ),
]

ChangedCode = Annotated[
    bool, typer.Option("--changed-code", help="Resume a run although its algorithm's code has changed.")
]
OneSeed = Annotated[
    int | None, typer.Option(parser=whole_from(0), metavar="S", help="Seed of one run.", show_default="0")
]
SeveralSeeds = Annotated[
    list[str] | None,
    typer.Option(metavar="0-9", help="Seeds of several runs: 0-9, or 0,3,5-7. May be repeated."),
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(1),
        metavar="N",
        help="End each run with the iteration that reaches N evaluations.",
        show_default="no limit; give this or --seconds",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        parser=not_negative,
        metavar="X",
        help="End each run with the iteration that reaches X seconds.",
        show_default="no limit",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(1),
        metavar="B",
        help="Solutions per iteration. The same as --set batch_size=B.",
        show_default="the algorithm's; 256 for ours",
    ),
]
AlgorithmSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help="Set an option of the algorithms. May be repeated. A=1,2,3 makes one variant for each "
        "value; map_elites.A=1 is for this algorithm only.",
    ),
]
OutFolder = Annotated[Path, typer.Option(metavar="FOLDER", help="Write results into this folder.")]
VariantName = Annotated[
    str,
    typer.Option(
        help="Name of this variant: its runs are in the folder ALGORITHM-NAME.", show_default="none"
    ),
]
NewEvaluations = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(1),
        metavar="N",
        help="End with the iteration that reaches N evaluations.",
        show_default="as started",
    ),
]
NewSeconds = Annotated[
    float | None,
    typer.Option(
        parser=not_negative,
        metavar="X",
        help="End with the iteration that reaches X seconds.",
        show_default="as started",
    ),
]
NewCorrections = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(0),
        metavar="K",
        help="Re-evaluate all elites at K points of the run.",
        show_default="as started",
    ),
]
NewReevaluations = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(1),
        metavar="N",
        help="Number of re-evaluations of each elite. Needs --corrections.",
        show_default="50 with --corrections; else as started",
    ),
]
