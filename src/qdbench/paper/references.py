"""The reference results that can be used, and how finished runs become such."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qdbench.algorithms.registry import algorithms, find, options
from qdbench.analysis.measured import Measured, MeasuredVariant, Paths, Progress
from qdbench.analysis.measuring import measure
from qdbench.analysis.references import alone, as_reference
from qdbench.checks import checked_flag, checked_path
from qdbench.errors import InvalidInput
from qdbench.experiments.plan import plan_for
from qdbench.paper.findings import findings, replications, too_few
from qdbench.paper.protocol import REPRODUCED_TASK, VERSION
from qdbench.paper.suite_scales import REPORTED_SEEDS, SUITE_SCALES, SuiteScale
from qdbench.reports.claims import Finding
from qdbench.seeds import seeds_text
from qdbench.store.files import require_folder
from qdbench.store.plain import as_json, differences
from qdbench.store.record import RunRecord, TaskRecord
from qdbench.store.reference_file import (
    SHIPPED,
    Reference,
    References,
    ScaleRecord,
    read_reference,
    read_references,
    with_seeds_of,
    write_reference,
)
from qdbench.tasks.contract import score_interval
from qdbench.tasks.registry import TASKS, make


def references(folder: str | Path | None = None) -> tuple[Reference, ...]:
    """Return the reference results of this package, and those in a folder of your own.

    Give them to `compare`. Results of another version of a scale are left out; so are damaged files.
    """
    return usable_references(folder).found


def usable_references(folder: str | Path | None = None) -> References:
    """Return the same, with a sentence about every file that is left out."""
    own = [] if folder is None else [checked_path("folder", folder)]
    for path in own:
        if not path.is_dir():
            raise InvalidInput(f"{str(path)!r} is not a folder of reference results")
    everything = read_references([SHIPPED, *own])  # the shipped ones count: nobody moves the anchors
    empty = [path for path in own if not any(path.glob("*/*/*.json"))]
    problems = [f"{path} has no reference results; files are in SCALE/TASK below it" for path in empty]
    problems += everything.problems
    found = []
    for one in everything.found:
        known = SUITE_SCALES.get(one.scale.name)
        here = f"this package has version {known.version}" if known else "this package has no such scale"
        if known is None or known.version != one.scale.version:
            problems.append(f"{one.where} was not used: it is of the {one.scale.label}; {here}")
        elif one.scale.protocol != VERSION:
            other = f"it is of protocol {one.scale.protocol}; this package has {VERSION}"
            problems.append(f"{one.where} was not used: {other}")
        else:
            found.append(one)
    return References(tuple(found), tuple(problems))


def references_of_today(folder: str | Path | None = None) -> References:
    """Return the reference results that runs of today could be compared with; the others are problems."""
    everything = usable_references(folder)
    found, problems = [], list(everything.problems)
    for one in everything.found:
        apart = _other_task(one)
        if apart:
            problems.append(f"{one.where} was not used: {'; '.join(apart)}")
        else:
            found.append(one)
    return References(tuple(found), tuple(problems))


def _other_task(one: Reference) -> list[str]:
    """Say how the task of reference results differs from that of their scale; its physics may be older."""
    size = SUITE_SCALES[one.scale.name].tasks.get(one.task.name)
    if size is None:
        return [f"{one.task.name} is not a task of the suite"]
    task, interval = _today(one.task.name, size.episode_length)
    theirs, now = _told(one.task), _told(task)
    if one.last_environment.mujoco != version("mujoco"):
        del theirs["fingerprint"], now["fingerprint"]
    theirs["score interval"], now["score interval"] = list(one.facts.score_interval), list(interval)
    return differences(theirs, now)


@cache
def _today(name: str, episode_length: int) -> tuple[TaskRecord, tuple[float, float]]:
    """Return a task of a scale as it is recorded, and its score interval."""
    return task_record(name, episode_length), score_interval(make(name, episode_length=episode_length))


@dataclass(frozen=True)
class Judged:
    """The paper's findings on reference results."""

    findings: tuple[Finding, ...]
    about: str = ""
    """Task, scale and seeds."""
    why_none: str = ""
    """Why nothing is judged; empty if something is."""


def findings_on_references(found: References) -> Judged:
    """Judge the paper's findings on the reference results of its task."""
    for name in ("paper", "standard"):
        chosen = [one for one in found.found if (one.task.name, one.scale.name) == (REPRODUCED_TASK, name)]
        if chosen:
            task = alone(chosen)
            values = replications(task)
            seeds = seeds_text({run.seed for one in chosen for run in one.runs})
            about = f"The paper's findings on {REPRODUCED_TASK}, {SUITE_SCALES[name].label}, seeds {seeds}"
            return Judged(tuple(findings(values, task.no_times)), about, too_few(values))
    return Judged(
        (),
        why_none=f"The paper's findings are not judged: there are no reference results of {REPRODUCED_TASK} "
        "at standard scale. `qdbench reproduce --scale laptop` makes the runs",
    )


# From runs to files


def add_references(
    runs: Paths,
    to: str | Path,
    *,
    times_comparable: bool = False,
    progress: Progress = lambda done, total: None,
) -> list[Path]:
    """Write reference results from finished runs of a scale, and return the paths of the files.

    Seeds that a file has already, and these runs do not, stay in it: so several machines can make the seeds
    of one file. Nothing is written if one of the runs is not exactly of a scale. `times_comparable` says that
    the machine did nothing else meanwhile.
    """
    folder, comparable = checked_path("to", to), checked_flag("times_comparable", times_comparable)
    require_folder(folder)
    measured = measure(runs, progress=progress)
    _require_all(measured)
    made = [_reference(variant, comparable) for _, variant in measured.variants]
    complete = [_with_earlier_seeds(folder / one.where, one) for one in made]
    return [write_reference(folder, one) for one in complete]


