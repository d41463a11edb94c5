"""Reference results beside measured runs: the same records, so that every table can have both.

Only results of the same task (version, options, fingerprint) with the same budget are used. Those of another
MuJoCo version are used and named: their fingerprint differs for that reason alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.analysis.aggregate import ONE, ZERO, Anchor, Anchors, anchor, variant_name
from qdbench.analysis.measured import (
    BySamples,
    BySize,
    Corrected,
    Measured,
    MeasuredRun,
    MeasuredTask,
    MeasuredVariant,
    Yardstick,
)
from qdbench.analysis.measures import Curves
from qdbench.analysis.warnings_of_runs import Above, Suspect
from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Grid
from qdbench.errors import InvalidInput
from qdbench.metrics.metric import CURVES, FALLBACK, METRICS, PRIMARY
from qdbench.metrics.robustness import Extrapolated
from qdbench.store.loading import StoredRun
from qdbench.store.plain import as_json, differences
from qdbench.store.record import Environment, RunRecord
from qdbench.store.reference_file import ALONG, AT_POINTS, Reference, ReferenceRun, ScaleRecord

POINTS = 20
"""Points of a thinned curve."""
DIGITS = 9
"""Significant digits of a thinned curve, but for its end, which is exact."""
MARK = " (reference)"
NO_TIMES = "seconds are left out: reference results were made on other machines or beside other work"


@dataclass(frozen=True)
class Referenced:
    """Measured runs with reference results among them, and the anchors that these give."""

    measured: Measured
    anchors: Anchors | None
    """None if no task has reference results of both anchors."""
    missing: tuple[str, ...]
    """The tasks without reference results."""


def with_references(measured: Measured, references: Sequence[Reference]) -> Referenced:
    """Return the measurements with all reference results that can be compared with them."""
    if (measured.interval, measured.on) != ("fixed", "own"):
        raise InvalidInput("reference results have interval='fixed' and on='own'; use these")
    tasks, missing = [], []
    anchors: dict[str, dict[str, Anchor]] = {}
    for task in measured.tasks:
        used, told = usable(task, [one for one in references if one.task.name == task.task])
        variants = tuple(as_variant(one) for one in used)
        anchors |= {task.task: found} if (found := _anchors(task.task, variants)) else {}
        missing += [] if used else [task.task]
        tasks.append(
            replace(
                task,
                variants=(*task.variants, *variants),
                no_times=NO_TIMES if used else task.no_times,
                about_references=tuple(told),
            )
        )
    known = Anchors("the reference results", anchors) if anchors else None
    return Referenced(replace(measured, tasks=tuple(tasks)), known, tuple(missing))


def usable(task: MeasuredTask, references: Sequence[Reference]) -> tuple[list[Reference], list[str]]:
    """Return the reference results that can be compared with a task's runs, and what a reader must know."""
    own = task.runs[0].record
    n = next((run.n_reevaluations for run in task.measured_runs if run.n_reevaluations), None)
    alike = [one for one in references if _size(one.target.evaluations, one.task.options) == _size_of(own)]
    used, told = [], []
    for one in alike:
        others = _differences(one, own, n)
        if others:
            told.append(f"reference {one.variant} ({one.scale.label}) is left out: {'; '.join(others)}")
        else:
            used.append(one)
    if used:
        told = [*(_about(used, own.environments[-1])), *told]
    elif not alike:
        scales = sorted({one.scale.label for one in references})
        there = f"; there are some of {', '.join(scales)}" if scales else ""
        told.append(f"there are no reference results of {task.task} with this budget{there}")
    return used, told


def _size(evaluations: int | None, options: dict[str, Any]) -> tuple[Any, ...]:
    return evaluations, options.get("episode_length")


def _size_of(own: RunRecord) -> tuple[Any, ...]:
    return _size(own.target.evaluations, own.task.options)


def _differences(one: Reference, own: RunRecord, n: int | None) -> list[str]:
    """Return in words why reference results cannot be compared with a run."""
    theirs, ours = (as_json(record.task) for record in (one, own))
    for facts in (theirs, ours):
        del facts["source"]
        if one.last_environment.mujoco != own.environments[-1].mujoco:
            del facts["fingerprint"]
    theirs |= {"score interval": list(one.facts.score_interval), "seconds": one.target.seconds}
    ours |= {"score interval": list(own.facts.score_interval), "seconds": own.target.seconds}
    if n is not None:
        theirs["re-evaluations"], ours["re-evaluations"] = one.target.corrections.reevaluations, n
    return differences(theirs, ours)


def _about(used: Sequence[Reference], here: Environment) -> Iterable[str]:
    for scale in sorted({one.scale.label for one in used}):
        names = [
            f"{one.variant} (seeds {_seeds(one)}, {one.date})" for one in used if one.scale.label == scale
        ]
        yield f"reference results, {scale}: {', '.join(names)}"
    other = sorted({one.last_environment.mujoco for one in used} - {here.mujoco})
    if other:
        yield (
            f"reference results were made with MuJoCo {', '.join(other)}, these runs with {here.mujoco}: "
            "the physics may differ"
        )


