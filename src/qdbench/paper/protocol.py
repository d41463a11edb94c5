"""The protocol of official results, and the paper's experiment at three scales.

If any number here changes, raise `VERSION` and update docs/reproduction.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qdbench.errors import UnknownName
from qdbench.store.record import variant_label

VERSION = 2


@dataclass(frozen=True)
class Scale:
    """The size of an experiment."""

    evaluations: int
    episode_length: int
    replications: int
    """Seeds 0, 1, 2, … of every contender."""
    corrections: int
    """Correction points of a run; the last one is its end."""
    reevaluations: int
    batch_size: int = 256
    more_replications: tuple[tuple[str, int], ...] = ()
    """Contenders with another number of replications, by their labels."""

    def seeds(self, contender: Contender) -> range:
        """Return the seeds of a contender."""
        return range(dict(self.more_replications).get(contender.label, self.replications))


@dataclass(frozen=True)
class Contender:
    """One variant in the paper's figure."""

    algorithm: str
    name: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The name of the variant."""
        return variant_label(self.algorithm, self.name)


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
"""The scale of an official result, by task."""

REPRODUCED_TASK = "ant_omni"

_TO_BE_ALIKE = (("map_elites", 20), ("cvt_map_elites", 20))
"""So many replications can show that two algorithms perform alike."""

SCALES = {
    "smoke": Scale(2_048, 50, 2, 2, 5),
    "laptop": Scale(10_240, 250, 5, 3, 16, more_replications=_TO_BE_ALIKE),
    "paper": replace(OFFICIAL[REPRODUCED_TASK], more_replications=_TO_BE_ALIKE),
}

CONTENDERS = (
    Contender("map_elites"),
    Contender("cvt_map_elites"),
    Contender("random_search"),
    Contender("random_search", "uniform", (("init", "uniform"),)),
)
"""The paper's three algorithms; random search with two initialisations."""


def scale_of(name: str) -> Scale:
    """Return a scale by its name."""
    if not isinstance(name, str) or name not in SCALES:
        raise UnknownName("scale", name, SCALES, f"use {', '.join(SCALES)}")
    return SCALES[name]
