"""Solutions that are evaluated more than once: their samples joined, and means that stay exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qdbench.archives.evaluated import Evaluated
from qdbench.errors import InvalidInput


def grouped(told: Evaluated, k: int) -> Evaluated:
    """Return one row for every `k` consecutive rows: the same solution, with its k samples and their means.

    The mean of equal numbers is exactly that number. A solution with an invalid sample is invalid.
    """
    if len(told) % k:
        raise InvalidInput(f"{len(told)} evaluations are no groups of {k}")
    if k == 1:
        return told
    n, dimensions = len(told) // k, told.descriptors.shape[1]
    fitness, descriptors = told.fitness.reshape(n, k), told.descriptors.reshape(n, k, dimensions)
    return Evaluated(
        told.solutions[::k],
        fitness[:, 0] + (fitness - fitness[:, :1]).mean(axis=1),
        descriptors[:, 0] + (descriptors - descriptors[:, :1]).mean(axis=1),
        told.evaluations.reshape(n, -1),
        told.seeds.reshape(n, -1),
    )


def extended(known: Evaluated, more: Evaluated) -> Evaluated:
    """Return `known` with one more sample each; there must be a free place for it.

    The solutions are those of `known`. An invalid sample makes the row invalid.
    """
    n, rows = known.samples, np.arange(len(known))
    evaluations, seeds = known.evaluations.copy(), known.seeds.copy()
    evaluations[rows, n], seeds[rows, n] = more.evaluations[:, 0], more.seeds[:, 0]
    return replace(
        known,
        fitness=known.fitness + (more.fitness - known.fitness) / (n + 1),
        descriptors=known.descriptors + (more.descriptors - known.descriptors) / (n + 1)[:, None],
        evaluations=evaluations,
        seeds=seeds,
    )


def padded(evaluated: Evaluated, k: int) -> Evaluated:
    """Return the same rows with `k` places for samples."""
    missing = k - evaluated.evaluations.shape[1]
    if missing <= 0:
        return evaluated
    places = ((0, 0), (0, missing))
    return replace(
        evaluated,
        evaluations=np.pad(evaluated.evaluations, places, constant_values=-1),
        seeds=np.pad(evaluated.seeds, places),
    )


def joined(first: Evaluated, second: Evaluated) -> Evaluated:
    """Return the rows of both, with as many places for samples as the larger."""
    k = max(first.evaluations.shape[1], second.evaluations.shape[1])
    parts = padded(first, k), padded(second, k)
    return Evaluated(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("solutions", "fitness", "descriptors", "evaluations", "seeds")
        )
    )
