"""A small run of a robot, made once for all tests of films."""

from __future__ import annotations

from pathlib import Path

import qdbench
from qdbench.store.loading import StoredRun
from running import carry_out


def filmed_run(
    out: Path, task: str = "hopper_uni", algorithm: str = "map_elites", *, corrections: int = 1,
    length: int = 40, name: str = "",
) -> StoredRun:  # fmt: skip
    """Return a run of 96 episodes; each elite was re-evaluated 4 times."""
    made = qdbench.make(task, episode_length=length)
    path = carry_out(
        made, algorithm, 0, out=out, name=name, source=task, evaluations=96,
        options={"batch_size": "48"}, corrections=corrections, reevaluations=4,
    )  # fmt: skip
    return qdbench.load(path)
