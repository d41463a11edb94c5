"""The commands about tasks and single evaluations: `tasks`, `evaluate` and `rollout`."""

from __future__ import annotations

import math
import time
from importlib.util import find_spec
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zipfile import BadZipFile

import typer

import qdbench
from qdbench.cli import terminal
from qdbench.cli.app import (
    AsJson,
    EpisodeLength,
    RandomCount,
    ResetNoise,
    Seed,
    SolutionsFile,
    TaskName,
    TaskSettings,
    Trust,
    Workers,
    app,
    chosen_task,
    command_line,
)
from qdbench.cli.run_options import whole_from
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from qdbench import Episode, FunctionTask, RobotTask, Task
    from qdbench.policy import Parameters
    from qdbench.seeds import Seeds


TaskOrRun = Annotated[
    str, typer.Argument(metavar="TASK|RUN", help="A task, as in `qdbench evaluate`, or a run folder.")
]
SolutionIndex = Annotated[
    int | None,
    typer.Option(
        parser=whole_from(0),
        metavar="I",
        help="For a task: row of the solution, from 0.",
        show_default="the fittest",
    ),
]
EliteChoice = Annotated[
    str | None,
    typer.Option(
        metavar="best|N",
        help="For a run: the best elite, or its row in the archive, from 0.",
        show_default="best",
    ),
]
CellChoice = Annotated[
    str | None,
    typer.Option(
        metavar="I,J",
        help="For a run: the elite of this cell, by its place along each dimension (3,7) or by its "
        "number (42).",
    ),
]
EpisodeFile = Annotated[
    Path,
    typer.Option(metavar="FILE", help="Write a picture (.png, .svg, .pdf) or all numbers (.npz)."),
]


@app.command()
def tasks(as_json: AsJson = False) -> None:
    """List the nine tasks (Table 1 of the paper), and those whose truth is known."""
    from qdbench.tasks.known_truth import KNOWN_TRUTH

    if as_json:
        known = [_known(task) for task in KNOWN_TRUTH.values()]
        return terminal.print_json([*(_facts(task) for task in qdbench.TASKS.values()), *known])
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
    terminal.out.print("\nTasks with known truth: functions without physics (docs/tasks.md)")
    others = terminal.table("task", "parameters", "descriptor", "cells", "reachable", "fitness within")
    for one in KNOWN_TRUTH.values():
        low, high = one.descriptor_bounds[0]
        others.add_row(
            one.name,
            str(one.n_parameters),
            f"{len(one.cells)}-D in [{low:g}, {high:g}]",
            "x".join(map(str, one.cells)),
            f"{one.reachable:.1%}",
            "[{:,.4g}, {:,.4g}]".format(*one.fitness_bounds),
        )
    terminal.out.print(others)
    return terminal.out.print("Next: qdbench evaluate ant_omni --random 256")


@app.command()
def evaluate(
    task_name: TaskName,
    solutions_file: SolutionsFile = None,
    random: RandomCount = None,
    seed: Seed = 0,
    episode_length: EpisodeLength = None,
    reset_noise: ResetNoise = None,
    task_settings: TaskSettings = None,
    workers: Workers = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write all numbers to this file.", show_default="print only"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate solutions from a file, or random ones, in one episode each."""
    import numpy as np

    task = chosen_task(task_name, episode_length, reset_noise, task_settings)
    solutions, seeds = _solutions(task, solutions_file, random, seed)
    if out is not None:
        from qdbench.store.files import require_writable

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
        from qdbench.store.files import write_npz

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
            "--task-set": task_settings,
            "--index": int(np.nanargmax(evaluation.fitness)),
        }
        terminal.out.print(f"Next: {command_line('rollout', task_name, options)}", soft_wrap=True)
    if out is not None:
        terminal.out.print(f"Written: {out}")
    return None


