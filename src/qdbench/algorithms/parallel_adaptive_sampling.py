"""Parallel-Adaptive-Sampling: offspring get as many samples as the container usually has."""

from __future__ import annotations

import numpy as np

from qdbench.algorithms.archive_sampling import ArchiveSampling
from qdbench.algorithms.contract import Problem


class ParallelAdaptiveSampling(ArchiveSampling):
    """Archive-Sampling whose offspring get the container's median number of samples, rounded down.

    Nothing gets more than `max_samples`.

    Source: Flageat and Cully 2023.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        batch_size: int = 256,
        initial: int = 256,
        iso_sigma: float = 0.005,
        line_sigma: float = 0.05,
        depth: int = 2,
        max_samples: int = 8,
        memory_gb: float = 4.0,
    ) -> None:
        super().__init__(
            problem,
            seed,
            batch_size=batch_size,
            initial=initial,
            iso_sigma=iso_sigma,
            line_sigma=line_sigma,
            depth=depth,
            samples=1,
            max_samples=max_samples,
            memory_gb=memory_gb,
        )

    def _first_samples(self) -> int:
        return int(np.median(self.container.counts)) if len(self.container) else 1
