"""The command `reproduce`: the complete experiment of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import Replays, Workers, app
from qdbench.cli.compare import print_comparison
from qdbench.cli.measuring import filmed, measured
from qdbench.cli.outcomes import carry_out
from qdbench.cli.plot import print_figures
from qdbench.cli.run_options import CheckpointEvery, Elsewhere, Jobs, OnCluster

if TYPE_CHECKING:
    from qdbench.paper.reproduce import Reproduction


@app.command()
def reproduce(
    scale: Annotated[
        str,
        typer.Option(
            metavar="SCALE",
            help="smoke, laptop or paper: about 2 minutes, 2.5 hours, or many days on two cores.",
        ),
    ] = "smoke",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write everything into this folder.", show_default="results/SCALE"),
    ] = None,
    workers: Workers = None,
    jobs: Jobs = 1,
    on: OnCluster = None,
    checkpoint_every: CheckpointEvery = 30.0,
    replays: Replays = True,
    elsewhere: Elsewhere = False,
) -> None:
    """Repeat the paper's experiment: run, correct, compare, plot, and judge its findings.

    Algorithms: MAP-Elites, CVT-MAP-Elites and random search with two initialisations. Task: ant_omni.
    After an interruption, the same command continues. Several processes with the same command share the runs.
    """
    from qdbench.paper.reproduce import Where, folder_of, judge, make_runs, runs_of

    def say(sentence: str) -> None:
        terminal.out.print(sentence, soft_wrap=True)

    folder = folder_of(scale, out)
    how = Where(workers, jobs, on, elsewhere, checkpoint_every)
    if not make_runs(scale, folder, how, say=say, carry_out=carry_out):
        return
    runs = measured(runs_of(scale, folder), None, "fixed", "own")
    found = judge(runs, folder, filmed(runs) if replays else None)
    print_comparison(found.comparison)
    print_figures(found.measured, found.figures)
    _print_findings(found)


def _print_findings(found: Reproduction) -> None:
    from qdbench.paper.findings import CAVEAT

    terminal.out.print()
    for finding in found.findings:
        terminal.out.print(f"{finding.verdict.upper()}: {finding.claim}", style="bold", soft_wrap=True)
        for line in (finding.criterion, *finding.numbers):
            terminal.out.print(f"  {line}", soft_wrap=True)
    terminal.out.print(found.why_no_findings or CAVEAT, soft_wrap=True)
    others = ", ".join(str(path) for path in (found.verdicts, found.page))
    terminal.out.print(f"Written: {others}; all results are in {found.folder}", soft_wrap=True)
