"""Measure every run once, for tables, figures, the report and the paper's findings.

The files of a run are read and measured, and its arrays are released before the next run is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qdbench.analysis.collect import LeftOut, Skipped, Variant, collect
from qdbench.analysis.comparable import (
    changed_code,
    require_comparable,
    require_equal_reevaluations,
    times_comparable,
)
from qdbench.analysis.measured import (
    INTERVALS,
    Archives,
    BySamples,
    BySize,
    Corrected,
    IntervalKind,
    Measured,
    MeasuredRun,
    MeasuredTask,
    MeasuredVariant,
    Paths,
    Progress,
    Yardstick,
    typical_of,
)
from qdbench.analysis.measures import (
    Interval,
    On,
    PlacedRun,
    fixed_interval,
    pooled_interval,
    possible_interval,
)
from qdbench.analysis.warnings_of_runs import suspect
from qdbench.checks import checked_function, checked_names, checked_paths, shown
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.metrics.robustness import Extrapolated, by_samples
from qdbench.metrics.scores import scores
from qdbench.store.corrections_file import CorrectionPoint
from qdbench.store.loading import StoredRun

MOST_COUNTS = 12
"""For how many numbers of re-evaluations corrected scores are computed, at most."""
SIZES = tuple(m * 10**power for power in range(6) for m in (1, 2, 5))
"""For which numbers of elites losses are computed."""


def measure(
    results: Paths,
    *,
    tasks: str | Sequence[str] = (),
    interval: IntervalKind = "fixed",
    on: On = "own",
    progress: Progress = lambda done, total: None,
) -> Measured:
    """Read and measure all finished runs in some folders, each once.

    `tasks` restricts it to tasks of these names. `interval` is the interval of the QD score: `fixed` is the
    task's own, `pooled` is the range of all fitness values of all runs, `possible` is what the task allows.
    `on` says which archive is measured: `own` is each algorithm's own, `grid` is the task's grid. A task
    whose runs cannot be compared is left out with a reason. Raises InvalidInput if no task is left.
    """
    _require_one_of("interval", interval, (*INTERVALS,))
    _require_one_of("on", on, ("own", "grid"))
    checked_function("progress", progress)
    folders, only = tuple(checked_paths("results", results)), _names(tasks)
    collected = collect(folders, tasks=only)
    total, done = sum(len(variant.runs) for variant in collected.variants), 0

    def one_more() -> None:
        nonlocal done
        done += 1
        progress(min(done, total), total)

    found: list[MeasuredTask] = []
    skipped, left_out = list(collected.skipped), list[LeftOut]()
    for task in collected.tasks:
        variants = collected.of_task(task)
        end = done + sum(len(variant.runs) for variant in variants)
        try:
            measured, unusable = _measure_task(variants, interval, on, one_more)
        except InvalidInput as error:
            left_out.append(LeftOut(task, str(error)))
            done = end
            progress(done, total)
            continue
        found += [] if measured is None else [measured]
        skipped += unusable
    if not found and left_out:
        others = len(left_out) - 1
        more = f"; {others} more task{'s' * (others > 1)} cannot be compared" if others else ""
        raise InvalidInput(f"{left_out[0].reason}{more}")
    if not found:
        reason = f"{skipped[0].path}: {skipped[0].reason}" if skipped else "none was found"
        more = f"; and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        raise InvalidInput(f"no run can be used ({reason}{more})")
    return Measured(tuple(found), tuple(skipped), tuple(left_out), folders, only, interval, on)


def as_measured(
    results: Paths | Measured, tasks: str | Sequence[str], interval: IntervalKind, on: On, progress: Progress
) -> Measured:
    """Return the measurements of runs: those given, or new ones."""
    if not isinstance(results, Measured):
        return measure(results, tasks=tasks, interval=interval, on=on, progress=progress)
    _require_one_of("interval", interval, (*INTERVALS,))
    _require_one_of("on", on, ("own", "grid"))
    checked_function("progress", progress)
    if _names(tasks) or (interval, on) != ("fixed", "own"):
        raise InvalidInput("tasks, interval and on belong to `measure`: these runs are measured already")
    return results


def _names(tasks: str | Sequence[str]) -> tuple[str, ...]:
    return checked_names("tasks", [tasks] if isinstance(tasks, str) else tasks)


def _require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"{name} is {shown(value)}; use {' or '.join(map(repr, known))}")


def _measure_task(
    variants: Sequence[Variant], kind: IntervalKind, on: On, one_more: Callable[[], None]
) -> tuple[MeasuredTask | None, list[Skipped]]:
    """Measure the runs of a task; also return those that could not be measured."""
    require_comparable(variants)
    by = Yardstick(kind, _interval(variants, kind), on)
    found: list[MeasuredVariant] = []
    skipped: list[Skipped] = []
    for variant in variants:
        runs: list[tuple[MeasuredRun, Archives]] = []
        for run in variant.runs:
            try:
                runs.append(_measure_run(run, by))
            except (QdbenchError, OSError) as error:
                skipped.append(Skipped(run.path, str(error)))
            one_more()
        if runs:
            measured_runs = tuple(one for one, _ in runs)
            found.append(MeasuredVariant(variant.label, measured_runs, runs[typical_of(measured_runs)][1]))
    if not found:
        return None, skipped
    task = variants[0].task
    require_equal_reevaluations(task, ((run.run, run.n_reevaluations) for v in found for run in v.runs))
    left = [Variant(task, variant.label, tuple(run.run for run in variant.runs)) for variant in found]
    if skipped and kind == "pooled":  # skipped runs must not count in the interval
        again, others = _measure_task(left, kind, on, lambda: None)
        return again, skipped + others
    return MeasuredTask(task, tuple(found), by, times_comparable(left), tuple(changed_code(left))), skipped


def _interval(variants: Sequence[Variant], kind: IntervalKind) -> Interval:
    runs = [run for variant in variants for run in variant.runs]
    if kind != "pooled":
        return fixed_interval(runs[0]) if kind == "fixed" else possible_interval(runs[0])
    interval = pooled_interval(runs)
    if not interval[0] < interval[1]:
        raise InvalidInput(
            f"the runs of {variants[0].task} have no two different fitness values, so there is no pooled "
            "interval; use --interval fixed"
        )
    return interval


def _measure_run(run: StoredRun, by: Yardstick) -> tuple[MeasuredRun, Archives]:
    """Measure one run. Its archives are returned separately, because most are released."""
    read = StoredRun(run.path, run.record)  # it keeps all arrays that it reads; `run` must not
    placed = PlacedRun(read, by.on)
    curves, values = placed.curves(by.interval), placed.final(by.interval)
    point = read.final_point
    after = None if point is None else placed.corrected(point)
    n = read.corrections.n_reevaluations if read.corrections is not None else None
    found = MeasuredRun(
        run,
        placed.geometry.kind,
        placed.n_cells,
        values,
        curves,
        placed.fitness,
        None if point is None else _corrected(placed, point, values, by.interval),
        n if len(curves.corrected_evaluations) else None,
        suspect(read, by.interval),
        has_other_cells=placed.has_other_cells,
    )
    return found, (placed.stored, after)


def _corrected(
    placed: PlacedRun, point: CorrectionPoint, values: dict[str, float], interval: Interval
) -> Corrected:
    """Return corrected scores by samples, at a few places: a large archive takes its time."""
    again, fitness = placed.reevaluations(point), placed.corrected(point).elites.fitness
    counts = sample_counts(again.n_samples)
    # with all samples it is the corrected archive, which is there
    found = [*by_samples(placed.geometry, again, interval, counts[:-1]), scores(fitness, interval)]
    curve = BySamples(
        np.array(counts, np.float64),
        np.array([score.coverage for score in found], np.float64),
        np.array([score.qd_score for score in found]),
        Extrapolated(values["extrapolated_coverage"], values["extrapolated_qd_score"]),
    )
    sizes = [m for m in SIZES if m <= len(again)]
    lost = placed.rarefied(point, sizes)
    by_size = BySize(
        np.array(sizes, np.float64),
        np.array([one.coverage for one in lost], np.float64),
        np.array([one.qd_score for one in lost], np.float64),
    )
    return Corrected(again.n_samples, fitness.copy(), curve, by_size)


def sample_counts(n: int) -> list[int]:
    """Return numbers from 1 to `n`, evenly spaced on a logarithmic axis; all of them if there are few."""
    return sorted({round(count) for count in np.geomspace(1, n, MOST_COUNTS).tolist()} | {1, n})
