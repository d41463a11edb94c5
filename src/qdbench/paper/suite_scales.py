"""The scales of `qdbench suite`: affordable official experiments over the nine tasks, as versioned records.

Tune on seeds from 100 up; report seeds 0-4 or 0-9. If a number of a scale changes, raise its version.
Reference results of another version are never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qdbench.errors import InvalidInput, UnknownName
from qdbench.paper.protocol import OFFICIAL, REPRODUCED_TASK, SCALES, Scale
from qdbench.seeds import TUNING_SEEDS

REPORTED_SEEDS = 10
"""Seeds below this are for results to report."""
SeedsKind = Literal["reported", "some", "tuning"]


@dataclass(frozen=True)
class SuiteScale:
    """One experiment over the nine tasks."""

    name: str
    version: int
    tasks: Mapping[str, Scale]
    """The sizes of every task."""
    steps: Mapping[str, float]
    """Control steps of one run of MAP-Elites with its re-evaluations, measured with seeds from 100 up. They
    turn the speed of this machine into a duration, on tasks without reference results."""

    @property
    def n_seeds(self) -> int:
        """The number of seeds of a result: 0, 1, 2, …"""
        return max(size.replications for size in self.tasks.values())

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name} scale (version {self.version})"


_QUICK = Scale(2_048, 100, 5, 1, 4, batch_size=128)
_QUICK_OMNI = replace(
    _QUICK, episode_length=250
)  # with 100 steps, MAP-Elites was not above random search on ant_omni
_STANDARD = Scale(10_240, 250, 5, 1, 16)
_ALONG = SCALES["laptop"].corrections  # runs of this task are also those of `reproduce --scale laptop`

SUITE_SCALES = {
    scale.name: scale
    for scale in (
        SuiteScale(
            "quick",
            1,
            {task: _QUICK_OMNI if task.endswith("_omni") else _QUICK for task in OFFICIAL},
            {
                "hopper_uni": 151e3,
                "walker_uni": 238e3,
                "halfcheetah_uni": 340e3,
                "ant_uni": 325e3,
                "humanoid_uni": 287e3,
                "hexapod_uni": 504e3,
                "ant_omni": 661e3,
                "humanoid_omni": 203e3,
                "hexapod_omni": 446e3,
            },
        ),
        SuiteScale(
            "standard",
            1,
            {
                task: replace(_STANDARD, corrections=_ALONG) if task == REPRODUCED_TASK else _STANDARD
                for task in OFFICIAL
            },
            {  # of some tasks; their re-evaluations computed from the steps of the elites
                "walker_uni": 2.5e6,
                "halfcheetah_uni": 5.1e6,
                "humanoid_uni": 1.6e6,
                "humanoid_omni": 1.3e6,
            },
        ),
        SuiteScale("paper", 1, OFFICIAL, {}),
    )
}


def suite_scale(name: str) -> SuiteScale:
    """Return a scale by its name."""
    if not isinstance(name, str) or name not in SUITE_SCALES:
        raise UnknownName("scale", name, SUITE_SCALES, f"use {', '.join(SUITE_SCALES)}")
    return SUITE_SCALES[name]


def suite_tasks(scale: SuiteScale, tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the chosen tasks, each once, in the order of the scale; none chosen means all."""
    for task in tasks:
        if task not in scale.tasks:
            raise UnknownName("task", task, scale.tasks, f"the suite has {', '.join(scale.tasks)}")
    return tuple(task for task in scale.tasks if not tasks or task in tasks)


def seeds_kind(seeds: Iterable[int], scale: SuiteScale) -> SeedsKind:
    """Return what seeds are good for: a result to report, a part of it, or tuning. A mixture is refused."""
    chosen = set(seeds)
    reported = {seed for seed in chosen if seed < REPORTED_SEEDS}
    if reported and reported != chosen:
        other = min(chosen - reported)
        raise InvalidInput(
            f"seeds {min(reported)} and {other} do not belong together: report seeds 0-4 or 0-9, tune on "
            f"seeds from {TUNING_SEEDS} up, in two commands"
        )
    if not reported:
        return "tuning"
    complete = [set(range(n)) for n in (scale.n_seeds, REPORTED_SEEDS)]
    return "reported" if chosen in complete else "some"
