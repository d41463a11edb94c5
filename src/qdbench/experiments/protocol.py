"""What an official result is made of, and the paper's experiment at three scales.

Versioned like the tasks: raise `VERSION` when any number here changes, and say so in docs/reproduction.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from qdbench.errors import UnknownName

VERSION = 1


@dataclass(frozen=True)
class Scale:
    """How large an experiment is."""

    evaluations: int
    episode_length: int
    replications: int
    """Seeds 0, 1, 2, …"""
    corrections: int
    """Moments along a run at which all elites are re-evaluated; the last is the end."""
    reevaluations: int
    batch_size: int = 256


@dataclass(frozen=True)
class Contender:
    """One line of the paper's figure."""

    algorithm: str
    name: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """What its runs are called."""
        return f"{self.algorithm}-{self.name}" if self.name else self.algorithm


_FULL = Scale(1_000_000, 1000, 10, 10, 50)

OFFICIAL: dict[str, Scale] = {
    "hopper_uni": _FULL,
    "walker_uni": _FULL,
    "halfcheetah_uni": _FULL,
    "ant_uni": _FULL,
    "humanoid_uni": _FULL,
    "hexapod_uni": _FULL,
    "ant_omni": _FULL,
    "humanoid_omni": _FULL,
    "hexapod_omni": _FULL,
}
"""What a result must be made with to be called official, by task."""

REPRODUCED_TASK = "ant_omni"

SCALES = {
    "smoke": Scale(2_048, 50, 2, 2, 5),
    "laptop": Scale(10_240, 250, 5, 3, 16),
    "paper": OFFICIAL[REPRODUCED_TASK],
}

CONTENDERS = (
    Contender("map_elites"),
    Contender("cvt_map_elites"),
    Contender("random_search"),
    Contender("random_search", "uniform", (("init", "uniform"),)),
)
"""The paper's three, random search with both initialisations."""


def scale_of(name: str) -> Scale:
    """Return a scale by its name."""
    if name not in SCALES:
        raise UnknownName("scale", name, SCALES, f"use {', '.join(SCALES)}")
    return SCALES[name]
