"""What is checked of a record beyond its types: ranges, and what must fit together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from qdbench.errors import InvalidInput
from qdbench.store.record import (
    Determinants,
    MetricsExtent,
    RunRecord,
    Target,
    TaskRecord,
    Totals,
    file_name,
)

MOST_CELLS = 2**24
"""Of a grid: drawing it takes 8 bytes for each."""


def require_sound(record: RunRecord) -> None:
    """Raise InvalidInput where a record cannot be that of a run."""
    require_sound_determinants(record)
    require_sound_totals(record.totals)
    require_sound_extent(record.metrics)
    _require_sound_target(record.target)
    interval = record.facts.score_interval
    _require(_ascending(interval), f"its score interval is {interval}, which is no interval")
    names = record.facts.descriptor_names
    _require(len(names) == len(record.task.cells), "it has not one name per descriptor dimension")
    _require(bool(record.environments), "it ran nowhere")
    for environment in record.environments:
        _require(min(environment.workers, environment.jobs) >= 1, "it ran with no worker")
        _require(all(node.cpus >= 1 for node in environment.nodes), "it ran on a node without a CPU")
    for when in (record.begun, record.updated):
        _require(datetime.fromisoformat(when).tzinfo is not None, f"{when!r:.60} is no time")


def require_sound_determinants(found: Determinants) -> None:
    """Raise InvalidInput where nothing can be determined like this."""
    _require_sound_task(found.task)
    file_name(found.task.name)
    _require(bool(found.algorithm.name), "its algorithm has no name")
    _require(0 <= found.seed < 2**63, f"its seed is {found.seed}")


def _require_sound_task(task: TaskRecord) -> None:
    _require(task.version >= 0 and task.n_parameters >= 1, "its task has no parameters")
    _require(len(task.cells) == len(task.descriptor_bounds) >= 1, "its cells do not fit its descriptor")
    possible = min(task.cells) >= 1 and math.prod(task.cells) <= MOST_CELLS
    _require(possible, f"its task has {task.cells} cells; give 1 to {MOST_CELLS:,} in all")
    for bounds in (*task.descriptor_bounds, task.fitness_bounds):
        _require(_ascending(bounds), f"{bounds} are no bounds")
    length = task.options.get("episode_length")
    _require(length is None or (type(length) is int and length >= 1), f"its episode_length is {length!r:.60}")


def _require_sound_target(target: Target) -> None:
    _require(target.evaluations is None or target.evaluations >= 1, "its target is no number of evaluations")
    _require(target.evaluations is not None or target.seconds is not None, "it has no target")
    _require(
        target.corrections.points >= 0 and target.corrections.reevaluations >= 1,
        "its corrections are impossible",
    )


def require_sound_totals(totals: Totals) -> None:
    """Raise InvalidInput where a run cannot have come this far."""
    counts = (totals.iteration, totals.evaluations, totals.previous_evaluations, totals.steps, totals.invalid)
    _require(min(counts) >= 0 and max(counts) < 2**63, "a total is negative or too large")
    _require(
        totals.iteration <= totals.evaluations and totals.invalid <= totals.evaluations,
        "its totals do not fit together",
    )
    _require((totals.evaluations == 0) == (totals.iteration == 0), "its totals do not fit together")
    seconds = [value for name, value in vars(totals).items() if name.endswith("seconds")]
    _require(all(0 <= value < math.inf for value in seconds), "a time is negative or unknown")
    lowest, highest = totals.lowest_fitness, totals.highest_fitness
    _require(
        math.isnan(lowest) == math.isnan(highest) and not lowest > highest,
        "its lowest fitness is above its highest",
    )


def require_sound_extent(extent: MetricsExtent) -> None:
    """Raise InvalidInput where no file can have this size and checksum."""
    _require(
        0 <= extent.n_bytes < 2**62 and 0 <= extent.crc32 < 2**32, "its size of metrics.csv is impossible"
    )


def _ascending(bounds: Sequence[float]) -> bool:
    low, high = bounds
    return math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)


def _require(fits: bool, words: str) -> None:
    if not fits:
        raise InvalidInput(words)
