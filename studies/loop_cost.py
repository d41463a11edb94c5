"""What an iteration costs besides simulation: over time, and over the fill of the archive.

python studies/loop_cost.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import qdbench
from qdbench import Archive, Evaluated, Grid, stream
from qdbench.archives.geometry import Cvt, Unstructured, centroids
from qdbench.archives.unstructured import UnstructuredArchive
from qdbench.policy import Parameters
from qdbench.seeds import bulk_stream

BOX = ((0.0, 1.0), (0.0, 1.0))


def over_time(evaluations: int = 3_000_000, windows: int = 6) -> None:
    """One long run on the sphere: its rate and the process's memory, window by window."""
    print("| evaluations | filled cells | evaluations/s | algorithm ms/iteration | resident MB |")
    print("|" + "---|" * 5)
    with tempfile.TemporaryDirectory() as folder:
        seconds = algorithm = 0.0
        for window in range(1, windows + 1):
            run = qdbench.run(
                "qdbench.tasks.sphere:task",
                evaluations=evaluations * window // windows,
                out=folder,
                iso_sigma=0.5,
                line_sigma=0.2,
            )
            totals, metrics = run.record.totals, run.metrics
            rate = evaluations / windows / (totals.seconds - seconds)
            cost = (totals.algorithm_seconds - algorithm) / (evaluations / windows / 256)
            seconds, algorithm = totals.seconds, totals.algorithm_seconds
            print(
                f"| {totals.evaluations:,} | {metrics['coverage'][-1]:,} | {rate:,.0f} "
                f"| {1e3 * cost:.2f} | {_resident_mb():.0f} |",
                flush=True,
            )


def over_fill(n_parameters: int = 10_312, batch: int = 256, repeats: int = 15) -> None:
    """Asking for offspring and inserting a batch, into archives of 10,000 cells filled to some share."""
    from qdbench.algorithms.variation import iso_line

    print("| archive | elites | variation ms | insertion ms |")
    print("|" + "---|" * 4)
    for kind in ("grid", "cvt", "unstructured"):
        for share in (0.01, 0.1, 0.5, 1.0):
            archive = _filled(kind, share, n_parameters)
            rng = stream(1, kind)
            asking, telling = [], []
            for _ in range(repeats):
                start = time.perf_counter()
                solutions = iso_line(archive.elites.solutions, batch, 0.005, 0.05, bulk_stream(1, kind))
                middle = time.perf_counter()
                archive.insert(_batch(solutions, rng, share))
                telling.append(time.perf_counter() - middle)
                asking.append(middle - start)
            print(
                f"| {kind} | {len(archive):,} | {1e3 * np.median(asking):.1f} "
                f"| {1e3 * np.median(telling):.1f} |",
                flush=True,
            )


def _filled(kind: str, share: float, n_parameters: int) -> Archive:
    if kind == "unstructured":
        archive: Archive = UnstructuredArchive(Unstructured(BOX, 0.01), n_parameters)
    else:
        grid = kind == "grid"
        archive = Archive(Grid(BOX, (100, 100)) if grid else Cvt(BOX, centroids(10_000, 2)), n_parameters)
    rng = stream(0, kind)
    for _ in range(int(share * 200)):
        archive.insert(_batch(np.zeros((256, n_parameters), np.float32), rng, share))
    return archive


def _batch(solutions: Parameters, rng: np.random.Generator, share: float) -> Evaluated:
    """Random fitness and a random place in the part of the box that is to be filled."""
    n = len(solutions)
    places = rng.random((n, 2)) * np.sqrt(share)
    return Evaluated(
        solutions, rng.standard_normal(n), places, np.arange(n)[:, None], np.zeros((n, 1), np.uint64)
    )


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    over_time()
    print()
    over_fill()
