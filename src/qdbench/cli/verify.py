"""The command `verify`: are the stored numbers what the task gives?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qdbench.cli import terminal
from qdbench.cli.app import EXIT_FAILED, AsJson, Trust, Workers, app, command_line
from qdbench.errors import InvalidInput, QdbenchError

if TYPE_CHECKING:
    from qdbench.experiments.verifying import Verification


@app.command()
def verify(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or folders with runs below.")
    ],
    elites: Annotated[
        int, typer.Option(min=1, metavar="N", help="Elites of each run that are simulated again.")
    ] = 20,
    workers: Workers = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Simulate some elites again from their stored seeds, and compare the files of each run.

    Exit code 0: all numbers are right; 1: something differs. On another CPU or with other versions small
    differences are expected, and told. Nothing is written.
    """
    from qdbench.checks import checked_workers
    from qdbench.experiments.verifying import verify_run
    from qdbench.store.folder import run_folders

    folders, n_workers = run_folders(runs), checked_workers(workers)
    found: list[Verification] = []
    failed: list[str] = []
    with terminal.progress("verifying", "runs") as progress:
        for i, folder in enumerate(folders):
            try:
                found.append(verify_run(folder, elites, n_workers, trust=trust))
            except (QdbenchError, OSError) as error:
                failed.append(f"{folder}: {error}")
            except Exception as error:  # of a user's task: the other runs go on
                failed.append(f"{folder}: {type(error).__name__}: {' '.join(str(error).split())}")
            progress(i + 1, len(folders))
    if failed and not found:
        raise InvalidInput("; ".join(failed))
    if as_json:
        terminal.print_json([_facts(one) for one in found])
    else:
        _print(found)
    for sentence in failed:
        terminal.err.print(f"failed: {sentence}", soft_wrap=True)
    if failed or not all(one.is_right for one in found):
        raise typer.Exit(EXIT_FAILED)


def _facts(one: Verification) -> dict[str, Any]:
    facts = {name: value for name, value in vars(one).items() if name != "run"}
    return {"run": str(one.run.path), "is_right": one.is_right, **facts}


def _print(found: list[Verification]) -> None:
    columns = ("run", "elites", "simulated", "differing", "fitness off by", "descriptors off by", "told.log")
    table = terminal.table(*columns, "all right")
    for one in found:
        table.add_row(
            str(one.run.path),
            *(f"{n:,}" for n in (one.elites, one.simulated, one.differing)),
            *(f"{off:.3g}" for off in (one.fitness_off, one.descriptors_off)),
            "compared" if one.logged else "not whole",
            "yes" if one.is_right else "no",
        )
    terminal.out.print(table)
    for one in found:
        for sentence in one.problems:
            terminal.err.print(f"differs: {one.run.path}: {sentence}", soft_wrap=True)
        if one.versions and not one.differing:
            terminal.out.print(
                f"{one.run.path}: made with other versions ({'; '.join(one.versions)}), and yet the same",
                soft_wrap=True,
            )
    right = next((one for one in found if one.is_right), found[0])
    following = "correct" if right.is_right and right.run.final_point is None else "show"
    terminal.out.print(f"Next: {command_line(following, str(right.run.path), {})}", soft_wrap=True)
