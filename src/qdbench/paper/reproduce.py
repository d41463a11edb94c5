"""Repeat the paper's experiment, from the runs to the verdicts."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qdbench.algorithms.registry import configure
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.measured import Measured, Progress
from qdbench.analysis.measuring import measure
from qdbench.checks import checked_flag, checked_function, checked_path
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.iterations import OnIteration, also_telling
from qdbench.experiments.job import Job, Outcome, Settings
from qdbench.experiments.launchers import launcher_for
from qdbench.experiments.loop import RunProgress
from qdbench.experiments.plan import Plan
from qdbench.experiments.runs import check_jobs
from qdbench.experiments.where import settings_on
from qdbench.paper.durations import measured_here
from qdbench.paper.findings import CAVEAT, findings, markdown, replications, to_decide, too_few
from qdbench.paper.protocol import CONTENDERS, REPRODUCED_TASK, VERSION, Scale, scale_of
from qdbench.reports.claims import Finding
from qdbench.reports.page import film_page, write_page
from qdbench.reports.plot import plot
from qdbench.reports.style import require_matplotlib
from qdbench.seeds import stream
from qdbench.store.files import require_folder, write_text
from qdbench.store.folder import RunFolder
from qdbench.store.record import CorrectionPlan, Target
from qdbench.tasks.registry import make

if TYPE_CHECKING:
    from qdbench.reports.replays import Replays

PROBE = 64
"""Number of random policies whose episodes are timed to estimate the duration."""
RUNS = "runs"
"""The subfolder of all runs."""
Say = Callable[[str], None]
CarryOut = Callable[[Sequence[Job], Settings], None]
"""Makes all runs, and raises if one fails."""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The results of the experiment, and their files."""

    folder: Path
    measured: Measured
    comparison: Comparison
    findings: tuple[Finding, ...]
    why_no_findings: str
    """One sentence if there are too few replications to judge anything; else empty."""
    figures: tuple[Path, ...]
    verdicts: Path
    page: Path


def reproduce(
    scale: str = "smoke",
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    jobs: int = 1,
    on: str | None = None,
    elsewhere: bool = False,
    checkpoint_every: float = 30.0,
    replays: bool = True,
    say: Say = lambda sentence: None,
    progress: Progress = lambda done, total: None,
) -> Reproduction:
    """Repeat the paper's experiment: run, correct, compare, plot, and judge its findings.

    `scale` is `smoke`, `laptop` or `paper`: about 2 minutes, 2.5 hours, or many days on two cores. All
    results are written into the folder `out`, by default results/SCALE. After an interruption, the same call
    continues. `jobs` runs are made at a time; `on="ray"` makes them on a cluster, `elsewhere` also on nodes
    with another CPU or other versions. `replays` are films of elites in the page. `say` is called with
    sentences about what will be done and how long it will take. `progress` is called after each measured run.
    """
    scale_of(scale)
    folder = folder_of(scale, out)
    checked_function("progress", progress)
    replays = checked_flag("replays", replays)
    how = Where(workers, jobs, on, checked_flag("elsewhere", elsewhere), checkpoint_every)
    if not make_runs(scale, folder, how, say=say):
        raise InvalidInput("some runs are in progress elsewhere; give the same call when they are finished")
    measured = measure(runs_of(scale, folder), progress=progress)
    return judge(measured, folder, film_page(measured, lambda done, total: None) if replays else None)


def folder_of(scale: str, out: str | Path | None) -> Path:
    """Return the folder of the experiment."""
    return Path("results") / scale if out is None else checked_path("out", out)


@dataclass(frozen=True)
class Where:
    """How the runs of an experiment are made."""

    workers: int | None = None
    jobs: int = 1
    on: str | None = None
    elsewhere: bool = False
    checkpoint_every: float = 30.0


def make_runs(scale: str, folder: Path, how: Where, *, say: Say, carry_out: CarryOut | None = None) -> bool:
    """Make all runs of the experiment, by `carry_out` if it is given. Return whether all are finished."""
    require_matplotlib()  # fail now, not after all the runs
    chosen = scale_of(scale)
    checked_function("say", say)
    require_folder(folder)
    jobs = jobs_of(chosen, folder / RUNS)
    say(
        f"Protocol version {VERSION}, {scale}: {len(jobs)} runs of {chosen.evaluations:,} evaluations, "
        f"{chosen.episode_length} steps, {chosen.corrections} correction points with "
        f"{chosen.reevaluations} re-evaluations per elite"
    )
    with settings_on(
        how.on,
        workers=how.workers,
        jobs=how.jobs,
        checkpoint_every=how.checkpoint_every,
        elsewhere=how.elsewhere,
    ) as settings:
        say(estimate(chosen, jobs, settings))
        (carry_out or make_all)(jobs, settings)
    return all_finished(jobs, say)


