"""The command `bench`: the simulation speed, compared with MuJoCo alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

import qdbench
from qdbench.cli import terminal
from qdbench.cli.app import AsJson, Workers, app, chosen_task
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench import RobotTask


@app.command()
def bench(
    task_names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="Tasks to measure.", show_default="all nine"),
    ] = None,
    episode_length: Annotated[int, typer.Option(metavar="T", help="Control steps of a full episode.")] = 250,
    repeats: Annotated[int, typer.Option(min=1, help="Number of paired repeats; medians are shown.")] = 7,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Measure the simulation speed, compared with MuJoCo alone.

    128 random policies per worker are simulated in terminating episodes (they end when the robot falls)
    and in full-length episodes (they do not). The raw limit replays the recorded actions of the full-length
    episodes through Batch.step alone. All are measured in turns.
    """
    from qdbench.checks import checked_workers
    from qdbench.simulation.bench import benchmark

    results = []
    chosen = [_robot_task(name, episode_length) for name in task_names or qdbench.TASKS]
    for task in chosen:
        with terminal.progress(f"measuring {task.name}", "repeats") as on_repeat:
            results.append(
                benchmark(task, workers=checked_workers(workers), repeats=repeats, on_repeat=on_repeat)
            )
    if as_json:
        return terminal.print_json([asdict(result) for result in results])
    table = terminal.table(
        "task", "terminating: evals/s", "steps/s", "full length: evals/s", "steps/s", "physics/s",
        "raw steps/s", "full/raw", "quartiles", "speed-up", "raw's", "peak MB",
    )  # fmt: skip
    for r in results:
        full = r.full_length
        table.add_row(
            r.task,
            *(f"{x:,.0f}" for x in (r.terminating.evaluations, r.terminating.control_steps)),
            *(f"{x:,.0f}" for x in (full.evaluations, full.control_steps, full.physics_steps)),
            f"{r.raw.control_steps:,.0f}",
            f"{r.ratio:.2f}",
            " … ".join(f"{x:.2f}" for x in r.ratio_quartiles),
            *(f"{x:.2f}" for x in (r.scaling, r.raw_scaling)),
            f"{r.peak_memory_mb:,.0f}",
        )
    terminal.out.print(table)
    return terminal.out.print(
        f"{results[0].solutions} random policies, {episode_length} steps per full episode, "
        f"{results[0].workers} workers, median of {repeats}. "
        "Speed-up: all workers compared with one. Details: docs/performance.md"
    )


def _robot_task(name: str, episode_length: int) -> RobotTask:
    task = chosen_task(name, episode_length, None, None)
    if not isinstance(task, qdbench.RobotTask):
        raise InvalidInput(f"{task.name} has no physics to measure; give a robot task")
    return task
