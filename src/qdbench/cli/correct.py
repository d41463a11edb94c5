"""The command `correct`: re-evaluate the elites of runs."""

from __future__ import annotations

import os
from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import EXIT_FAILED, Trust, Workers, app
from qdbench.cli.measuring import say_next
from qdbench.cli.run_options import OnCluster
from qdbench.errors import InvalidInput, QdbenchError


@app.command()
def correct(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that contain run folders.")
    ],
    reevaluations: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of re-evaluations of each elite.",
            show_default="as the run was corrected before, else 50",
        ),
    ] = None,
    workers: Workers = None,
    on: OnCluster = None,
    elsewhere: Annotated[
        bool,
        typer.Option("--elsewhere", help="Also use nodes of a cluster with another CPU or other versions."),
    ] = False,
    trust: Trust = False,
) -> None:
    """Re-evaluate the elites of finished or stopped runs, and print corrected metrics and losses.

    Each elite is re-evaluated only once: after an interruption, the same command continues.
    """
    from qdbench.experiments.correcting import correct_run, import_tasks
    from qdbench.experiments.evaluators import evaluators_on
    from qdbench.experiments.interrupt import Interrupt, Interrupted
    from qdbench.store.folder import run_folders

    folders = run_folders(runs)
    interrupt = Interrupt()
    done: list[Path] = []
    failed: list[str] = []
    if on is not None:
        import_tasks(folders, trust=trust)
    with (
        evaluators_on(on, workers=workers, elsewhere=elsewhere) as evaluators,
        interrupt.listening(),
        terminal.bars() as bars,
    ):
        for folder in folders:

            def progress(made: int, total: int, label: str = str(folder)) -> None:
                bars(label, made, max(total, 1), f"{made:,} of {total:,} re-evaluations")

            try:
                others = correct_run(folder, reevaluations, evaluators, interrupt, progress, trust=trust)
                there = "the run was made on another CPU or with other versions"
                differs = f"; {there} ({'; '.join(others)})" if others else ""
                bars(str(folder), None, 1, f"corrected{differs}")
                done.append(folder)
            except Interrupted:
                break
            except (QdbenchError, OSError) as error:
                failed.append(_named(folder, error))
            except Exception as error:  # of a user's task: the other runs continue
                failed.append(f"{folder}: {type(error).__name__}: {' '.join(str(error).split())}")
    failed += _print_losses(done)
    if interrupt.signal is not None:
        terminal.err.print("stopped; the same command continues it")
        raise typer.Exit(128 + interrupt.signal)
    if failed and not done:
        raise InvalidInput("; ".join(failed))
    for sentence in failed:
        terminal.err.print(f"failed: {sentence}", soft_wrap=True)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _named(folder: Path, error: BaseException) -> str:
    """Return what went wrong, with the name of the run if the sentence does not have it."""
    return str(error) if str(folder) in str(error) else f"{folder}: {error}"


def _print_losses(folders: list[Path]) -> list[str]:
    """Print corrected metrics and losses; return which runs cannot be measured, and why."""
    import qdbench
    from qdbench.analysis.measures import final, fixed_interval
    from qdbench.analysis.warnings_of_runs import warnings_of
    from qdbench.metrics.metric import corrected, loss
    from qdbench.metrics.numbers import percent

    table = terminal.table("run", "coverage", "loss", "QD score", "loss", "max fitness", "loss")
    lost, failed, measured = 0, [], []
    for folder in folders:
        try:
            run = qdbench.load(folder)
            found = final(run, fixed_interval(run))
        except (QdbenchError, OSError) as error:
            failed.append(_named(folder, error))
            continue
        for sentence in warnings_of([run], fixed_interval(run)):
            terminal.err.print(f"warning: {sentence}", soft_wrap=True)
        measured.append(run)
        lost += int(found["lost_elites"])
        row = []
        for name, digits in (("coverage", 0), ("qd_score", 1), ("max_fitness", 1)):
            row.append(f"{found[name]:,.{digits}f} → {found[corrected(name)]:,.{digits}f}")
            row.append("undefined" if isnan(found[loss(name)]) else percent(found[loss(name)], 1))
        table.add_row(str(folder), *row)
    if not measured:
        return failed
    terminal.out.print(table)
    facts = {run.record.task.name: run for run in measured}
    each = "; ".join("{} [{:,g}, {:,g}]".format(task, *fixed_interval(run)) for task, run in facts.items())
    terminal.out.print(
        f"uncorrected → corrected. QD scores and losses are on the fixed interval: {each}. "
        "Loss is undefined if the uncorrected value is ≤ 0.",
        soft_wrap=True,
    )
    for remark in filter(None, (run.record.facts.remark_on_max_fitness for run in facts.values())):
        terminal.out.print(remark, soft_wrap=True)
    if lost:
        terminal.out.print(
            f"{lost:,} elites had an invalid re-evaluation: they are not in the corrected archives."
        )
    results = dict.fromkeys(os.path.relpath(folder.absolute().parent.parent) for folder in folders)
    say_next("compare", [Path(path) for path in results])
    return failed
