"""Commands about tasks and single evaluations: tasks, evaluate, rollout, bench."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Annotated, Any
from zipfile import BadZipFile

import typer

import qdbench
from qdbench import terminal
from qdbench.cli.app import (
    AsJson,
    EpisodeLength,
    RandomCount,
    ResetNoise,
    Seed,
    SolutionsFile,
    TaskName,
    Workers,
    app,
    chosen_task,
    command_line,
    require_writable,
)
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from qdbench import RobotTask, Task
    from qdbench.policy import Parameters
    from qdbench.seeds import Seeds


@app.command()
def tasks(as_json: AsJson = False) -> None:
    """List the nine tasks: the paper's Table 1."""
    if as_json:
        return terminal.print_json([_facts(task) for task in qdbench.TASKS.values()])
    table = terminal.table(
        "task", "version", "observations", "actions", "parameters", "descriptor", "cells", "fitness within"
    )
    for task in qdbench.TASKS.values():
        low, high = task.descriptor_bounds[0]
        numbers = (task.version, task.policy.sizes[0], task.policy.sizes[-1], task.n_parameters)
        table.add_row(
            task.name,
            *(f"{number:,}" for number in numbers),
            f"{len(task.cells)}-D in [{low:g}, {high:g}]",
            "x".join(map(str, task.cells)),
            "[{:,g}, {:,g}]".format(*task.fitness_bounds),
        )
    terminal.out.print(table)
    return terminal.out.print("Next: qdbench evaluate ant_omni --random 256")


@app.command()
def evaluate(
    task_name: TaskName,
    solutions_file: SolutionsFile = None,
    random: RandomCount = None,
    seed: Seed = 0,
    episode_length: EpisodeLength = None,
    reset_noise: ResetNoise = None,
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write all numbers to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate solutions from a file, or fresh random policies, one episode each."""
    import numpy as np

    task = chosen_task(task_name, episode_length, reset_noise)
    solutions, seeds = _solutions(task, solutions_file, random, seed)
    if out is not None:
        require_writable(out, ".npz")
    start = time.perf_counter()
    with terminal.progress(f"evaluating {task.name}", "evaluations") as progress:
        evaluation = task.evaluate(solutions, seeds, workers=workers, progress=progress)
    seconds = time.perf_counter() - start
    columns = {
        "fitness": evaluation.fitness,
        "descriptors": evaluation.descriptors,
        "steps": evaluation.steps,
        "valid": evaluation.valid,
        "seeds": seeds,
        **evaluation.terms,
    }
    if out is not None:
        from qdbench.experiments.files import write_npz

        write_npz(out, {**_provenance(task), **columns})
    if as_json:
        numbers = {name: values.tolist() for name, values in columns.items()}
        return terminal.print_json({**_provenance(task), "seconds": seconds, **numbers})

    _print_evaluation(task, columns, seconds)
    if evaluation.valid.any() and isinstance(task, qdbench.RobotTask):
        options = {
            "--solutions": solutions_file,
            "--random": random,
            "--seed": seed,
            "--episode-length": episode_length,
            "--reset-noise": reset_noise,
            "--index": int(np.nanargmax(evaluation.fitness)),
        }
        terminal.out.print(f"Next: {command_line('rollout', task_name, options)}", soft_wrap=True)
    if out is not None:
        terminal.out.print(f"Written: {out}")
    return None


@app.command()
def rollout(
    task_name: TaskName,
    solutions_file: SolutionsFile = None,
    random: RandomCount = None,
    seed: Seed = 0,
    index: Annotated[int | None, typer.Option(min=0, help="Which solution. [default: the fittest]")] = None,
    episode_length: EpisodeLength = None,
    reset_noise: ResetNoise = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="A picture (.png, .svg, .pdf) or all numbers (.npz).")
    ] = Path("episode.png"),
) -> None:
    """Draw one solution's episode, or save it step by step.

    Solutions and seeds are those of `qdbench evaluate` with the same options.
    """
    task = chosen_task(task_name, episode_length, reset_noise)
    solutions, seeds = _solutions(task, solutions_file, random, seed)
    if index is not None and index >= len(solutions):
        raise InvalidInput(f"--index is {index}, but there are {len(solutions)} solutions, numbered from 0")
    if not isinstance(task, qdbench.RobotTask):
        raise InvalidInput(f"{task.name} has no robot whose episode could be drawn")
    require_writable(out, ".png", ".svg", ".pdf", ".npz")
    if out.suffix != ".npz" and find_spec("matplotlib") is None:
        raise InvalidInput("drawing needs matplotlib: pip install 'qdbench[plot]', or give --out FILE.npz")
    if index is None:
        with terminal.progress(f"evaluating {task.name}", "evaluations") as progress:
            fitness = task.evaluate(solutions, seeds, progress=progress).fitness
        index = max(range(len(fitness)), key=lambda i: -math.inf if math.isnan(fitness[i]) else fitness[i])
    episode = task.rollout(solutions[index], int(seeds[index]))
    if out.suffix == ".npz":
        from qdbench.experiments.files import write_npz

        fields = {**_provenance(task), **vars(episode), **episode.terms}
        del fields["terms"]
        write_npz(out, fields)
    else:
        from qdbench.report.episodes import draw_episode

        draw_episode(task, episode, out)
    descriptor = ", ".join(f"{x:.3f}" for x in episode.descriptor)
    end = f"fitness {episode.fitness:.3f}" if episode.valid else "then the simulation diverged"
    terminal.out.print(f"{task.name}, solution {index}: {episode.steps} steps, {end}")
    terminal.out.print(f"descriptor ({descriptor})")
    terminal.out.print(f"Written: {out}")


@app.command()
def bench(
    task_names: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK]...", help="Default: all nine.")
    ] = None,
    episode_length: Annotated[int, typer.Option(metavar="T", help="Control steps of a whole episode.")] = 250,
    repeats: Annotated[int, typer.Option(min=1, help="Paired repeats; medians are reported.")] = 7,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Measure simulation speed against MuJoCo's own.

    128 random policies per worker: as they live, and as whole episodes (termination off). The raw
    limit replays the recorded controls through Batch.step, nothing else, in turns with the real thing.
    """
    from qdbench.simulation.bench import benchmark
    from qdbench.tasks.contract import checked_workers

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
        "task", "lived: evals/s", "steps/s", "whole: evals/s", "steps/s", "physics/s", "raw steps/s",
        "whole/raw", "quartiles", "speed-up", "raw's", "peak MB",
    )  # fmt: skip
    for r in results:
        table.add_row(
            r.task,
            *(f"{x:,.0f}" for x in (r.as_lived.evaluations, r.as_lived.control_steps)),
            *(f"{x:,.0f}" for x in (r.whole.evaluations, r.whole.control_steps, r.whole.physics_steps)),
            f"{r.raw.control_steps:,.0f}",
            f"{r.ratio:.2f}",
            " … ".join(f"{x:.2f}" for x in r.ratio_quartiles),
            *(f"{x:.2f}" for x in (r.scaling, r.raw_scaling)),
            f"{r.peak_memory_mb:,.0f}",
        )
    terminal.out.print(table)
    return terminal.out.print(
        f"{results[0].solutions} random policies, T = {episode_length}, {results[0].workers} workers, "
        f"median of {repeats}; speed-up: all workers over one. What it means: docs/performance.md"
    )