def _require_all(measured: Measured) -> None:
    """Refuse runs that cannot be used, instead of leaving them out."""
    reasons = [f"{one.path}: {one.reason}" for one in measured.skipped]
    reasons += [f"{one.task}: {one.reason}" for one in measured.left_out]
    reasons += [words for task in measured.tasks for words in task.changed_code]
    if reasons:
        raise InvalidInput(f"not all of these runs can be reference results: {reasons[0]}")


def _reference(variant: MeasuredVariant, times_comparable: bool) -> Reference:
    scale = _scale_of(variant)
    records = [one.run.record for one in variant.runs]
    places = [where for record in records for where in record.environments]
    if times_comparable and max(where.jobs for where in places) > 1:
        raise InvalidInput(
            f"the runs of {variant.label} shared their cores with others; their times are not comparable"
        )
    about = ScaleRecord(name=scale.name, version=scale.version, protocol=VERSION)
    return as_reference(variant, about, _command(records, scale), times_comparable=times_comparable)


def _scale_of(variant: MeasuredVariant) -> SuiteScale:
    """Return the scale that runs are of exactly, or say what differs."""
    record = variant.runs[0].run.record
    if record.task.name not in TASKS:
        raise InvalidInput(f"{record.task.name} is not a task of the suite, which has {', '.join(TASKS)}")
    by_scale = {name: list(_sizes_apart(record, scale)) for name, scale in SUITE_SCALES.items()}
    name, apart = min(by_scale.items(), key=lambda item: len(item[1]))
    scale = SUITE_SCALES[name]
    for one in variant.runs:
        wrong = apart or list(_other_than(one.run.record, scale))
        if not wrong and one.corrected is None:
            wrong = ["its final archive was not corrected"]
        if wrong:
            raise InvalidInput(f"{one.run.path} is not of the {scale.label}: {'; '.join(wrong)}")
    return scale


def _sizes_apart(record: RunRecord, scale: SuiteScale) -> Iterable[str]:
    size, corrections = scale.tasks[record.task.name], record.target.corrections
    pairs = {
        "evaluations": (record.target.evaluations, size.evaluations),
        "seconds": (record.target.seconds, None),
        "episode_length": (record.task.episode_length, size.episode_length),
        "correction points": (corrections.points, size.corrections),
        "re-evaluations": (corrections.reevaluations, size.reevaluations),
    }
    for name, (found, wanted) in pairs.items():
        if found != wanted:
            yield f"{name} {found}, the scale has {wanted}"


def _other_than(record: RunRecord, scale: SuiteScale) -> Iterable[str]:
    """Say what of a run is not as the scale wants it, beyond sizes."""
    size, chosen = scale.tasks[record.task.name], record.algorithm.options
    if record.seed >= REPORTED_SEEDS:
        yield f"seed {record.seed} is for tuning; report seeds 0-4 or 0-9"
    if not record.name:
        usual = _defaults(record.algorithm.name) | {"batch_size": size.batch_size}
        for name in [name for name in chosen if chosen[name] != usual.get(name, chosen[name])]:
            yield f"{name} {chosen[name]}, a variant without a name has {usual[name]}"
    if len({repr(where.versions) for where in record.environments}) > 1:
        yield "it was continued on another CPU or with other versions; make it again in one place"
    yield from differences(_told(record.task), _told(task_record(record.task.name, size.episode_length)))


def _told(task: TaskRecord) -> dict[str, object]:
    found: dict[str, object] = as_json(task)
    del found["source"]
    return found


def _defaults(algorithm: str) -> dict[str, Any]:
    """Return the default options of an installed algorithm; a module that a file names is not imported."""
    if algorithm not in algorithms():
        return {}
    return {name: option.default for name, option in options(find(algorithm)).items()}


def task_record(name: str, episode_length: int) -> TaskRecord:
    """Return the task of a scale, as a run of today would record it."""
    task = make(name, episode_length=episode_length)
    return plan_for(task, name, "random_search", {}, seed=0).determinants().task


def _command(records: list[RunRecord], scale: SuiteScale) -> str:
    first = records[0]
    words = ["qdbench", "suite", first.algorithm.name, "--scale", scale.name, "--tasks", first.task.name]
    words += ["--seeds", seeds_text(record.seed for record in records)]
    words += ["--name", first.name] if first.name else []
    for name, value in first.algorithm.options.items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def _with_earlier_seeds(path: Path, new: Reference) -> Reference:
    """Return results with the seeds that only their file has; refuse those of another task or other options.

    Whoever gives all seeds again may change the task: its version or score interval.
    """
    if not path.exists():
        return new
    old = read_reference(path)
    apart = differences(old.algorithm.options, new.algorithm.options)
    if apart:
        raise InvalidInput(
            f"{path} has other options: {'; '.join(apart)}; give these runs a name of their own"
        )
    if {run.seed for run in old.runs} <= {run.seed for run in new.runs}:
        return new
    apart = differences(_of_all_seeds(old), _of_all_seeds(new))
    if apart:
        raise InvalidInput(f"{path} is of another task: {'; '.join(apart)}; give the runs of all its seeds")
    joined = with_seeds_of(new, old)
    records = [joined.record_of(run) for run in joined.runs]
    return replace(joined, command=_command(records, SUITE_SCALES[new.scale.name]))


def _of_all_seeds(one: Reference) -> dict[str, object]:
    """Return what must be the same for all seeds of a file."""
    found: dict[str, object] = as_json(one)
    return {name: found[name] for name in ("scale", "task", "facts", "own_archive", "target", "metrics")}
