"""An independent recomputation: NumPy and the two files of a run, nothing of qdbench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdbench import load
from qdbench.analysis.measures import PlacedRun, curves, final
from qdbench.metrics.profile import profile
from toy_runs import ALGORITHMS, BOUNDS, SEEDS, TASKS, make_all


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("comparison") / "results")


def plain_cells(arrays: Any, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    if arrays["kind"] == "grid":
        shape = arrays["shape"]
        index = np.clip(np.floor(shares * shape), 0, shape - 1).astype(int)
        return np.array(index @ np.append(np.cumprod(shape[:0:-1])[::-1], 1), np.int64)
    gaps = np.clip(shares, 0, 1)[:, None] - arrays["centroids"][None]
    return np.array(np.square(gaps).sum(axis=2).argmin(axis=1), np.int64)


def plain_corrected(arrays: Any, corrected: Any) -> NDArray[np.float64]:
    """Insert the elites at their means into an empty archive, one by one; return the survivors' fitness."""
    last = f"point_{int(corrected['n_points']) - 1}_"
    assert corrected[f"{last}evaluations"] == arrays["n_evaluations"]
    rows = corrected[f"{last}rows"]
    fitness, descriptors = (corrected[key][rows].mean(axis=1) for key in ("fitness", "descriptors"))
    low, high = arrays["descriptor_bounds"].T
    valid = ~np.isnan(fitness)
    fitness, shares = fitness[valid], ((descriptors - low) / (high - low))[valid]
    kept: list[int] = []
    cells = None if arrays["kind"] == "unstructured" else plain_cells(arrays, shares)
    for i in range(len(fitness)):
        if cells is None:
            rivals = [k for k in kept if np.linalg.norm(shares[i] - shares[k]) <= arrays["threshold"]]
        else:
            rivals = [k for k in kept if cells[k] == cells[i]]
        if not rivals:
            kept.append(i)
        elif len(rivals) == 1 and fitness[i] > fitness[rivals[0]]:
            kept[kept.index(rivals[0])] = i
    return np.array(fitness[kept])


def plain_deviations(corrected: Any) -> tuple[float, float]:
    """Return the median standard deviations of fitness and descriptor, elite by elite."""
    rows = corrected[f"point_{int(corrected['n_points']) - 1}_rows"]
    found = []
    for fitness, descriptors in zip(corrected["fitness"][rows], corrected["descriptors"][rows], strict=True):
        if not np.isnan(fitness).any():
            spread = np.cov(descriptors.T).trace() ** 0.5
            found.append((np.std(fitness, ddof=1), spread))
    return tuple(np.median(found, axis=0).tolist())


def plain_metrics(folder: Path) -> tuple[dict[str, float], NDArray[Any], NDArray[Any]]:
    arrays, corrected = (dict(np.load(folder / name)) for name in ("archive.npz", "corrected.npz"))
    low, high = BOUNDS
    before, after = arrays["fitness"], plain_corrected(arrays, corrected)
    found: dict[str, float] = {}
    for prefix, fitness in (("", before), ("corrected_", after)):
        found[f"{prefix}coverage"] = len(fitness)
        found[f"{prefix}qd_score"] = ((fitness - low) / (high - low)).sum()
        found[f"{prefix}max_fitness"] = fitness.max()
        found[f"{prefix}mean_fitness"] = ((fitness - low) / (high - low)).mean()
    for name in ("coverage", "qd_score", "max_fitness"):
        found[f"{name}_loss"] = (found[name] - found[f"corrected_{name}"]) / found[name]
    found["self_normalised_qd_score"] = ((before - before.min()) / np.ptp(before)).sum()
    found["fitness_deviation"], found["descriptor_deviation"] = plain_deviations(corrected)
    return found, before, after


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("task", TASKS)
def test_plain_numpy_finds_the_same_in_the_files(task: str, algorithm: str, results: Path) -> None:
    lost = 0.0
    for seed in SEEDS:
        folder = results / task / algorithm / f"seed-{seed}"
        expected, before, after = plain_metrics(folder)
        run = load(folder)
        found = final(run, BOUNDS)
        assert curves(run, BOUNDS).values["self_normalised_qd_score"][-1] == pytest.approx(
            expected["self_normalised_qd_score"]
        )
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9)
        assert found["coverage_loss"] > 0
        lost += found["lost_elites"]
        point = run.final_point
        assert point is not None
        corrected = PlacedRun(run).corrected(point).elites.fitness
        for plain, ours in ((before, run.archive.fitness), (after, corrected)):
            staircase = profile(ours)
            for threshold in (*np.linspace(*BOUNDS, 29), plain.max() - 1e-9, plain.max() + 1e-9):
                assert staircase(threshold) == (plain >= threshold).sum()
            area = np.ptp(BOUNDS) * ((plain - BOUNDS[0]) / np.ptp(BOUNDS)).sum()
            assert staircase.area(*BOUNDS) == pytest.approx(area)
    assert lost > 0  # one in a hundred is invalid
