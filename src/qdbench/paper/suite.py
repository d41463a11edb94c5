"""How good is an algorithm? One experiment over the nine tasks, beside the reference results."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdbench.algorithms.registry import Factory, checked_options, find, name_of, options
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.measured import Measured, Progress
from qdbench.analysis.measuring import measure
from qdbench.analysis.references import Referenced, with_references
from qdbench.analysis.table_files import table_lines, write_tables
from qdbench.analysis.tables import Table, headline, over_tasks
from qdbench.checks import (
    checked_flag,
    checked_function,
    checked_list,
    checked_names,
    checked_path,
    checked_text,
    is_whole,
    shown,
)
from qdbench.errors import InvalidInput
from qdbench.experiments.iterations import OnIteration
from qdbench.experiments.job import Job, Settings
from qdbench.experiments.places import records_in
from qdbench.experiments.plan import Plan
from qdbench.experiments.runs import check_jobs
from qdbench.experiments.where import settings_on
from qdbench.paper.durations import expected_seconds, in_words
from qdbench.paper.references import usable_references
from qdbench.paper.reproduce import RUNS, CarryOut, Say, all_finished, make_all
from qdbench.paper.suite_scales import REPORTED_SEEDS, SuiteScale, seeds_kind, suite_scale, suite_tasks
from qdbench.reports.first_screen import First
from qdbench.reports.page import film_page, write_page
from qdbench.reports.style import require_matplotlib, save_figure
from qdbench.reports.suite_figure import suite_figure
from qdbench.seeds import seeds_text
from qdbench.store.files import require_folder, write_text
from qdbench.store.record import CorrectionPlan, Target, variant_label
from qdbench.store.reference_file import References
from qdbench.tasks.registry import make

if TYPE_CHECKING:
    from qdbench.reports.replays import Replays


@dataclass(frozen=True)
class Entrant:
    """An algorithm with its options."""

    algorithm: str
    name: str
    options: Mapping[str, Any]
    own_batch: bool
    """Whether its batch size was chosen; else it is that of the scale."""
    factory: Factory | None = None

    @property
    def label(self) -> str:
        """The name of the variant."""
        return variant_label(self.algorithm, self.name)


@dataclass(frozen=True)
class SuitePlan:
    """Everything that `qdbench suite` is asked for, checked."""

    scale: SuiteScale
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    entrants: tuple[Entrant, ...]
    folder: Path
    references: References

    @property
    def label(self) -> str:
        """What these results are, and what they are not."""
        parts = [f"qdbench suite, {self.scale.label}"]
        if len(self.tasks) < len(self.scale.tasks):
            parts.append(f"only {len(self.tasks)} of {len(self.scale.tasks)} tasks")
        kind, seeds, usual = seeds_kind(self.seeds, self.scale), _named(self.seeds), range(self.scale.n_seeds)
        if kind == "tuning":
            parts.append(f"tuning with {seeds}: not a result to report")
        elif kind == "some" and set(self.seeds) > set(usual):
            parts.append(f"{seeds}, a result has {seeds_text(usual)} or 0-{REPORTED_SEEDS - 1}")
        elif kind == "some":
            parts.append(f"only {seeds}, a result has {seeds_text(usual)}")
        return "; ".join(parts)

    def jobs(self) -> list[Job]:
        """Return all runs, task by task."""
        return [
            _job(self.scale, task, seed, entrant, self.folder / RUNS)
            for task in self.tasks
            for seed in self.seeds
            for entrant in self.entrants
        ]

    def left_out(self) -> list[str]:
        """Say which finished runs of these algorithms in the folder are of other seeds: they are not used."""
        reported = self.seeds[0] < REPORTED_SEEDS
        others = {
            seed
            for variant in {job.path.parent for job in self.jobs()}
            for seed, record in records_in(variant).items()
            if record.status == "finished" and (seed < REPORTED_SEEDS) == reported
        } - {*self.seeds}
        if not others:
            return []
        return [
            f"{self.folder / RUNS} also has finished runs of {_named(others)}; these results leave them out. "
            f"Give --seeds {seeds_text({*others, *self.seeds})} for results of all."
        ]


def _named(seeds: Collection[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {seeds_text(seeds)}"


@dataclass(frozen=True, eq=False)
class SuiteResult:
    """The results of the suite, and their files."""

    folder: Path
    label: str
    """What these results are: scale, tasks, seeds."""
    measured: Measured
    """The measurements of the own runs."""
    comparison: Comparison
    """The own runs and the reference results, with all metrics."""
    tables: tuple[Table, ...]
    """Tasks and headline metrics; then, with several tasks, the normalised scores and the primary tests."""
    without_references: tuple[str, ...]
    """The tasks that have no reference results."""
    summary: Path
    figures: tuple[Path, ...]
    page: Path


def suite(
    algorithms: str | Factory | Sequence[str | Factory],
    *,
    scale: str = "quick",
    tasks: str | Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    out: str | Path | None = None,
    name: str = "",
    references: str | Path | None = None,
    workers: int | None = None,
    jobs: int = 1,
    on: str | None = None,
    elsewhere: bool = False,
    replays: bool = True,
    say: Say = lambda sentence: None,
    progress: Progress = lambda done, total: None,
    on_iteration: OnIteration | None = None,
    **chosen: Any,
) -> SuiteResult:
    """Run algorithms on all tasks by the protocol of a scale, and compare them with the reference results.

    `scale` is `quick`, `standard` or `paper`: about ten minutes, two to three hours, or many weeks on two
    cores, for one algorithm. `tasks` and `seeds` choose a part, which is then labelled as such: report seeds
    0-4 or 0-9, tune on seeds from 100 up. Further keywords are options of the algorithms, `name` tells such a
    variant apart. Results are written into the folder `out`, by default results/suite-SCALE. After an
    interruption, the same call continues. `jobs` runs are made at a time; `on="ray"` makes them on a cluster,
    `elsewhere` also on nodes with another CPU or other versions. `references` is a folder with further
    reference results. `replays` are films of elites in the page. `say` is called with sentences about what
    will be done and how long it will take, `on_iteration` after every iteration of every run.
    """
    checked_function("progress", progress)
    replays = checked_flag("replays", replays)
    if on_iteration is not None:
        checked_function("on_iteration", on_iteration)
    several = (
        [algorithms]
        if isinstance(algorithms, str) or callable(algorithms)
        else checked_list("algorithms", algorithms, "give a name or several")
    )
    entrants = [entrant(algorithm, chosen, checked_text("name", name)) for algorithm in several]
    plan = suite_plan(entrants, scale, tasks, seeds, out, references)
    checked_function("say", say)
    elsewhere = checked_flag("elsewhere", elsewhere)

    def carry_out(jobs: Sequence[Job], settings: Settings) -> None:
        make_all(jobs, settings, on_iteration)

    with settings_on(on, workers=workers, jobs=jobs, elsewhere=elsewhere) as settings:
        finished = make_suite_runs(plan, settings, say, carry_out)
    if not finished:
        raise InvalidInput("some runs are in progress elsewhere; give the same call when they are finished")
    measured = measure_suite(plan, progress)
    return judge_suite(plan, measured, film_page(measured, lambda done, total: None) if replays else None)


def suite_plan(
    entrants: Sequence[Entrant],
    scale: str,
    tasks: str | Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    out: str | Path | None = None,
    references: str | Path | None = None,
) -> SuitePlan:
    """Return what is asked for, or say what is wrong with it."""
    require_matplotlib()  # fail now, not after all the runs
    chosen = suite_scale(scale)
    names = checked_names("tasks", [tasks] if isinstance(tasks, str) else tasks)
    numbers = _checked_seeds(range(chosen.n_seeds) if seeds is None else seeds)
    tuning = "-tuning" if seeds_kind(numbers, chosen) == "tuning" else ""
    folder = Path("results") / f"suite-{scale}{tuning}" if out is None else checked_path("out", out)
    require_folder(folder)
    if not entrants:
        raise InvalidInput("the suite needs an algorithm; give its name or package.module:Class")
    labels = [one.label for one in entrants]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{twice} is given twice; give each algorithm once, or a name")
    found = usable_references(references)
    return SuitePlan(chosen, suite_tasks(chosen, names), numbers, tuple(entrants), folder, found)


def _checked_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    cure = "give whole numbers, such as range(5)"
    found = checked_list("seeds", seeds, cure)
    if not found or not all(is_whole(seed) and 0 <= seed < 2**63 for seed in found):
        raise InvalidInput(f"seeds are {shown(seeds)}; {cure}")
    return tuple(dict.fromkeys(int(seed) for seed in found))


def entrant(algorithm: str | Factory, chosen: Mapping[str, Any], name: str = "") -> Entrant:
    """Return an algorithm with options given in Python."""
    known = name_of(algorithm)
    factory = find(algorithm) if isinstance(algorithm, str) else algorithm
    defaults = {key: option.default for key, option in options(factory).items()}
    found = defaults | checked_options(factory, chosen, known)
    return Entrant(
        known, name, found, "batch_size" in chosen, None if isinstance(algorithm, str) else factory
    )


def _job(scale: SuiteScale, task: str, seed: int, one: Entrant, out: Path) -> Job:
    size = scale.tasks[task]
    batch = {"batch_size": size.batch_size} if "batch_size" in one.options and not one.own_batch else {}
    plan = Plan(
        task=make(task, episode_length=size.episode_length),
        task_source=task,
        algorithm=one.algorithm,
        options={**one.options, **batch},
        seed=seed,
        name=one.name,
        factory=one.factory,
    )
    target = Target(size.evaluations, corrections=CorrectionPlan(size.corrections, size.reevaluations))
    return Job(plan, plan.folder(out), target)


def make_suite_runs(plan: SuitePlan, settings: Settings, say: Say, carry_out: CarryOut) -> bool:
    """Say how long it will take, and make all runs. Return whether all are finished.

    They are not if another process is making some of them.
    """
    jobs = plan.jobs()
    check_jobs(jobs, settings)  # before episodes are timed
    workers = settings.evaluators.workers * settings.jobs
    labels = ", ".join(one.label for one in plan.entrants)
    say(f"{plan.label}: {len(jobs)} run{'s' * (len(jobs) > 1)} of {labels}")
    each = expected_seconds(plan.scale, jobs, settings, plan.references.found)
    total = sum(each.values())
    if total:
        say("; ".join(f"{task} {in_words(seconds)}" for task, seconds in each.items() if seconds))
        say(
            f"This will take about {in_words(total)} with {workers} workers. You can interrupt it; the same "
            "command continues."
        )
    start = time.perf_counter()
    carry_out(jobs, settings)
    if total:
        say(f"The runs took {in_words(time.perf_counter() - start)}; {in_words(total)} were announced.")
    for sentence in plan.left_out():
        say(sentence)
    return all_finished(jobs, say)


def measure_suite(plan: SuitePlan, progress: Progress) -> Measured:
    """Measure the runs of the plan, and no others in its folder."""
    found = measure([job.path for job in plan.jobs()], progress=progress)
    order = {task: i for i, task in enumerate(plan.tasks)}
    tasks = tuple(sorted(found.tasks, key=lambda task: order[task.task]))
    return replace(found, tasks=tasks, results=(plan.folder / RUNS,))


def judge_suite(plan: SuitePlan, measured: Measured, replays: Replays | None = None) -> SuiteResult:
    """Compare with the reference results, draw and write everything into the folder."""
    joined = with_references(measured, plan.references.found)
    comparison = compare(joined.measured, anchors=joined.anchors)
    tables = suite_tables(comparison)
    folder = plan.folder
    write_tables(comparison, folder)
    figure = suite_figure(joined.measured, plan.label)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    figures = save_figure(figure, folder / "figures/suite")
    about = suite_notes(plan, joined)
    summary = folder / "suite.md"
    lines = [f"# {plan.label}", "", *(f"- {line}" for line in about), ""]
    write_text(summary, "\n".join([*lines, *(line for table in tables for line in table_lines(table))]))
    page = write_page(
        measured,
        comparison,
        folder / "report.html",
        first=First(plan.label, about, tables, joined.measured),
        replays=replays,
    )
    return SuiteResult(
        folder, plan.label, measured, comparison, tuple(tables), joined.missing, summary, tuple(figures), page
    )


def suite_tables(comparison: Comparison) -> list[Table]:
    """Return the table of headline metrics, and those of the aggregate if there are several tasks."""
    return [headline(comparison), *over_tasks(comparison)[1:]]


def suite_notes(plan: SuitePlan, joined: Referenced) -> list[str]:
    """Say which reference results there are, and what of them was not used."""
    found: dict[str, list[str]] = {}
    for task in joined.measured.tasks:
        for sentence in task.about_references:
            found.setdefault(sentence.replace(task.task, "TASK"), []).append(task.task)
    notes = [
        f"{', '.join(tasks)}: {sentence.replace(' of TASK', '').replace('TASK', tasks[0])}"
        for sentence, tasks in found.items()
    ]
    return [*notes, *plan.left_out(), *plan.references.problems]
