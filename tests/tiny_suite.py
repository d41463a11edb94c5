"""The suite at a scale of seconds, for its tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qdbench.paper.protocol import OFFICIAL, Scale
from qdbench.paper.suite_scales import SUITE_SCALES, SuiteScale

SIZE = Scale(evaluations=96, episode_length=10, replications=5, corrections=2, reevaluations=2, batch_size=24)
TINY = SuiteScale("quick", 1, dict.fromkeys(OFFICIAL, SIZE), {})
TASKS = ("hopper_uni", "ant_omni")
CORRECTED = ("corrected_qd_score", "corrected_coverage", "corrected_max_fitness")


def shrink(patch: pytest.MonkeyPatch, *, version: int = 1) -> None:
    """Make the quick scale tiny, without replays, and forget the reference results of the package."""
    patch.setattr("qdbench.paper.references.SHIPPED", Path("no references"))
    patch.setattr("qdbench.paper.suite.film_page", lambda *arguments: None)  # test_replays.py has replays
    patch.setitem(SUITE_SCALES, "quick", replace(TINY, version=version))
    patch.setattr("qdbench.reports.style.DPI", 50)
    patch.setattr("qdbench.reports.style.FORMATS", ("png",))
