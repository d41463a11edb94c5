"""The commands that make runs: `run` and `resume`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qdbench.cli import terminal
from qdbench.cli.app import (
    EpisodeLength,
    ResetNoise,
    TaskName,
    TaskSettings,
    Trust,
    Workers,
    app,
    chosen_task,
)
from qdbench.cli.outcomes import carry_out
from qdbench.cli.run_options import (
    AlgorithmNames,
    AlgorithmSettings,
    BatchSize,
    ChangedCode,
    CheckpointEvery,
    Elsewhere,
    Evaluations,
    Jobs,
    NCorrections,
    NewCorrections,
    NewEvaluations,
    NewReevaluations,
    NewSeconds,
    NReevaluations,
    OnCluster,
    OneSeed,
    OutFolder,
    Seconds,
    SeveralSeeds,
    VariantName,
)
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.experiments.variants import AlgorithmVariant


@app.command()
def run(
    task_name: TaskName,
    algorithm_names: AlgorithmNames = None,
    seed: OneSeed = None,
    seeds: SeveralSeeds = None,
    evaluations: Evaluations = None,
    seconds: Seconds = None,
    batch_size: BatchSize = None,
    settings: AlgorithmSettings = None,
    episode_length: EpisodeLength = None,
    reset_noise: ResetNoise = None,
    task_settings: TaskSettings = None,
    out: OutFolder = Path("results"),
    name: VariantName = "",
    corrections: NCorrections = 0,
    reevaluations: NReevaluations = 50,
    workers: Workers = None,
    jobs: Jobs = 1,
    on: OnCluster = None,
    checkpoint_every: CheckpointEvery = 30.0,
    elsewhere: Elsewhere = False,
    changed_code: ChangedCode = False,
) -> None:
    """Run algorithms on a task. The same command continues interrupted runs.

    Finished runs are skipped, unfinished ones are resumed exactly. A larger --evaluations extends finished
    runs. Results are in FOLDER/TASK/ALGORITHM/seed-S.
    """
    from qdbench.experiments.job import Job
    from qdbench.experiments.plan import Plan
    from qdbench.experiments.runs import target_of
    from qdbench.experiments.variants import read_settings, variants
    from qdbench.experiments.where import settings_on

    target = target_of(evaluations, seconds, corrections, reevaluations)
    task = chosen_task(task_name, episode_length, reset_noise, task_settings)
    names = list(dict.fromkeys(algorithm_names or ["map_elites"]))
    size = [] if batch_size is None else [f"batch_size={batch_size}"]
    found = variants(names, read_settings([*(settings or []), *size]), name)
    plans = [
        Plan(
            task=task,
            task_source=task_name,
            algorithm=variant.algorithm,
            options=variant.options,
            seed=one,
            name=variant.name,
        )
        for variant in found
        for one in seed_list(seed, seeds)
    ]
    _tell_settings(found)
    todo = [Job(plan, plan.folder(out), target) for plan in plans]
    with settings_on(
        on,
        workers=workers,
        jobs=jobs,
        checkpoint_every=checkpoint_every,
        elsewhere=elsewhere,
        changed_code=changed_code,
    ) as how:
        carry_out(todo, how)


@app.command()
def resume(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that contain run folders.")
    ],
    evaluations: NewEvaluations = None,
    seconds: NewSeconds = None,
    corrections: NewCorrections = None,
    reevaluations: NewReevaluations = None,
    workers: Workers = None,
    jobs: Jobs = 1,
    on: OnCluster = None,
    checkpoint_every: CheckpointEvery = 30.0,
    elsewhere: Elsewhere = False,
    changed_code: ChangedCode = False,
    trust: Trust = False,
) -> None:
    """Continue runs to the end they were started with, or to a later one."""
    from qdbench.experiments.runs import recorded_job
    from qdbench.experiments.where import settings_on
    from qdbench.store.folder import run_folders
    from qdbench.store.record import CorrectionPlan, Target

    given = evaluations is not None or seconds is not None
    target = Target(evaluations, seconds) if given else None
    if reevaluations is not None and corrections is None:
        raise InvalidInput(
            "--reevaluations needs --corrections K; without both, a run is corrected as it was started"
        )
    correct = None if corrections is None else CorrectionPlan(corrections, reevaluations or 50)
    todo = [recorded_job(path, target, correct, trust=trust) for path in run_folders(runs)]
    with settings_on(
        on,
        workers=workers,
        jobs=jobs,
        checkpoint_every=checkpoint_every,
        elsewhere=elsewhere,
        changed_code=changed_code,
    ) as how:
        carry_out(todo, how)


def _tell_settings(found: list[AlgorithmVariant]) -> None:
    """Print which algorithm got which options."""
    from qdbench.store.record import variant_label

    if any(variant.given for variant in found):
        for variant in found:
            given = ", ".join(f"{key}={value}" for key, value in variant.given.items())
            label = variant_label(variant.algorithm, variant.name)
            terminal.out.print(f"{label}: {given or 'no option set'}", soft_wrap=True)


def seed_list(one: int | None, texts: Sequence[str] | None) -> list[int]:
    """Return the seeds that --seed or all --seeds (0-9 or 0,3,5-7) mean."""
    if not texts:
        return [one or 0]
    if one is not None:
        raise InvalidInput("give --seed or --seeds, not both")
    found: list[int] = []
    for part in ",".join(texts).split(","):
        match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InvalidInput(f"--seeds {part!r} is not a list of seeds; write 0-9 or 0,3,5-7")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first > 9999:
            raise InvalidInput(f"--seeds {part} means {last - first + 1} runs; give at most 10000")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))
