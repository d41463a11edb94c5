"""Metrics of finished runs in small files: a campaign goes on elsewhere when its runs are gone.

A file has the runs of one folder of one task: all their metrics, and when, where and with which versions
they were made.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qdbench.analysis.measured import MeasuredRun
from qdbench.errors import InvalidInput
from qdbench.metrics.metric import METRICS
from qdbench.store.plain import differences
from qdbench.store.record import RunRecord
from studies.campaign import measured, without_nan

Runs = dict[str, dict[str, dict[str, Any]]]
"""By algorithm and seed: the metrics of a run, and how it was `made`."""


More = Callable[[MeasuredRun], dict[str, Any]]
"""What a study needs of a run beyond its metrics, ready for JSON."""


def gathered(runs: Path, kept: Path | None, more: More = lambda run: {}) -> dict[str, Runs]:
    """Return what is known, by folder: of the runs in `runs`, and of those that were kept."""
    return {name: found["runs"] for name, found in _gathered(runs, kept, more).items()}


def keep(chosen: argparse.Namespace, more: More = lambda run: {}) -> None:
    """Write the metrics of the finished runs, beside what was kept before."""
    for name, found in _gathered(chosen.runs, chosen.kept, more).items():
        write_numbers(path := chosen.kept / f"{name}.json", found)
        print(f"Written: {path} ({sum(map(len, found['runs'].values()))} runs)")


def _gathered(runs: Path, kept: Path | None, more: More) -> dict[str, dict[str, Any]]:
    folders = sorted(path for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
    here = {path.name: found for path in folders if (found := of_runs(path, more))}
    for path in [] if kept is None else sorted(kept.glob("*.json")):
        earlier = json.loads(path.read_text())
        now = here.setdefault(path.stem, earlier)
        apart = differences(earlier["task"], now["task"])
        if apart:
            raise InvalidInput(f"{path} is of another task: {'; '.join(apart)}")
        for label, by_seed in earlier["runs"].items():
            now["runs"][label] = by_seed | now["runs"].get(label, {})
    return here


def of_runs(folder: Path, more: More = lambda run: {}) -> dict[str, Any]:
    """Return the metrics of the finished runs of the only task in a folder; nothing if there is none."""
    found = measured(folder)
    if found is None:
        return {}
    runs: Runs = {
        variant.label: {
            str(run.seed): {
                **{name: run.values[name] for name in METRICS},
                **more(run),
                "made": made(run.run.record),
            }
            for run in variant.runs
        }
        for variant in found.variants
    }
    return {"task": task_of(found.runs[0].record), "runs": runs}


def task_of(record: RunRecord) -> dict[str, Any]:
    """Return what must be the same for all runs of a table."""
    names = ("name", "version", "fingerprint", "episode_length")
    return {name: getattr(record.task, name) for name in names}


def made(record: RunRecord) -> dict[str, Any]:
    """Return when, where and with which versions a run was made."""
    names = ("qdbench", "mujoco", "numpy", "cpu", "simd", "workers")
    return {"date": record.updated[:10], **{name: getattr(record.environments[-1], name) for name in names}}


def write_numbers(path: Path, found: Any) -> None:
    """Write a file that anyone can open; seven digits of every number are enough."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(without_nan(_plain(found)), separators=(",", ":")) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return float(f"{value:.7g}") if isinstance(value, float) else value