def _seeds(one: Reference) -> str:
    seeds = [run.seed for run in one.runs]
    together = len(seeds) > 1 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}-{seeds[-1]}" if together else ",".join(map(str, seeds))


def _anchors(task: str, variants: Sequence[MeasuredVariant]) -> dict[str, Anchor]:
    by_name = {variant_name(variant): variant for variant in variants}
    if not {ZERO, ONE} <= by_name.keys():
        return {}
    found = {name: anchor(task, name, by_name[ZERO], by_name[ONE]) for name in (PRIMARY.name, FALLBACK.name)}
    return {name: one for name, one in found.items() if one is not None}


def alone(references: Sequence[Reference]) -> MeasuredTask:
    """Return the reference results of one task and scale as its measurements, under their own names."""
    first = references[0]
    variants = (replace(as_variant(one), label=one.variant) for one in references)
    by = Yardstick("fixed", first.facts.score_interval, "own")
    comparable = all(one.times_comparable for one in references)
    return MeasuredTask(first.task.name, tuple(variants), by, "" if comparable else NO_TIMES)


# From a file to measurements


def as_variant(one: Reference) -> MeasuredVariant:
    """Return reference results as measurements; their archives are unknown, so they are empty."""
    nothing = Archive(Grid(one.task.descriptor_bounds, (1,) * len(one.task.cells)), 0)
    runs = tuple(_as_run(one, run) for run in one.runs)
    return MeasuredVariant(f"{one.variant}{MARK}", runs, (nothing, None), is_reference=True)


def _as_run(one: Reference, run: ReferenceRun) -> MeasuredRun:
    path = Path("references") / one.where / f"seed-{run.seed}"
    along, points = (
        {name: np.array(column, np.float64) for name, column in curve.items()}
        for curve in (run.along, run.corrected)
    )
    curves = Curves(
        along["evaluations"],
        along["seconds"],
        {name: along[name] for name in CURVES},
        points["evaluations"],
        np.interp(points["evaluations"], along["evaluations"], along["seconds"]),
        {name: points[name] for name in CURVES},
    )
    values, n, empty = one.values_of(run), one.target.corrections.reevaluations, np.empty(0)
    limit = Extrapolated(values["extrapolated_coverage"], values["extrapolated_qd_score"])
    return MeasuredRun(
        StoredRun(path, one.record_of(run)),
        run.archive,
        prod(one.task.cells),
        {**values, "evaluations": float(run.totals.evaluations)},
        curves,
        empty,
        Corrected(n, empty, BySamples(empty, empty, empty, limit), BySize(empty, empty, empty)),
        n,
        Suspect(path, one.task.name, "", Above(0, np.nan), Above(0, np.nan), ""),
    )


# From measurements to a file


def as_reference(
    variant: MeasuredVariant, scale: ScaleRecord, command: str, *, times_comparable: bool
) -> Reference:
    """Return the measurements of one variant as reference results; the names of machines are left out."""
    record = variant.runs[0].run.record
    places: dict[str, tuple[int, Environment]] = {}
    runs = []
    for one in variant.runs:
        where = [_nameless(place) for place in one.run.record.environments]
        ran_on = tuple(places.setdefault(repr(asdict(e)), (len(places), e))[0] for e in where)
        runs.append(_reference_run(one, ran_on))
    return Reference(
        scale=scale,
        task=record.task,
        facts=record.facts,
        algorithm=record.algorithm,
        name=record.name,
        own_archive=record.own_archive,
        target=record.target,
        metrics=tuple(METRICS),
        command=command,
        times_comparable=times_comparable,
        environments=tuple(place for _, place in places.values()),
        runs=tuple(runs),
    )


def _nameless(place: Environment) -> Environment:
    return replace(place, host="", nodes=tuple(replace(node, host="") for node in place.nodes))


def _reference_run(one: MeasuredRun, ran_on: tuple[int, ...]) -> ReferenceRun:
    record, curves = one.run.record, one.curves
    columns = {"evaluations": curves.evaluations, "seconds": curves.seconds, **curves.values}
    points = {"evaluations": curves.corrected_evaluations, **curves.corrected}
    chosen = thinned(len(curves.evaluations))
    return ReferenceRun(
        seed=record.seed,
        ran_on=ran_on,
        begun=record.begun,
        updated=record.updated,
        totals=record.totals,
        reevaluation_steps=_reevaluation_steps(one.run),
        archive=one.kind,
        n_cells=one.n_cells,
        values=tuple(one.values[name] for name in METRICS),
        along={name: _rounded(columns[name][chosen]) for name in ALONG},
        corrected={name: _rounded(points[name]) for name in AT_POINTS},
    )


def _reevaluation_steps(run: StoredRun) -> int:
    made = StoredRun(run.path, run.record).corrections  # it keeps all arrays that it reads; `run` must not
    return 0 if made is None else int(made.steps.sum())


def thinned(n: int) -> NDArray[np.intp]:
    """Return at most `POINTS` of `n` places, evenly spaced; the first and the last are among them."""
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).round().astype(np.intp))


def _rounded(column: NDArray[np.float64]) -> tuple[float, ...]:
    *before, last = column.tolist()
    return (*(float(f"{value:.{DIGITS}g}") for value in before), last)