def _facts(task: RobotTask) -> dict[str, Any]:
    return {
        "task": task.name,
        "version": task.version,
        "robot": task.robot.name,
        "observations": task.policy.sizes[0],
        "actions": task.policy.sizes[-1],
        "parameters": task.n_parameters,
        "descriptor_dimensions": len(task.cells),
        "cells": task.cells,
        "descriptor_bounds": task.descriptor_bounds,
        "fitness_bounds": task.fitness_bounds,
        "episode_length": task.episode_length,
    }


def _robot_task(name: str, episode_length: int) -> RobotTask:
    task = chosen_task(name, episode_length, None)
    if not isinstance(task, qdbench.RobotTask):
        raise InvalidInput(f"{task.name} has no physics to measure")
    return task


def _solutions(task: Task, file: Path | None, n_random: int | None, seed: int) -> tuple[Parameters, Seeds]:
    import numpy as np

    from qdbench.tasks.contract import checked_count, checked_solutions

    if (file is None) == (n_random is None):
        raise InvalidInput("give either --solutions FILE.npy or --random N")
    if file is None:
        n = checked_count("--random", n_random or 0)
        solutions = task.random_solutions(n, qdbench.stream(seed, "solutions"))
    else:
        try:
            solutions = np.load(file, allow_pickle=False, mmap_mode="r")
        except (OSError, ValueError, EOFError, SyntaxError, BadZipFile, TokenError) as error:
            raise InvalidInput(f"cannot read {str(file)!r} as an .npy array: {error}") from None
        checked_solutions(task.name, solutions, task.n_parameters)
        checked_count(f"the number of solutions in {str(file)!r}", len(solutions))
    return solutions, qdbench.evaluation_seeds(seed, len(solutions))


def _provenance(task: Task) -> dict[str, Any]:
    """Return what a result needs to be told comparable later."""
    import platform

    import mujoco
    import numpy as np

    return {
        "task": task.name,
        "version": task.version,
        "fingerprint": task.fingerprint,
        "qdbench": qdbench.__version__,
        "mujoco": mujoco.mj_versionString(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }


def _print_evaluation(task: Task, columns: dict[str, np.ndarray[Any, Any]], seconds: float) -> None:
    steps, valid = columns["steps"], columns["valid"]
    terminal.out.print(f"{len(steps):,} evaluations of {task.name} (fingerprint {task.fingerprint})")
    terminal.out.print(
        f"{seconds:.2f} s: {len(steps) / seconds:,.0f} evaluations/s, "
        f"{steps.sum() / seconds:,.0f} control steps/s; {len(valid) - valid.sum()} diverged"
    )
    if valid.any():
        terminal.out.print(_summary(columns))


def _summary(columns: dict[str, np.ndarray[Any, Any]]) -> Table:
    import numpy as np

    table = terminal.table("", "lowest", "median", "highest")
    valid = columns["valid"]
    rows = {name: x for name, x in columns.items() if x.ndim == 1 and name not in ("valid", "seeds")}
    rows |= {f"descriptor {i + 1}": x for i, x in enumerate(columns["descriptors"].T)}
    for name, values in rows.items():
        low, middle, high = np.percentile(values[valid], (0, 50, 100))
        table.add_row(name, f"{low:,.3f}", f"{middle:,.3f}", f"{high:,.3f}")
    return table
