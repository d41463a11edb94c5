"""Which runs may stand side by side: of one task, with one budget and one set of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qdbench.analysis.collect import Variant
from qdbench.errors import InvalidInput
from qdbench.experiments.loading import StoredRun

SHOWN_RUNS = 2


def times_comparable(variants: Iterable[Variant]) -> str:
    """Return nothing where the seconds of these runs can be compared, else a sentence that says why not."""
    different = _where_it_ran(variants)
    return f"seconds are left out, because the runs differ in {different}" if different else ""


def _where_it_ran(variants: Iterable[Variant]) -> str:
    def facts(where: Mapping[str, Any]) -> dict[str, Any]:
        known = {"cpu": where.get("cpu"), "workers": where.get("workers"), "jobs": where.get("jobs", 1)}
        return known | ({"host": where["host"]} if "host" in where else {})  # the first runs did not tell

    ran = [(run, facts(where)) for v in variants for run in v.runs for where in run.record["environments"]]
    return "; ".join(differing(ran))


def require_comparable(variants: Sequence[Variant]) -> None:
    """Refuse runs of a task that differ in task, budget or options, and one replication twice."""
    task, runs = variants[0].task, [run for variant in variants for run in variant.runs]
    identity = ("fingerprint", "fitness_bounds")
    if differing((run, {key: run.record["task"][key] for key in identity}) for run in runs):
        different = "; ".join(differing((run, _task_facts(run)) for run in runs))
        raise InvalidInput(f"the runs of {task} are not of the same task: {different}; compare them apart")
    budgets = "; ".join(differing((run, run.record["target"]) for run in runs))
    if budgets:
        raise InvalidInput(
            f"the runs of {task} had different budgets: {budgets}; compare them apart, or resume the shorter"
        )
    for run in runs:
        _require_own_target(run)
    places = _where_it_ran(variants)
    if places and any(map(ended_by_seconds, runs)):
        raise InvalidInput(
            f"the runs of {task} had a budget of seconds, and equal seconds are not equal budgets where runs "
            f"differ in {places}; compare them apart"
        )
    for variant in variants:
        options = "; ".join(differing((run, flat(run.record["algorithm"])) for run in variant.runs))
        if options:
            raise InvalidInput(
                f"the runs of {variant.label} on {task} have different options: {options}; compare them apart"
            )
        by_seed = {run.record["seed"]: run for run in variant.runs}
        twice = [run for run in variant.runs if by_seed[run.record["seed"]] is not run]
        if twice:
            seed = twice[0].record["seed"]
            both = f"{twice[0].path} and {by_seed[seed].path}"
            raise InvalidInput(
                f"{both} are both seed {seed} of {variant.label} on {task}: a replication counts once; "
                "leave one out"
            )


def ended_by_seconds(run: StoredRun) -> bool:
    """Return whether a run's seconds ran out before its evaluations, if it had a number of them."""
    evaluations = run.record["target"]["evaluations"]
    return evaluations is None or bool(run.record["totals"]["evaluations"] < evaluations)


def _require_own_target(run: StoredRun) -> None:
    """Refuse a run that went on after its target: one that was stopped later and then given a smaller one."""
    for name in ("evaluations", "seconds"):
        target, done = run.record["target"][name], run.metrics[name]
        if target is not None and len(done) > 1 and done[-2] >= target:
            raise InvalidInput(
                f"the runs of {run.record['task']['name']} had different budgets: {run.path} was given its "
                f"target of {target:,} {name} when it had made {done[-1]:,.10g}; compare it apart"
            )


def require_equal_reevaluations(task: str, counts: Iterable[tuple[StoredRun, int | None]]) -> None:
    """Refuse runs whose elites were re-evaluated different numbers of times; None is not at all."""
    different = "; ".join(differing((run, {"": n}) for run, n in counts if n))
    if different:
        raise InvalidInput(
            f"the elites of {task} were re-evaluated different numbers of times: {different.strip()}; "
            "corrected metrics depend on it: `qdbench correct --reevaluations N` is needed with one N for all"
        )


def differing(facts: Iterable[tuple[StoredRun, Mapping[str, Any]]]) -> list[str]:
    """Return in words, with the names of runs, which facts are not the same for all."""
    holders: dict[str, dict[str, dict[str, None]]] = {}
    for run, known in facts:
        for key, value in known.items():
            holders.setdefault(key, {}).setdefault(str(value), {})[str(run.path)] = None
    return [
        f"{key} {', '.join(f'{value} ({_some(list(runs))})' for value, runs in values.items())}"
        for key, values in holders.items()
        if len(values) > 1
    ]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_RUNS} more" if len(names) > SHOWN_RUNS else ""
    return f"{', '.join(names[:SHOWN_RUNS])}{more}"


def _task_facts(run: StoredRun) -> dict[str, Any]:
    last = run.record["environments"][-1]
    versions = {name: last.get(name) for name in ("mujoco", "qdbench")}
    return {key: value for key, value in flat(run.record["task"]).items() if key != "source"} | versions


def flat(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return a nested record without its levels."""
    found: dict[str, Any] = {}
    for key, value in nested.items():
        found |= flat(value) if isinstance(value, dict) else {key: value}
    return found
