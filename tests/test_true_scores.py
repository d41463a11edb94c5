"""True scores, reproducibility and half corrections, computed again from the files in plain NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qdbench
from qdbench.metrics.metric import METRICS, NO_TRUTH
from qdbench.reports.spreads import spread_maps
from running import finished


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("truth")
    task = qdbench.make("arm_noisy_both", cells=(12, 12))
    qdbench.run(task, "extract_me", evaluations=3000, out=out, corrections=1, reevaluations=6)
    return out


def best(cells: list[tuple[int, ...]], fitness: np.ndarray) -> list[float]:
    found: dict[tuple[int, ...], float] = {}
    for cell, value in zip(cells, fitness.tolist(), strict=True):
        found[cell] = max(value, found.get(cell, -np.inf))
    return list(found.values())


def score(fitness: list[float]) -> float:
    return float(np.clip((np.array(fitness) + np.pi) / np.pi, 0, 1).sum())


def places(descriptors: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.clip(descriptors * 12, 0, 11).astype(int).tolist()]


def test_scores_are_those_of_plain_numpy(path: Path) -> None:
    (task,) = qdbench.measure(path).tasks
    (run,) = task.measured_runs
    with np.load(run.run.path / "archive.npz") as file:
        solutions, stored, where = file["solutions"], file["fitness"], file["descriptors"]
        samples = (file["evaluations"] >= 0).sum(axis=1)
    with np.load(run.run.path / "corrected.npz") as file:
        order = [file["keys"].tolist().index(key) for key in run.run.archive.evaluations[:, 0].tolist()]
        fitness, descriptors = file["fitness"][order], file["descriptors"][order]
    assert samples.max() > 3
    # the arm, joint by joint
    angles = (np.clip(solutions.astype(float), 0, 1) - 0.5) * 2 * np.pi
    end = np.full((len(angles), 2), 0.5)
    heading = np.zeros(len(angles))
    for joint in range(8):
        heading = heading + angles[:, joint]
        end += np.stack([np.cos(heading), np.sin(heading)], axis=1) / 16
    true = best(places(end), -angles.std(axis=1))
    assert run.values["true_coverage"] == len(true)
    assert run.values["true_qd_score"] == pytest.approx(score(true))
    half = best(places(where), fitness.mean(axis=1))
    assert run.values["fitness_corrected_qd_score"] == pytest.approx(score(half))
    half = best(places(descriptors.mean(axis=1)), stored)
    assert run.values["descriptor_corrected_qd_score"] == pytest.approx(score(half))
    of_fitness = np.clip(1 - 2 * fitness.std(axis=1, ddof=1) / np.pi, 0, 1)
    of_descriptor = np.clip(1 - 2 * np.sqrt(descriptors.var(axis=1, ddof=1).mean(axis=1)), 0, 1)
    assert run.values["fitness_reproducibility"] == pytest.approx(of_fitness.mean())
    assert run.values["descriptor_reproducibility"] == pytest.approx(of_descriptor.mean())
    assert run.values["reproducibility_score"] == pytest.approx((of_fitness * of_descriptor).sum())
    maps = spread_maps(task.variants[0], "own")
    assert maps is not None
    assert np.sort(maps[0].elites.fitness) == pytest.approx(np.sort(fitness.std(axis=1, ddof=1) / np.pi))


def test_the_truth_of_other_tasks_is_not_known(tmp_path: Path) -> None:
    finished(tmp_path)
    (run,) = qdbench.measure(tmp_path).tasks[0].measured_runs
    assert np.isnan(run.values["true_qd_score"])
    assert METRICS["true_qd_score"].why_undefined(run.values) == NO_TRUTH
    (entry,) = (e for e in qdbench.compare([tmp_path]).tasks[0].entries if e.metric == "true_coverage")
    assert entry.undefined == {NO_TRUTH: 1}


def test_without_noise_the_corrected_archive_is_the_true_one(tmp_path: Path) -> None:
    qdbench.run("arm", "map_elites", evaluations=2000, out=tmp_path, corrections=1, reevaluations=2)
    (run,) = qdbench.measure(tmp_path).tasks[0].measured_runs
    for name in ("coverage", "qd_score"):
        assert run.values[f"true_{name}"] == run.values[f"corrected_{name}"] == run.values[name]
    assert run.values["reproducibility_score"] == run.values["coverage"]


@pytest.mark.parametrize("algorithm", ["adaptive_sampling", "archive_sampling", "extract_me"])
def test_workers_do_not_matter(algorithm: str, tmp_path: Path) -> None:
    task = qdbench.make("hopper_uni", episode_length=20, cells=(20,))
    found = [
        qdbench.run(
            task,
            algorithm,
            evaluations=400,
            batch_size=32,
            initial=32,
            out=tmp_path / str(workers),
            workers=workers,
        ).archive.elites
        for workers in (1, 2)
    ]
    for name in ("solutions", "fitness", "descriptors", "evaluations", "seeds"):
        assert getattr(found[0], name).tobytes() == getattr(found[1], name).tobytes()
    assert found[0].samples.max() > 1