def all_finished(jobs: Sequence[Job], say: Say) -> bool:
    """Return whether all runs are finished; if not, say that another process is making some of them."""
    records = [RunFolder(job.path).read_record() for job in jobs]
    left = [record for record in records if record is None or record.status != "finished"]
    if left:
        say(
            f"{len(left)} of {len(jobs)} runs are in progress elsewhere. The same command compares the "
            "results when all are finished."
        )
    return not left


def runs_of(scale: str, folder: Path) -> list[Path]:
    """Return the folders of the experiment's runs; the folder may have others, of other studies."""
    return [job.path for job in jobs_of(scale_of(scale), folder / RUNS)]


def judge(measured: Measured, folder: Path, replays: Replays | None = None) -> Reproduction:
    """Compare, plot and judge the runs of the experiment, and write everything into a folder."""
    variants = dict.fromkeys(one.run.path.parent for _, one in measured.runs)
    measured = replace(measured, results=tuple(variants))
    comparison = compare(measured, out=folder)
    (task,) = measured.tasks
    values = replications(task)
    found, why_none = findings(values, task.no_times), too_few(values)
    figures = plot(measured, out=folder / "figures")
    verdicts = folder / "findings.md"
    write_text(verdicts, markdown(found, why_none))
    page = write_page(
        measured,
        comparison,
        folder / "report.html",
        findings=found,
        caveat=CAVEAT,
        why_no_findings=why_none,
        to_decide=to_decide(found),
        replays=replays,
    )
    return Reproduction(folder, measured, comparison, tuple(found), why_none, tuple(figures), verdicts, page)


def jobs_of(scale: Scale, out: Path) -> list[Job]:
    """Return all runs of the experiment, seed by seed: changes of the machine's speed affect all equally."""
    task = make(REPRODUCED_TASK, episode_length=scale.episode_length)
    plans = [
        Plan(
            task=task,
            task_source=REPRODUCED_TASK,
            algorithm=contender.algorithm,
            options=configure(
                contender.algorithm, {"batch_size": str(scale.batch_size), **dict(contender.settings)}
            ),
            seed=seed,
            name=contender.name,
        )
        for seed in range(max(len(scale.seeds(contender)) for contender in CONTENDERS))
        for contender in CONTENDERS
        if seed in scale.seeds(contender)
    ]
    target = Target(scale.evaluations, corrections=CorrectionPlan(scale.corrections, scale.reevaluations))
    return [Job(plan, plan.folder(out), target) for plan in plans]


def estimate(scale: Scale, jobs: Sequence[Job], settings: Settings) -> str:
    """Time a few episodes; return a sentence that estimates the duration of the experiment."""
    here, times = measured_here(settings)
    records = [RunFolder(job.path).read_record() for job in jobs]
    done = sum(record.totals.evaluations for record in records if record is not None)
    left = max(0, len(jobs) * scale.evaluations - done)
    task = jobs[0].plan.task
    solutions = task.random_solutions(PROBE, stream(0, "probe"))
    start = time.perf_counter()
    task.evaluate(solutions, range(PROBE), workers=here)
    hours = left / PROBE * (time.perf_counter() - start) / times / 3600
    words = f"{hours * 60:,.0f} minutes" if hours < 2 else f"{hours:,.0f} hours"
    return (
        f"The runs will take about {words} with {here * times:.0f} workers. The re-evaluations take about as "
        "long again, depending on the number of elites. You can interrupt it; the same command continues."
    )


def make_all(jobs: Sequence[Job], settings: Settings, on_iteration: OnIteration | None = None) -> None:
    """Make all runs. A signal takes effect when the current ones have been saved."""
    check_jobs(jobs, settings)
    interrupt = Interrupt()

    def listener(job: Job, news: RunProgress | Outcome) -> None:
        if isinstance(news, RunProgress):
            also_telling(on_iteration, job.plan, lambda progress: None)(news)

    with interrupt.listening():
        outcomes = launcher_for(settings)(jobs, settings, interrupt, listener)
    failed = [f"{one.folder}: {one.reason}" for one in outcomes if one.status == "failed"]
    if failed:
        raise QdbenchError(f"{len(failed)} of {len(jobs)} runs failed: {'; '.join(failed)}")
    if interrupt.signal is not None:
        signal.raise_signal(interrupt.signal)
