"""Metrics of finished runs in small files: a campaign goes on elsewhere when its runs are gone.

A file has the runs of one folder of one task: all their metrics, and when, where and with which versions
they were made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from qdbench.analysis.measured import MeasuredRun
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.metrics.metric import METRICS
from qdbench.paper.references import references_of_today
from qdbench.store.files import write_text
from qdbench.store.plain import differences
from qdbench.store.record import RunRecord
from qdbench.store.reference_file import Reference
from studies.campaign import measured, without_nan

Runs = dict[str, dict[str, dict[str, Any]]]
"""By algorithm and seed: the metrics of a run, and how it was `made`."""


Known = dict[str, Any]
"""Runs of one task and size: what all have in common as `task`, and `runs`; empty if there are none."""


More = Callable[[MeasuredRun], dict[str, Any]]
"""What a study needs of a run beyond its metrics, ready for JSON."""


def gathered(runs: Path, kept: Path | None, more: More = lambda run: {}) -> dict[str, Runs]:
    """Return what is known, by folder: of the runs in `runs`, and of those that were kept."""
    folders = {path.name for path in runs.iterdir() if path.is_dir()} if runs.is_dir() else set()
    files = set() if kept is None else {path.stem for path in kept.glob("*.json")}
    found = {name: together(runs, kept, name, more) for name in sorted(folders | files)}
    return {name: known["runs"] for name, known in found.items() if known}


def together(runs: Path, kept: Path | None, name: str, more: More = lambda run: {}) -> Known:
    """Return what is known of the runs of one folder; nothing if there are none."""
    path = None if kept is None else kept / f"{name}.json"
    earlier = json.loads(path.read_text()) if path is not None and path.exists() else {}
    return joined(earlier, of_runs(runs / name, more))


def joined(earlier: Known, now: Known) -> Known:
    """Return all runs of both, and of two alike the later; refuse runs of another task or size."""
    if not (earlier and now):
        return earlier or now
    apart = differences(earlier["task"], now["task"])
    if apart:
        raise InvalidInput(f"earlier runs are of another task or size: {'; '.join(apart)}")
    labels = [*earlier["runs"], *(label for label in now["runs"] if label not in earlier["runs"])]
    runs = {label: earlier["runs"].get(label, {}) | now["runs"].get(label, {}) for label in labels}
    return {"task": now["task"], "runs": runs}


def keep(chosen: argparse.Namespace, more: More = lambda run: {}) -> int:
    """Write the metrics of the finished runs, beside what was kept before; return in how many folders not.

    Of all folders, unless the command line names `tasks`.
    """
    n_failed = 0
    wanted = getattr(chosen, "tasks", None)
    folders = sorted(path for path in chosen.runs.iterdir() if path.is_dir())
    for folder in (one for one in folders if wanted is None or one.name in wanted):
        try:
            found = together(chosen.runs, chosen.kept, folder.name, more)
        except QdbenchError as error:  # the others are written
            print(f"{folder}: {error}", file=sys.stderr)
            n_failed += 1
            continue
        if found:
            write_numbers(path := chosen.kept / f"{folder.name}.json", found)
            print(f"Written: {path} ({sum(map(len, found['runs'].values()))} runs)")
    return n_failed


def of_runs(folder: Path, more: More = lambda run: {}) -> Known:
    """Return the metrics of the finished runs of the only task in a folder; nothing if there is none."""
    found = measured(folder)
    if found is None:
        return {}
    runs: Runs = {
        variant.label: {
            str(run.seed): {
                **{name: run.values[name] for name in METRICS},
                "steps": run.run.record.totals.steps,
                **more(run),
                "made": made(run.run.record),
            }
            for run in variant.runs
        }
        for variant in found.variants
    }
    return {"task": task_of(found.runs[0].record), "runs": runs}


def shipped(task: str) -> Known:
    """Return the reference results of a task at standard scale, as if they had been kept."""
    usable = [
        one for one in references_of_today().found if (one.scale.name, one.task.name) == ("standard", task)
    ]
    same = [one for one in usable if one.last_environment.mujoco == version("mujoco")]
    if not same:
        return {}
    runs = {one.variant: {str(run.seed): dict(one.values_of(run)) for run in one.runs} for one in same}
    return {"task": task_of(same[0]), "runs": runs}


def task_of(record: RunRecord | Reference) -> dict[str, Any]:
    """Return what must be the same for all runs of a table: task, cells, score interval and sizes."""
    names = ("name", "version", "fingerprint", "episode_length")
    found = {name: getattr(record.task, name) for name in names}
    sizes = {
        "evaluations": record.target.evaluations,
        "reevaluations": record.target.corrections.reevaluations,
    }
    facts = {"score_interval": list(record.facts.score_interval), "counts_steps": record.facts.counts_steps}
    return found | sizes | facts | {"cells": list(record.task.cells)}


def made(record: RunRecord) -> dict[str, Any]:
    """Return when, where and with which versions a run was made."""
    names = ("qdbench", "mujoco", "numpy", "cpu", "blas", "simd", "workers", "jobs")
    places = [{name: getattr(where, name) for name in names} for where in record.environments]
    changed = any(place != places[0] for place in places)
    return {"date": record.updated[:10], **places[-1], **({"continued_elsewhere": True} if changed else {})}


def write_numbers(path: Path, found: Any) -> None:
    """Write a file that anyone can open; seven digits of every number are enough."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(without_nan(_plain(found)), separators=(",", ":")) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return float(f"{value:.7g}") if isinstance(value, float) else value
