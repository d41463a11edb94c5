"""The command `export`: policies for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import qdbench
from qdbench.cli import terminal
from qdbench.cli.app import Trust, app
from qdbench.cli.simulate import CellChoice, EliteChoice, chosen_elite
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench import ExportedPolicy

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
All = Annotated[bool, typer.Option("--all", help="Export all elites into one file.")]
To = Annotated[
    Literal["npz", "onnx", "torch"],
    typer.Option("--to", help="For NumPy (.npz), ONNX (.onnx) or PyTorch (.safetensors)."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write this file.", show_default="policy.npz, policies.npz with --all, …"
    ),
]
Mjcf = Annotated[
    Path | None,
    typer.Option(
        "--mjcf",
        metavar="FILE.xml",
        help="Also write the robot to a file of its own.",
        show_default="only inside the exported file",
    ),
]


@app.command()
def export(
    run: Run,
    elite: EliteChoice = None,
    cell: CellChoice = None,
    every: All = False,
    to: To = "npz",
    out: Out = None,
    mjcf: Mjcf = None,
    trust: Trust = False,
) -> None:
    """Write a policy of a run, or all, to a file that other programs can use.

    It holds the network, the layout of the observation, the order of the actuators, all facts about the task,
    and the robot's MJCF. docs/exporting.md shows how to run it with NumPy, ONNX Runtime, PyTorch and MuJoCo.
    """
    from qdbench.exports.describing import policies_of
    from qdbench.exports.exporting import target, write

    if every and (elite is not None or cell is not None):
        raise InvalidInput("give --all, --elite or --cell, not several of them")
    chosen, place = chosen_elite(elite, cell)
    path, body = target(to, out, mjcf, several=every)
    policy = policies_of(qdbench.load(run), "all" if every else chosen, place, trust=trust)
    _print_facts(policy)
    size = policy.solutions.nbytes
    if size > 10e6:
        terminal.out.print(f"Writing {len(policy):,} policies, {size / 1e6:,.1f} MB …")
    write(policy, path, body)
    for written in filter(None, (path, body)):
        terminal.out.print(f"Written: {written} ({written.stat().st_size / 1e3:,.1f} kB)", soft_wrap=True)
    terminal.out.print(f"Next, in Python: qdbench.load_policy({str(path)!r})", soft_wrap=True)


def _print_facts(policy: ExportedPolicy) -> None:
    facts, elites = policy.facts, policy.elites
    table = terminal.table("observation", "entries", "factor", "unit")
    for block in facts.observation:
        table.add_row(block.name, f"{block.start}:{block.stop}", f"{block.factor:g}", block.unit)
    terminal.out.print(table)
    actions = ", ".join(actuator.name for actuator in facts.actions)
    terminal.out.print(f"{len(facts.actions)} actions every {facts.robot.control_step:g} s: {actions}")
    name, version = facts.task.name, facts.task.version
    if len(policy) > 1:
        low, high = elites.fitness.min(), elites.fitness.max()
        return terminal.out.print(
            f"{name} (version {version}): {len(policy):,} policies, fitness {low:.3f} to {high:.3f}"
        )
    descriptor = ", ".join(f"{x:.3f}" for x in elites.descriptors[0])
    return terminal.out.print(
        f"{name} (version {version}), cell {policy.cells[0]}, evaluation {elites.evaluations[0, 0]:,}: "
        f"fitness {elites.fitness[0]:.3f}, descriptor ({descriptor})",
        soft_wrap=True,
    )
