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

    def facts(where: Mapping[str, Any]) -> dict[str, Any]:
        return {"cpu": where.get("cpu"), "workers": where.get("workers"), "jobs": where.get("jobs", 1)}

    ran = [(run, facts(where)) for v in variants for run in v.runs for where in run.record["environments"]]
    differing = "; ".join(differing(ran))
    return f"seconds are left out, because the runs differ in {differing}" if differing else ""


def require_comparable(variants: Sequence[Variant]) -> None:
    """Refuse a task's runs that are not one experiment: other tasks, budgets, options, or one replication twice."""
    task, runs = variants[0].task, [run for variant in variants for run in variant.runs]
    if differing((run, {"": run.record["task"]["fingerprint"]}) for run in runs):
        different = "; ".join(differing((run, _task_facts(run)) for run in runs))
        raise InvalidInput(f"the runs of {task} are not of the same task: {different}; compare them apart")
    budgets = "; ".join(differing((run, run.record["target"]) for run in runs))
    if budgets:
        raise InvalidInput(
            f"the runs of {task} had different budgets: {budgets}; compare them apart, or resume the shorter"
        )
    times = times_comparable(variants)
    if times and runs[0].record["target"]["evaluations"] is None:
        why = times.partition("because ")[2]
        raise InvalidInput(f"the runs of {task} had equal seconds but not equal budgets: {why}")
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
            raise InvalidInput(
                f"{twice[0].path} and {by_seed[seed].path} are both seed {seed} of {variant.label} on {task}: "
                "one replication must not count twice; leave one out"
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
