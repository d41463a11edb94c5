"""The command `check`: does an algorithm keep the contract?"""

from __future__ import annotations

from typing import Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import app, command_line
from qdbench.errors import InvalidInput


@app.command()
def check(
    algorithm: Annotated[
        str,
        typer.Argument(
            metavar="ALGORITHM", help="A name from `qdbench algorithms`, or package.module:Class."
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="An option of the algorithm; repeat."),
    ] = None,
) -> None:
    """Check that an algorithm keeps the ask/tell contract; a broken promise is one sentence, exit code 2."""
    from qdbench.algorithms.conformance import ITERATIONS, check_algorithm
    from qdbench.experiments.variants import read_settings, variants

    found = variants([algorithm], read_settings(settings or ()))
    if len(found) != 1:
        raise InvalidInput(f"--set gives {len(found)} variants of {algorithm}; check one at a time")
    check_algorithm(algorithm, **{name: found[0].options[name] for name in found[0].given})
    terminal.out.print(
        f"{algorithm} keeps the contract: shapes and types, exactly the same solutions from the same seed "
        "here and in another process, invalid batches, elites as they were told, over "
        f"{ITERATIONS} iterations",
        soft_wrap=True,
    )
    options = {"--algorithm": algorithm, "--evaluations": 5000, "--set": settings or []}
    following = command_line("run", "qdbench.tasks.sphere:task", options)
    terminal.out.print(f"Next: {following}", soft_wrap=True)
