"""An independent recomputation: NumPy and the files of a run, nothing of qdbench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdbench import load
from qdbench.analysis.measures import PlacedRun, curves, final
from qdbench.metrics.lives import lived, mostly
from qdbench.metrics.profile import profile
from qdbench.seeds import numbered_seeds
from toy_runs import ALGORITHMS, BOUNDS, LENGTH, SEEDS, TASKS, make, make_all, mortal


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


def plain_files(folder: Path) -> tuple[Any, Any]:
    """Return archive.npz and corrected.npz; of an archive without cells, the best of each of the task's."""
    arrays, corrected = (dict(np.load(folder / name)) for name in ("archive.npz", "corrected.npz"))
    if arrays["kind"] == "unstructured":
        arrays["kind"] = "grid"
        arrays["shape"] = np.array(json.loads((folder / "run.json").read_text())["task"]["cells"])
        last = f"point_{int(corrected['n_points']) - 1}_"
        low, high = arrays["descriptor_bounds"].T
        best: dict[int, int] = {}
        for row, cell in enumerate(plain_cells(arrays, (arrays["descriptors"] - low) / (high - low))):
            if cell not in best or arrays["fitness"][row] > arrays["fitness"][best[cell]]:
                best[cell] = row
        counted = sorted(best.values())
        np.testing.assert_array_equal(corrected[f"{last}fitness"], arrays["fitness"])
        corrected[f"{last}rows"] = corrected[f"{last}rows"][counted]
        for name in ("fitness", "steps", "evaluations"):
            arrays[name] = arrays[name][counted]
    return arrays, corrected


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
    cells = plain_cells(arrays, shares)
    for i in range(len(fitness)):
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


def plain_metrics(
    folder: Path, interval: tuple[float, float] = BOUNDS
) -> tuple[dict[str, float], NDArray[Any], NDArray[Any]]:
    arrays, corrected = plain_files(folder)
    low, high = interval
    before, after = arrays["fitness"], plain_corrected(arrays, corrected)
    found: dict[str, float] = {}
    for prefix, fitness in (("", before), ("corrected_", after)):
        found[f"{prefix}coverage"] = len(fitness)
        normalised = [min(max((f - low) / (high - low), 0.0), 1.0) for f in fitness.tolist()]
        found[f"{prefix}qd_score"] = sum(normalised)
        found[f"{prefix}max_fitness"] = fitness.max()
        found[f"{prefix}mean_fitness"] = sum(normalised) / len(normalised)
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
        assert found["coverage_loss"] > 0 or algorithm == "map_elites_unstructured"  # sparse on the grid
        lost += found["lost_elites"]
        point = run.final_point
        assert point is not None
        placed = PlacedRun(run)
        for plain, ours in ((before, placed.fitness), (after, placed.corrected(point).elites.fitness)):
            staircase = profile(ours)
            for threshold in (*np.linspace(*BOUNDS, 29), plain.max() - 1e-9, plain.max() + 1e-9):
                assert staircase(threshold) == (plain >= threshold).sum()
            area = np.ptp(BOUNDS) * ((plain - BOUNDS[0]) / np.ptp(BOUNDS)).sum()
            assert staircase.area(*BOUNDS) == pytest.approx(area)
    assert lost > 0  # one in a hundred is invalid


def plain_lives(folder: Path, interval: tuple[float, float]) -> dict[str, float]:
    """Return the metrics of elites that lived to the end, elite by elite."""
    arrays, corrected = plain_files(folder)
    low, high = interval
    alive, score = 0, 0.0
    for fitness, steps, numbers in zip(
        arrays["fitness"], arrays["steps"], arrays["evaluations"], strict=True
    ):
        if all(s == LENGTH for s, number in zip(steps, numbers, strict=True) if number >= 0):
            alive += 1
            score += min(max((fitness - low) / (high - low), 0.0), 1.0)
    rows = corrected[f"point_{int(corrected['n_points']) - 1}_rows"]
    lives = corrected["steps"][rows]
    valid = ~np.isnan(corrected["fitness"][rows])
    return {
        "alive_coverage": alive,
        "alive_share": alive / len(arrays["fitness"]),
        "alive_qd_score": score,
        "corrected_alive_share": np.mean([(s == LENGTH) & v for s, v in zip(lives, valid, strict=True)]),
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lives_and_a_clipped_score_are_found_in_the_files(algorithm: str, tmp_path: Path) -> None:
    task, interval = mortal(), (8.0, 9.5)
    folder = make(tmp_path / "run", task, algorithm, evaluations=400)
    run = load(folder)
    fitness = run.archive.fitness
    assert fitness.min() < interval[0]
    assert fitness.max() > interval[1]
    expected = plain_metrics(folder, interval)[0] | plain_lives(folder, interval)
    found = final(run, interval)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert 0 < found["alive_share"] < 1
    assert 0 < found["corrected_alive_qd_score"] <= found["corrected_qd_score"]
    rows, prefix = run.metrics, "grid_" if run.geometry.kind == "unstructured" else ""
    for name in ("qd_score", "alive_coverage", "alive_qd_score"):
        assert rows[f"{prefix}{name}"][-1] == found[name]
    assert rows["steps"][-1] == sum(
        int(s % LENGTH) if s % 4 == 0 else LENGTH for s in map(int, plain_seeds(folder))
    )
    possible = curves(run, BOUNDS).values["qd_score"]
    assert possible[-1] == pytest.approx(plain_metrics(folder)[0]["qd_score"])
    assert np.isnan(curves(run, (8.0, 9.0)).values["qd_score"][-1])  # cut off: the sums cannot tell


def plain_seeds(folder: Path) -> NDArray[np.uint64]:
    record = load(folder).record
    n = record.totals.evaluations
    return numbered_seeds(record.seed, "run", record.algorithm.name, first=0, n=n)


def test_at_least_half_of_the_reevaluations_must_live() -> None:
    alive = np.array([[True, True, False, False], [True, False, False, False], [True] * 4])
    assert mostly(alive).tolist() == [True, False, True]
    steps = np.array([[300, 0], [300, 299], [7, 300]], np.uint16)
    numbers = np.array([[4, -1], [5, 6], [7, 8]])
    found = lived(steps, numbers, 300)
    assert found is not None
    assert found.tolist() == [True, False, False]
    assert lived(steps, numbers, None) is None
