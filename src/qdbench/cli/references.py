"""The command `references`: list the reference results, and make such from runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qdbench.cli import terminal
from qdbench.cli.app import AsJson, app
from qdbench.cli.suite import ReferencesFolder
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.store.reference_file import Reference

references_app = typer.Typer(invoke_without_command=True)
app.add_typer(references_app, name="references")


@references_app.callback(help="List the reference results; `references add` makes such from finished runs.")
def references(context: typer.Context, folder: ReferencesFolder = None, as_json: AsJson = False) -> None:
    """List the reference results, or do what a sub-command says."""
    if context.invoked_subcommand is not None:
        if folder is not None or as_json:
            raise InvalidInput("options of the list come without a sub-command; give --references after it")
        return None
    from qdbench.paper.references import usable_references

    found = usable_references(folder)
    if as_json:
        return terminal.print_json(
            {"references": [_facts(one) for one in found.found], "problems": list(found.problems)}
        )
    for sentence in found.problems:
        terminal.err.print(f"warning: {sentence}", soft_wrap=True)
    if not found.found:
        return terminal.out.print(
            "There are no reference results yet. `qdbench references add RUNS... --to DIR` makes them from "
            "finished runs of `qdbench suite`.",
            soft_wrap=True,
        )
    table = terminal.table(
        "scale", "task", "algorithm", "seeds", "corrected QD score (mean)", "MuJoCo", "date", "CPU"
    )
    for one in found.found:
        facts = _facts(one)
        score = facts["means"]["corrected_qd_score"]
        table.add_row(
            f"{one.scale.name} {one.scale.version}", one.task.name, one.variant, facts["seeds"],
            "-" if score is None else f"{score:,.4g}", facts["mujoco"], one.date, facts["cpu"],
        )  # fmt: skip
    terminal.out.print(table)
    return terminal.out.print(
        f"{len(found.found)} files. All provenance: --json. Use: qdbench suite ALGORITHM"
    )


def _facts(one: Reference) -> dict[str, Any]:
    from math import fsum, isnan

    from qdbench.seeds import seeds_text
    from qdbench.store.plain import as_json

    where = one.last_environment
    columns = {name: [one.values_of(run)[name] for run in one.runs] for name in one.metrics}
    known = {name: [v for v in values if not isnan(v)] for name, values in columns.items()}
    return {
        "file": one.where,
        "scale": as_json(one.scale),
        "task": as_json(one.task),
        "algorithm": as_json(one.algorithm),
        "name": one.name,
        "seeds": seeds_text(run.seed for run in one.runs),
        "means": {name: fsum(values) / len(values) if values else None for name, values in known.items()},
        "target": as_json(one.target),
        "qdbench": where.qdbench,
        "mujoco": where.mujoco,
        "numpy": where.numpy,
        "cpu": where.cpu,
        "date": one.date,
        "command": one.command,
        "times_comparable": one.times_comparable,
    }


@references_app.command()
def findings(
    folder: ReferencesFolder = None,
    numbers: Annotated[
        bool, typer.Option("--numbers/--no-numbers", help="Also print criteria and numbers.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge the paper's findings on the reference results of its task."""
    from qdbench.paper.references import findings_on_references, references_of_today
    from qdbench.store.plain import as_json as plain

    everything = references_of_today(folder)
    for sentence in everything.problems:
        terminal.err.print(f"warning: {sentence}", soft_wrap=True)
    judged = findings_on_references(everything)
    if as_json:
        return terminal.print_json(plain(judged))
    if judged.about:
        terminal.out.print(judged.about, style="bold", soft_wrap=True)
    for one in judged.findings:
        terminal.out.print(f"{one.verdict:<14}{one.claim}", soft_wrap=True)
        for sentence in (one.criterion, *one.numbers) if numbers else ():
            terminal.out.print(f"{'':<14}  {sentence}", soft_wrap=True)
    more = "Criteria and numbers: --numbers. To decide more: qdbench reproduce --scale laptop"
    return terminal.out.print(judged.why_none or more, soft_wrap=True)


@references_app.command()
def add(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUNS...", help="Run folders, or folders that contain run folders."),
    ],
    to: Annotated[Path, typer.Option(metavar="DIR", help="Write the files into this folder.")] = Path(
        "references"
    ),
    times_comparable: Annotated[
        bool,
        typer.Option(
            "--times-comparable/--no-times-comparable",
            help="Whether the machine did nothing else while these runs were made.",
        ),
    ] = False,
) -> None:
    """Write reference results from finished runs that are exactly of a scale; others are refused."""
    from qdbench.paper.references import add_references

    with terminal.progress("measuring", "runs") as progress:
        paths = add_references(runs, to, times_comparable=times_comparable, progress=progress)
    for path in paths:
        terminal.out.print(f"Written: {path} ({path.stat().st_size / 1000:,.1f} kB)", soft_wrap=True)
    terminal.out.print(f"Next: qdbench references --references {to}", soft_wrap=True)
