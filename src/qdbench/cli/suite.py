"""The command `suite`: an algorithm on all tasks, beside the reference results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import Replays, Workers, app
from qdbench.cli.compare import print_table
from qdbench.cli.measuring import filmed
from qdbench.cli.outcomes import carry_out
from qdbench.cli.run import seed_list
from qdbench.cli.run_options import (
    AlgorithmSettings,
    ChangedCode,
    CheckpointEvery,
    Elsewhere,
    Jobs,
    OnCluster,
    VariantName,
)

if TYPE_CHECKING:
    from qdbench.paper.suite import SuitePlan, SuiteResult

ReferencesFolder = Annotated[
    Path | None,
    typer.Option(
        "--references",
        metavar="DIR",
        help="Also use the reference results in this folder.",
        show_default="those of this package",
    ),
]
ScaleName = Annotated[
    str,
    typer.Option(
        metavar="SCALE",
        help="quick, standard or paper: for one algorithm on two cores about ten minutes, two to three "
        "hours, or many weeks.",
    ),
]


@app.command()
def suite(
    algorithms: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM...",
            help="Names from `qdbench algorithms`, or package.module:Class for your own.",
        ),
    ],
    scale: ScaleName = "quick",
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="T,T",
            help="Only these tasks, separated by commas. May be repeated. The results are labelled as a "
            "part.",
            show_default="all nine",
        ),
    ] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="0-4",
            help="Seeds: report 0-4 or 0-9; tune on seeds from 100 up. May be repeated.",
            show_default="those of the scale: 0-4, for paper 0-9",
        ),
    ] = None,
    settings: AlgorithmSettings = None,
    name: VariantName = "",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write everything into this folder.", show_default="suite-SCALE in results"
        ),
    ] = None,
    references: ReferencesFolder = None,
    workers: Workers = None,
    jobs: Jobs = 1,
    on: OnCluster = None,
    checkpoint_every: CheckpointEvery = 30.0,
    elsewhere: Elsewhere = False,
    changed_code: ChangedCode = False,
    replays: Replays = True,
) -> None:
    """Run algorithms on the nine tasks by one protocol, and compare them with the reference results.

    It says beforehand how long it takes. After an interruption, the same command continues. Several processes
    with the same command share the runs. Results: suite.md, report.html, figures, tables, and all runs.
    """
    from qdbench.experiments.variants import read_settings, variants
    from qdbench.experiments.where import settings_on
    from qdbench.paper.suite import Entrant, judge_suite, make_suite_runs, measure_suite, suite_plan

    names = list(dict.fromkeys(algorithms))
    entrants = [
        Entrant(one.algorithm, one.name, one.options, "batch_size" in one.given)
        for one in variants(names, read_settings(settings or []), name)
    ]
    chosen = [task.strip() for words in tasks or () for task in words.split(",") if task.strip()]
    numbers = seed_list(None, seeds) if seeds else None
    plan = suite_plan(entrants, scale, chosen, numbers, out, references)

    def say(sentence: str) -> None:
        terminal.out.print(sentence, soft_wrap=True)

    with settings_on(
        on,
        workers=workers,
        jobs=jobs,
        checkpoint_every=checkpoint_every,
        elsewhere=elsewhere,
        changed_code=changed_code,
    ) as how:
        finished = make_suite_runs(plan, how, say, partial(carry_out, brief=True))
    if not finished:
        return
    with terminal.progress("measuring", "runs") as progress:
        measured = measure_suite(plan, progress)
    for warning in measured.warnings:
        terminal.err.print(f"warning: {warning}", style="bold red", soft_wrap=True)
    _print_result(plan, judge_suite(plan, measured, filmed(measured) if replays else None))


def _print_result(plan: SuitePlan, found: SuiteResult) -> None:
    from qdbench.analysis.table_files import FILES

    terminal.out.print()
    terminal.out.print(found.label, style="bold", soft_wrap=True)
    for table in found.tables:
        print_table(table)
    for sentence in _about_references(plan, found):
        terminal.out.print(sentence, soft_wrap=True)
    names = [found.summary.name, found.page.name, "figures/suite.png", *FILES]
    terminal.out.print(f"Written into {found.folder}: {', '.join(names)}", soft_wrap=True)
    terminal.out.print(f"Next: {_next(plan, found)}", soft_wrap=True)


def _about_references(plan: SuitePlan, found: SuiteResult) -> Sequence[str]:
    missing = found.without_references
    told = []
    if missing:
        which = "any task" if len(missing) == len(plan.tasks) else ", ".join(missing)
        told.append(
            f"There are no reference results for {which} at the {plan.scale.label}. Your own results are "
            "shown alone."
        )
    notes = [note for task in found.comparison.tasks for note in task.notes]
    left = [note for note in notes if "is left out:" in note or "made with MuJoCo" in note]
    return [*told, *dict.fromkeys(left), *plan.references.problems]


def _next(plan: SuitePlan, found: SuiteResult) -> str:
    best = found.measured.tasks[0].variants[0].typical.run.path
    look = shlex.join(["qdbench", "show", str(best)])
    return f"open {found.page} in a browser; {look}; the table for a paper is {found.folder / 'compare.tex'}"