@app.command()
def rollout(
    task_or_run: TaskOrRun,
    solutions_file: SolutionsFile = None,
    random: RandomCount = None,
    seed: Seed = 0,
    index: SolutionIndex = None,
    elite: EliteChoice = None,
    cell: CellChoice = None,
    episode_length: EpisodeLength = None,
    reset_noise: ResetNoise = None,
    task_settings: TaskSettings = None,
    trust: Trust = False,
    out: EpisodeFile = Path("episode.png"),
) -> None:
    """Draw the episode of one solution, or save it step by step.

    For a task, solutions and seeds are those of `qdbench evaluate` with the same options. For a run, the
    episode is simulated again with the seed that the elite was found with.
    """
    from qdbench.store.files import require_writable

    require_writable(out, ".png", ".svg", ".pdf", ".npz")
    if out.suffix != ".npz" and find_spec("matplotlib") is None:
        raise InvalidInput("drawing needs matplotlib: pip install 'qdbench[plot]', or give --out FILE.npz")
    if Path(task_or_run).is_dir():
        others = (solutions_file, random, index, episode_length, reset_noise, task_settings)
        if any(other is not None for other in others) or seed:
            raise InvalidInput("for a run, only --elite, --cell, --trust and --out are allowed")
        robot_task, episode, what = _elite_episode(Path(task_or_run), elite, cell, trust)
    else:
        _refuse_missing_run(task_or_run)
        if elite is not None or cell is not None:
            raise InvalidInput(f"--elite and --cell need a run folder, but {task_or_run!r} is not a folder")
        task = chosen_task(task_or_run, episode_length, reset_noise, task_settings)
        solutions, seeds = _solutions(task, solutions_file, random, seed)
        if not isinstance(task, qdbench.RobotTask):
            raise InvalidInput(f"{task.name} has no robot, so there is no episode to draw; give a robot task")
        robot_task, index = task, _chosen_index(task, solutions, seeds, index)
        episode, what = task.rollout(solutions[index], int(seeds[index])), f"solution {index}"
    _write_episode(robot_task, episode, out)
    descriptor = ", ".join(f"{x:.3f}" for x in episode.descriptor)
    end = f"fitness {episode.fitness:.3f}" if episode.valid else "then the simulation diverged"
    terminal.out.print(f"{robot_task.name}, {what}: {episode.steps} steps, {end}", soft_wrap=True)
    terminal.out.print(f"descriptor ({descriptor})")
    terminal.out.print(f"Written: {out}")


def _refuse_missing_run(text: str) -> None:
    """Say so when a path leads to no folder: no task has a path as its name."""
    path = Path(text)
    if len(path.parts) > 1 and ":" not in path.name:
        what = f"{text!r} is a file" if path.exists() else f"there is no run folder {text!r}"
        raise InvalidInput(f"{what}; give the folder of a run, such as results/TASK/ALGORITHM/seed-0")


def _elite_episode(
    path: Path, elite: str | None, cell: str | None, trust: bool
) -> tuple[RobotTask, Episode, str]:
    """Return the episode of a run's elite, and what it is of."""
    from qdbench.experiments.replaying import elite_row

    chosen, place = chosen_elite(elite, cell)
    run = qdbench.load(path)
    task, row = run.make_task(trust=trust), elite_row(run.archive, chosen, place)
    episode = qdbench.replay(run, row, task=task)
    if not isinstance(task, qdbench.RobotTask):
        raise InvalidInput(f"{task.name} has no robot, so there is no episode to draw; give a robot task")
    evaluation, number = run.archive.evaluations[row, 0], run.archive.cells[row]
    return task, episode, f"elite {row} of {path} (evaluation {evaluation:,}, cell {number})"


