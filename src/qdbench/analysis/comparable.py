"""Which runs can be compared: those of one task, with one budget and one set of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qdbench.analysis.collect import Variant
from qdbench.errors import InvalidInput
from qdbench.store.loading import StoredRun
from qdbench.store.plain import as_json
from qdbench.store.record import Environment

SHOWN_RUNS = 2


def times_comparable(variants: Iterable[Variant]) -> str:
    """Return why the times of these runs cannot be compared; empty if they can."""
    different = _where_it_ran(variants)
    return f"seconds are left out, because the runs differ in {different}" if different else ""


def _where_it_ran(variants: Iterable[Variant]) -> str:
    ran = (
        (run, {name: getattr(where, name) for name in ("cpu", "workers", "jobs", "host")} | _nodes(where))
        for variant in variants
        for run in variant.runs
        for where in run.record.environments
    )
    return "; ".join(differing(ran))


def _nodes(where: Environment) -> dict[str, str]:
    """Return the CPUs of the nodes of a cluster, if it was one; which machine had which is all the same."""
    each = sorted((node.cpus, sorted(node.differs.items())) for node in where.nodes)
    shown = [f"{cpus}{' of another kind' if others else ''}" for cpus, others in each]
    return {"nodes": f"{len(each)} with {', '.join(shown)} CPUs" if each else "none"}


def changed_code(variants: Iterable[Variant]) -> list[str]:
    """Return a sentence for every variant whose runs were made with different code of its algorithm."""
    found = []
    for variant in variants:
        made = [(run, {"code": where.source}) for run in variant.runs for where in run.record.environments]
        if different := "; ".join(differing(made)):
            found.append(f"{variant.label}: runs were made with different code of the algorithm: {different}")
    return found


def require_comparable(variants: Sequence[Variant]) -> None:
    """Refuse runs with different tasks, budgets or options, and a replication that is given twice."""
    task, runs = variants[0].task, [run for variant in variants for run in variant.runs]
    identity = ("fingerprint", "fitness_bounds")
    if differing((run, {key: getattr(run.record.task, key) for key in identity}) for run in runs):
        different = "; ".join(differing((run, _task_facts(run)) for run in runs))
        raise InvalidInput(
            f"the runs of {task} are not of the same task: {different}; compare them separately"
        )
    intervals = "; ".join(differing((run, {"": run.record.facts.score_interval}) for run in runs))
    if intervals:
        raise InvalidInput(
            f"the runs of {task} have different score intervals: {intervals.strip()}. Their QD scores and "
            "losses cannot be compared; give the command of each run again to measure it on the task's "
            "present interval, nothing is simulated again"
        )
    _require_one_budget(task, variants, runs)
    for variant in variants:
        options = "; ".join(differing((run, algorithm_facts(run)) for run in variant.runs))
        if options:
            raise InvalidInput(
                f"the runs of {variant.label} on {task} have different options: {options}; compare them "
                "separately"
            )
        by_seed = {run.record.seed: run for run in variant.runs}
        twice = [run for run in variant.runs if by_seed[run.record.seed] is not run]
        if twice:
            seed = twice[0].record.seed
            both = f"{twice[0].path} and {by_seed[seed].path}"
            raise InvalidInput(
                f"{both} are both seed {seed} of {variant.label} on {task}; leave one out: a replication "
                "counts once"
            )


def _require_one_budget(task: str, variants: Sequence[Variant], runs: Sequence[StoredRun]) -> None:
    ends = ("evaluations", "seconds")
    budgets = differing((run, {name: getattr(run.record.target, name) for name in ends}) for run in runs)
    if budgets:
        raise InvalidInput(
            f"the runs of {task} had different budgets: {'; '.join(budgets)}; compare them separately, or "
            "resume the shorter ones"
        )
    for run in runs:
        _require_own_target(run)
    places = _where_it_ran(variants)
    if places and any(map(ended_by_seconds, runs)):
        raise InvalidInput(
            f"the runs of {task} had a budget of seconds, but differ in {places}. Equal seconds are then not "
            "equal budgets; compare them separately"
        )


def ended_by_seconds(run: StoredRun) -> bool:
    """Return whether a run ended because of its seconds, not because of its evaluations."""
    evaluations = run.record.target.evaluations
    return evaluations is None or run.record.totals.evaluations < evaluations


def _require_own_target(run: StoredRun) -> None:
    """Refuse a run that went beyond its target: one that was stopped and then given a smaller target."""
    for name in ("evaluations", "seconds"):
        target, done = getattr(run.record.target, name), run.metrics[name]
        if target is not None and len(done) > 1 and done[-2] >= target:
            raise InvalidInput(
                f"the runs of {run.record.task.name} had different budgets: {run.path} was given its "
                f"target of {target:,} {name} when it had made {done[-1]:,.10g}; compare it separately"
            )


def require_equal_reevaluations(task: str, counts: Iterable[tuple[StoredRun, int | None]]) -> None:
    """Refuse runs with different numbers of re-evaluations per elite; None means not re-evaluated."""
    different = "; ".join(differing((run, {"": n}) for run, n in counts if n))
    if different:
        raise InvalidInput(
            f"the elites of {task} were re-evaluated different numbers of times: {different.strip()}; "
            "corrected metrics depend on it. Use `qdbench correct --reevaluations N` with one N for all"
        )


def differing(facts: Iterable[tuple[StoredRun, Mapping[str, Any]]]) -> list[str]:
    """Return, as text with the names of runs, which facts are not the same for all.

    Facts that tell the same runs apart are one text, so that the runs are named once.
    """
    holders: dict[str, dict[str, dict[str, None]]] = {}
    for run, known in facts:
        for key, value in known.items():
            holders.setdefault(key, {}).setdefault(str(value), {})[str(run.path)] = None
    groups: dict[tuple[tuple[str, ...], ...], dict[str, list[str]]] = {}
    for key, values in holders.items():
        if len(values) > 1:
            groups.setdefault(tuple(map(tuple, values.values())), {})[key] = list(values)
    return [_difference(sides, values) for sides, values in groups.items()]


def _difference(sides: Sequence[Sequence[str]], values: Mapping[str, Sequence[str]]) -> str:
    """Return what each group of runs has; `values` are by fact, one for each group."""
    if len(values) == 1:
        ((key, each),) = values.items()
        return (
            f"{key} {', '.join(f'{value} ({_some(runs)})' for value, runs in zip(each, sides, strict=True))}"
        )
    return " against ".join(
        f"{', '.join(f'{key} {each[i]}' for key, each in values.items())} ({_some(runs)})"
        for i, runs in enumerate(sides)
    )


def _some(names: Sequence[str]) -> str:
    more = len(names) > SHOWN_RUNS
    return f"{len(names)} runs, such as {names[0]}" if more else ", ".join(names)


def algorithm_facts(run: StoredRun) -> dict[str, Any]:
    """Return name and options of a run's algorithm."""
    return {"name": run.record.algorithm.name, **run.record.algorithm.options}


def _task_facts(run: StoredRun) -> dict[str, Any]:
    task: dict[str, Any] = as_json(run.record.task)
    last = run.record.environments[-1]
    options: dict[str, Any] = task.pop("options")
    del task["source"]
    return task | options | {"mujoco": last.mujoco, "qdbench": last.qdbench}
