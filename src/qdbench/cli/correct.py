"""The command `correct`: re-evaluate the elites of runs."""

from __future__ import annotations

import os
from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from qdbench import terminal
from qdbench.cli.app import Workers, app, command_line
from qdbench.cli.experiment import EXIT_FAILED, NReevaluations
from qdbench.errors import InvalidInput, QdbenchError


@app.command()
def correct(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or folders with runs below.")
    ],
    reevaluations: NReevaluations = 50,
    workers: Workers = None,
) -> None:
    """Re-evaluate the elites of finished or stopped runs, and print what is left of their metrics.

    What was re-evaluated before is not done again; the same command continues after an interruption.
    """
    from qdbench.analysis.collect import run_folders
    from qdbench.experiments.correct import correct_run
    from qdbench.experiments.interrupt import Interrupt, Interrupted
    from qdbench.tasks.contract import checked_workers

    folders, n_workers = run_folders(runs), checked_workers(workers)
    interrupt = Interrupt()
    done: list[Path] = []
    failed: list[str] = []
    with interrupt.listening(), terminal.bars() as bars:
        for folder in folders:

            def progress(made: int, total: int, label: str = str(folder)) -> None:
                bars(label, made, max(total, 1), f"{made:,} of {total:,} re-evaluations")

            try:
                elsewhere = correct_run(folder, reevaluations, n_workers, interrupt, progress)
                differs = f"; the run was made elsewhere ({'; '.join(elsewhere)})" if elsewhere else ""
                bars(str(folder), None, 1, f"corrected{differs}")
                done.append(folder)
            except Interrupted:
                break
            except (QdbenchError, OSError) as error:
                failed.append(f"{folder}: {error}")
                bars(str(folder), None, 1, "failed")
            except Exception as error:  # of a user's task: the other runs go on
                failed.append(f"{folder}: {type(error).__name__}: {' '.join(str(error).split())}")
                bars(str(folder), None, 1, "failed")
    failed += _print_losses(done)
    if interrupt.signal is not None:
        terminal.err.print("stopped; the same command continues")
        raise typer.Exit(128 + interrupt.signal)
    if failed and not done:
        raise InvalidInput("; ".join(failed))
    for sentence in failed:
        terminal.err.print(f"failed: {sentence}", soft_wrap=True)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _print_losses(folders: list[Path]) -> list[str]:
    """Print what is left of the metrics; return which runs cannot be measured, and why."""
    import qdbench
    from qdbench.analysis.measures import final, fixed_interval
    from qdbench.analysis.warnings_of_runs import about_max_fitness, warnings_of

    table = terminal.table("run", "coverage", "loss", "QD score", "loss", "max fitness", "loss")
    lost, failed, measured = 0, [], []
    for folder in folders:
        try:
            run = qdbench.load(folder)
            found = final(run, fixed_interval(run))
        except (QdbenchError, OSError) as error:
            failed.append(f"{folder}: {error}")
            continue
        for sentence in warnings_of([run], fixed_interval(run)):
            terminal.err.print(f"warning: {sentence}", soft_wrap=True)
        measured.append(run)
        lost += int(found["lost_elites"])
        row = []
        for name, digits in (("coverage", 0), ("qd_score", 1), ("max_fitness", 1)):
            loss = found[f"{name}_loss"]
            row.append(f"{found[name]:,.{digits}f} → {found[f'corrected_{name}']:,.{digits}f}")
            row.append("undefined" if isnan(loss) else f"{loss:.1%}")
        table.add_row(str(folder), *row)
    if measured:
        terminal.out.print(table)
        intervals = {run.record["task"]["name"]: fixed_interval(run) for run in measured}
        each = "; ".join(f"{task} [{low:,g}, {high:,g}]" for task, (low, high) in intervals.items())
        terminal.out.print(
            f"before → corrected; QD scores and losses on the fixed interval: {each}; a loss of what is not "
            "above 0 is undefined",
            soft_wrap=True,
        )
        for sentence in filter(None, map(about_max_fitness, intervals)):
            terminal.out.print(sentence, soft_wrap=True)
        if lost:
            terminal.out.print(f"{lost:,} elites had an invalid re-evaluation and are lost")
        results = os.path.relpath(folders[0].absolute().parent.parent)
        following = command_line("plot", results, {})
        terminal.out.print(f"Next: {following}", soft_wrap=True)
    return failed