def chosen_elite(elite: str | None, cell: str | None) -> tuple[int | Literal["best"], tuple[int, ...] | None]:
    """Return which elite is meant: its row or the best, and its cell if that is given."""
    if elite is not None and cell is not None:
        raise InvalidInput("give --elite or --cell, not both")
    try:
        place = None if cell is None else tuple(int(part) for part in cell.split(","))
        return "best" if elite in (None, "best") else int(elite or ""), place
    except ValueError:
        raise InvalidInput(
            f"{cell or elite!r} is not an elite; write --elite best, --elite 5 or --cell 3,7"
        ) from None


def _chosen_index(task: RobotTask, solutions: Parameters, seeds: Seeds, index: int | None) -> int:
    """Return the row of the solution: the given one, or the fittest."""
    if index is not None and index >= len(solutions):
        raise InvalidInput(f"--index is {index}, but there are {len(solutions)} solutions, numbered from 0")
    if index is not None:
        return index
    with terminal.progress(f"evaluating {task.name}", "evaluations") as progress:
        fitness = task.evaluate(solutions, seeds, progress=progress).fitness
    return max(range(len(fitness)), key=lambda i: -math.inf if math.isnan(fitness[i]) else fitness[i])


def _write_episode(task: RobotTask, episode: Episode, out: Path) -> None:
    if out.suffix == ".npz":
        from qdbench.store.files import write_npz

        fields = {**_provenance(task), **vars(episode), **episode.terms}
        del fields["terms"]
        write_npz(out, fields)
    else:
        from qdbench.reports.episodes import draw_episode

        draw_episode(task, episode, out)


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


def _known(task: FunctionTask) -> dict[str, Any]:
    return {
        "task": task.name,
        "version": task.version,
        "parameters": task.n_parameters,
        "descriptor_dimensions": len(task.cells),
        "cells": task.cells,
        "descriptor_bounds": task.descriptor_bounds,
        "fitness_bounds": task.fitness_bounds,
        "reachable": task.reachable,
    }


def _solutions(task: Task, file: Path | None, n_random: int | None, seed: int) -> tuple[Parameters, Seeds]:
    from qdbench.checks import checked_count, checked_solutions

    if (file is None) == (n_random is None):
        raise InvalidInput("give either --solutions FILE or --random N")
    if file is None:
        n = checked_count("--random", n_random or 0)
        solutions = task.random_solutions(n, qdbench.stream(seed, "solutions"))
    else:
        solutions = _read_solutions(file)
        checked_solutions(task.name, solutions, task.n_parameters)
        checked_count(f"the number of solutions in {str(file)!r}", len(solutions))
    return solutions, qdbench.evaluation_seeds(seed, len(solutions))


def _read_solutions(file: Path) -> Parameters:
    """Return the array of an .npy file, or the `solutions` of an .npz file such as a run's archive."""
    import numpy as np

    try:
        found = np.load(file, allow_pickle=False, mmap_mode="r")
        if isinstance(found, np.ndarray):
            return found
        with found:
            return np.asarray(found["solutions"])
    except (OSError, ValueError, EOFError, SyntaxError, KeyError, BadZipFile, TokenError) as error:
        raise InvalidInput(
            f"cannot read solutions from {str(file)!r}: {error}; give an .npy array, or an .npz file with an "
            "array `solutions`"
        ) from None


def _provenance(task: Task) -> dict[str, Any]:
    """Return what decides whether results are comparable."""
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
        terminal.out.print(_summary(task, columns))


def _summary(task: Task, columns: dict[str, np.ndarray[Any, Any]]) -> Table:
    import numpy as np

    from qdbench.tasks.contract import descriptor_names

    table = terminal.table("", "lowest", "median", "highest")
    valid = columns["valid"]
    rows = {name: x for name, x in columns.items() if x.ndim == 1 and name not in ("valid", "seeds")}
    rows |= dict(zip(descriptor_names(task), columns["descriptors"].T, strict=True))
    for name, values in rows.items():
        low, middle, high = np.percentile(values[valid], (0, 50, 100))
        table.add_row(name, f"{low:,.3f}", f"{middle:,.3f}", f"{high:,.3f}")
    return table
