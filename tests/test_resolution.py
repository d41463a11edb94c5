"""Episodes with too few steps to tell the cells of a descriptor apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import qdbench
from noisy_runs import run
from qdbench.analysis.warnings_of_runs import resolution_warning


def test_a_descriptor_too_coarse_for_its_cells_is_told(tmp_path: Path) -> None:
    def warning(name: str, **options: Any) -> str:
        task = qdbench.make(name, **options)
        path = run(tmp_path / task.fingerprint, task, "random_search", 0, corrections=0, batch_size=200)
        return resolution_warning(qdbench.load(path))

    assert warning("hopper_uni", episode_length=12).startswith(
        "hopper_uni: the descriptor is a share of an episode's steps, and 12 steps give at most 13 values "
        "for 900 cells. "
    )
    assert warning("hopper_uni", episode_length=12, cells=(5,)) == ""
    fallen = warning("hopper_uni", episode_length=60, cells=(60,))  # most fall before
    assert "values for 60 cells" in fallen
    assert "seed-0)" in fallen
    assert warning("ant_omni", episode_length=5) == ""  # a position is no share


def test_functions_have_no_steps(noisy_results: Path) -> None:
    run_of_a_function = next(noisy_results.rglob("run.json")).parent
    assert resolution_warning(qdbench.load(run_of_a_function)) == ""
