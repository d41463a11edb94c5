"""Commands about runs: algorithms, run, resume."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import qdbench
from qdbench import terminal
from qdbench.cli.app import (
    AsJson,
    EpisodeLength,
    ResetNoise,
    TaskName,
    Workers,
    app,
    chosen_task,
)
from qdbench.errors import InvalidInput, QdbenchError, UnknownName

if TYPE_CHECKING:
    from qdbench.experiments.loop import Snapshot, Target
    from qdbench.experiments.runs import Job
    from qdbench.experiments.session import Outcome, Settings

EXIT_FAILED = 1

AlgorithmNames = Annotated[
    list[str] | None,
    typer.Option(
        "--algorithm",
        metavar="A",
        help="A name from `qdbench algorithms`, or package.module:Class; repeat for several. "
        "[default: map_elites]",
    ),
]
Jobs = Annotated[
    int, typer.Option(min=1, help="Runs at a time, each on its share of the cores; times get incomparable.")
]
CheckpointEvery = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Time between checkpoints, at least.")
]
NCorrections = Annotated[
    int,
    typer.Option(min=0, metavar="K", help="Re-evaluate all elites at K moments, off the clock."),
]
NReevaluations = Annotated[int, typer.Option(min=1, metavar="N", help="Re-evaluations of each elite.")]
Elsewhere = Annotated[
    bool, typer.Option("--elsewhere", help="Continue a run begun on another CPU or with other versions.")
]


@app.command()
def algorithms(as_json: AsJson = False) -> None:
    """List the algorithms with their options and sources."""
    from qdbench.algorithms import registry

    found = [_about_algorithm(name, where) for name, where in registry.algorithms().items()]
    if as_json:
        return terminal.print_json(found)
    for entry in found:
        terminal.out.print(f"{entry['algorithm']}", style="bold")
        terminal.out.print(f"  {entry['what']}")
        if entry["source"]:
            terminal.out.print(f"  Source: {entry['source']}")
        for name, option in entry["options"].items():
            terminal.out.print(f"  --set {name}={option['default']}  ({option['type']})")
    return terminal.out.print("Next: qdbench run ant_omni --algorithm map_elites --evaluations 20000")


def _about_algorithm(name: str, where: str) -> dict[str, Any]:
    from qdbench.algorithms import registry

    try:
        factory = registry.find(name)
    except InvalidInput as error:  # somebody's installed plug-in is broken: the others are not
        return {"algorithm": name, "class": where, "what": str(error), "source": "", "options": {}}
    lines = [line.strip() for line in (factory.__doc__ or "").strip().splitlines()] or [""]
    sources = [line.removeprefix("Source: ") for line in lines if line.startswith("Source: ")]
    options = {
        option.name: {"type": option.type_name, "default": option.default}
        for option in registry.options(factory).values()
    }
    source = sources[0] if sources else ""
    return {"algorithm": name, "class": where, "what": lines[0], "source": source, "options": options}


@app.command()
def run(
    task_name: TaskName,
    algorithm_names: AlgorithmNames = None,
    seed: Annotated[int | None, typer.Option(min=0, help="One replication. [default: 0]")] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0-9", help="Several: 0-9, or 0,3,5-7.")] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop with the iteration that reaches N.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, metavar="X", help="Stop with the iteration that reaches X seconds.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="B", help="The same as --set batch_size=B. [default: 256]")
    ] = None,
    episode_length: EpisodeLength = None,
    reset_noise: ResetNoise = None,
    workers: Workers = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="OPTION=VALUE", help="An algorithm's option; repeat.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results go.")] = Path("results"),
    name: Annotated[
        str, typer.Option(help="Put the runs beside others of the same algorithm, as ALGORITHM-NAME.")
    ] = "",
    corrections: NCorrections = 0,
    reevaluations: NReevaluations = 50,
    jobs: Jobs = 1,
    checkpoint_every: CheckpointEvery = 30.0,
    elsewhere: Elsewhere = False,
) -> None:
    """Run algorithms on a task; the same command continues what was interrupted.

    Finished runs are skipped, unfinished ones resumed to the same bits, and a larger --evaluations
    extends finished ones. Results are in FOLDER/TASK/ALGORITHM/seed-S.
    """
    from qdbench.experiments.loop import Corrections, Target
    from qdbench.experiments.plan import Plan
    from qdbench.experiments.runs import Job

    if evaluations is None and seconds is None:
        raise InvalidInput("a run needs an end: give --evaluations N or --seconds X")
    if corrections and evaluations is None:
        raise InvalidInput("--corrections are evenly spaced in evaluations: give --evaluations N too")
    task = chosen_task(task_name, episode_length, reset_noise)
    names = list(dict.fromkeys(algorithm_names or ["map_elites"]))
    chosen = _settings([*(settings or []), *([] if batch_size is None else [f"batch_size={batch_size}"])])
    plans = [
        Plan(task=task, task_source=task_name, algorithm=a, options=options, seed=s, name=name)
        for a, options in _configured(names, chosen).items()
        for s in _seed_list(seed, seeds)
    ]
    target = Target(evaluations, seconds, Corrections(corrections, reevaluations))
    carry_out(
        [Job(plan, plan.folder(out), target) for plan in plans],
        _settings_of_runs(workers, jobs, checkpoint_every, elsewhere),
    )


@app.command()
def resume(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    evaluations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="A new end. [default: as begun]")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, metavar="X", help="Likewise, in seconds.")] = None,
    corrections: Annotated[
        int | None,
        typer.Option(min=0, metavar="K", help="Re-evaluate at K moments. [default: as begun]"),
    ] = None,
    reevaluations: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of each elite, with --corrections. [default: 50]"),
    ] = None,
    workers: Workers = None,
    jobs: Jobs = 1,
    checkpoint_every: CheckpointEvery = 30.0,
    elsewhere: Elsewhere = False,
) -> None:
    """Continue runs to the end they were begun with, or to a farther one."""
    from qdbench.experiments.loop import Corrections, Target
    from qdbench.experiments.runs import recorded_job

    given = evaluations is not None or seconds is not None
    target = Target(evaluations, seconds) if given else None
    if reevaluations is not None and corrections is None:
        raise InvalidInput("--reevaluations goes with --corrections K; else a run is corrected as begun")
    correct = None if corrections is None else Corrections(corrections, reevaluations or 50)
    carry_out(
        [recorded_job(path, target, correct) for path in runs],
        _settings_of_runs(workers, jobs, checkpoint_every, elsewhere),
    )


def _settings_of_runs(workers: int | None, jobs: int, checkpoint_every: float, elsewhere: bool) -> Settings:
    from qdbench.experiments.session import Settings
    from qdbench.tasks.contract import checked_workers

    each = checked_workers(workers) if workers is not None else max(1, checked_workers(None) // jobs)
    return Settings(workers=each, jobs=jobs, checkpoint_every=checkpoint_every, elsewhere=elsewhere)


def carry_out(jobs: Sequence[Job], settings: Settings) -> None:
    """Run all, show how they come along and what came out, and exit with what that means."""
    from qdbench.experiments.interrupt import Interrupt
    from qdbench.experiments.runs import check_jobs, execute_all
    from qdbench.experiments.session import Outcome

    check_jobs(jobs, settings)
    interrupt = Interrupt()
    with interrupt.listening(), terminal.bars() as bars:

        def report(job: Job, news: Snapshot | Outcome) -> None:
            if isinstance(news, Outcome):
                bars(job.plan.label, None, 1, f"{news.status}{': ' * bool(news.reason)}{news.reason}")
            else:
                bars(job.plan.label, *_progress(job.target, news))

        outcomes = execute_all(jobs, settings, interrupt, report)
    _print_outcomes(jobs, outcomes)
    if interrupt.signal is not None:
        left = len(jobs) - sum(outcome.status in ("finished", "skipped") for outcome in outcomes)
        terminal.err.print(f"stopped; {left} of {len(jobs)} runs are unfinished: the same command continues")
        raise typer.Exit(128 + interrupt.signal)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in failed:
        terminal.err.print(f"failed: {outcome.folder}: {outcome.reason}", soft_wrap=True)
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _progress(target: Target, news: Snapshot) -> tuple[float, float, str]:
    """Return how far a run is, how far it has to go, and its numbers in words."""
    totals, scores = news.totals, news.scores
    evaluations = totals.evaluations + news.in_flight
    shares = [evaluations / target.evaluations] if target.evaluations else []
    shares += [totals.seconds / target.seconds] if target.seconds else []
    if news.correcting is not None:
        done, needed = news.correcting
        return min(1.0, max(shares)), 1.0, f"re-evaluating the elites: {done:,} of {needed:,}"
    of_cells = f" of {news.n_cells:,}" if news.n_cells else ""
    rate = totals.evaluations / totals.seconds if totals.seconds else 0.0
    words = (
        f"{evaluations:,} evaluations {rate:,.0f}/s · coverage {scores.coverage:,}{of_cells} "
        f"· QD {scores.qd_score:,.1f} · max {scores.max_fitness:,.1f}"
    )
    return min(1.0, max(shares)), 1.0, words


def _print_missing_moments(job: Job, outcome: Outcome) -> None:
    """Say where a run that is done was not corrected as often as was asked for."""
    from qdbench.experiments.corrections import moments_corrected
    from qdbench.experiments.store import RunFolder

    asked = job.target.corrections.moments
    if not asked or outcome.status not in ("finished", "skipped"):
        return
    made = len(moments_corrected(RunFolder(outcome.folder)))
    if made < asked:
        terminal.err.print(
            f"{outcome.folder}: corrected at {made} of {asked} moments; one that had passed before it was "
            "asked for cannot be made up, and an iteration that passes several is one",
            soft_wrap=True,
        )


def _print_outcomes(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    from qdbench.analysis.warnings_of_runs import about_max_fitness

    table = terminal.table("run", "status", "evaluations", "seconds", "coverage", "QD score", "max fitness")
    labels = [job.plan.label for job in jobs]
    for job, outcome in zip(jobs, outcomes, strict=True):
        numbers = ["", "", ""]
        if outcome.status not in ("failed", "not begun") and outcome.totals.iteration:
            try:
                last = {key: values[-1] for key, values in qdbench.load(outcome.folder).metrics.items()}
                numbers = [f"{last['coverage']:,}", f"{last['qd_score']:,.2f}", f"{last['max_fitness']:,.2f}"]
            except (QdbenchError, OSError) as error:
                terminal.err.print(str(error), soft_wrap=True)
        totals = outcome.totals
        low, high = job.plan.task.fitness_bounds
        if totals.lowest_fitness < low or totals.highest_fitness > high:
            terminal.err.print(
                f"warning: a fitness of {job.path} is outside the task's interval [{low:g}, {high:g}]: "
                "its cells may score below 0 or above 1",
                soft_wrap=True,
            )
        label = job.plan.label if labels.count(job.plan.label) == 1 else str(job.path)
        table.add_row(label, outcome.status, f"{totals.evaluations:,}", f"{totals.seconds:,.1f}", *numbers)
    terminal.out.print(table)
    intervals = {job.plan.task.name: job.plan.task.fitness_bounds for job in jobs}
    each = "; ".join(f"{task} [{low:,g}, {high:,g}]" for task, (low, high) in intervals.items())
    terminal.out.print(f"QD scores on the fixed interval: {each}", soft_wrap=True)
    for sentence in filter(None, map(about_max_fitness, intervals)):
        terminal.out.print(sentence, soft_wrap=True)
    for job, outcome in zip(jobs, outcomes, strict=True):
        _print_missing_moments(job, outcome)
    invalid = sum(outcome.totals.invalid for outcome in outcomes)
    if invalid:
        terminal.out.print(f"{invalid:,} evaluations were invalid and kept out")
    if any(outcome.totals.evaluations for outcome in outcomes):
        shown = sorted({str(job.path.parent) for job in jobs}) if len(jobs) > 1 else [str(jobs[0].path)]
        terminal.out.print(f"Next: {shlex.join(['qdbench', 'show', *shown])}", soft_wrap=True)


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise InvalidInput(f"--set {pair!r} is not OPTION=VALUE")
        if settings.get(key, value) != value:
            raise InvalidInput(f"{key} is set twice, to {settings[key]!r} and to {value!r}")
        settings[key] = value
    return settings


def _configured(names: Sequence[str], settings: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return each algorithm's options; a setting goes to every algorithm that knows it."""
    from qdbench.algorithms import registry

    known = {name: registry.options(registry.find(name)) for name in names}
    everything = {key for options in known.values() for key in options}
    for key in settings:
        if key not in everything:
            takes = "; ".join(
                f"{name} takes {', '.join(options) or 'none'}" for name, options in known.items()
            )
            raise UnknownName("option", key, everything, takes)
    return {
        name: registry.configure(name, {key: settings[key] for key in settings if key in options})
        for name, options in known.items()
    }


def _seed_list(one: int | None, text: str | None) -> list[int]:
    """Return the one seed, or those that 0-9 or 0,3,5-7 means."""
    if text is None:
        return [one or 0]
    if one is not None:
        raise InvalidInput("give --seed or --seeds, not both")
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InvalidInput(f"--seeds {text!r} is not a list of seeds; write 0-9 or 0,3,5-7")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first > 9999:
            raise InvalidInput(f"--seeds {part} are {last - first + 1} runs; give at most 10000")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))
