"""Re-evaluations of a run's elites: made once per elite, kept in corrected.npz, continued after a kill."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Cells
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.stored import Container
from qdbench.errors import InvalidInput
from qdbench.experiments.environment import environment
from qdbench.experiments.files import FORMAT, damage_named, read_npz, write_npz
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.plan import Plan, differences
from qdbench.experiments.store import RunFolder
from qdbench.metrics.robustness import Reevaluations
from qdbench.seeds import Seeds, numbered_seeds

CHUNK_BYTES = 2**28
"""Parameters that are evaluated at once: enough to keep all workers busy, little beside an archive."""
SAVE_EVERY = 30.0  # seconds; and never more than a fiftieth of the time
CorrectionProgress = Callable[[int, int], None]
"""Called with the number of re-evaluations done and needed, of one snapshot."""


@dataclass(frozen=True, eq=False)
class Correction:
    """A run's elites at one moment, as they were stored and as they were re-evaluated."""

    evaluations: int
    """Of the run when it was taken."""
    fitness: NDArray[np.float64]  #: (n,) as stored
    descriptors: NDArray[np.float64]  #: (n, dimensions) as stored
    cells: Cells  #: (n,)
    reevaluations: Reevaluations


@dataclass(frozen=True, eq=False)
class StoredCorrections:
    """corrected.npz: one or more corrections, the last one usually of the final archive."""

    n_reevaluations: int
    container: Container
    snapshots: tuple[Correction, ...]
    about: dict[str, Any]
    """task, fingerprint, algorithm, seed."""


class Corrector:
    """Takes snapshots of a run; an elite that was in an earlier one is not evaluated again."""

    def __init__(self, plan: Plan, folder: RunFolder, container: Container, n: int, workers: int) -> None:
        self._plan, self._folder, self._container = plan, folder, container
        self._n, self._workers = n, workers
        self._keys: list[int] = []  # the evaluation that made each re-evaluated elite, row by row
        self._originals: list[float] = []  # its fitness then
        dimensions = len(plan.task.cells)
        self._fitness: list[NDArray[np.float64]] = [np.empty((0, n))]
        self._descriptors: list[NDArray[np.float64]] = [np.empty((0, n, dimensions))]
        self._snapshots: list[dict[str, NDArray[Any]]] = []
        require_continuable(folder, plan, n)
        if folder.corrected_path.exists():
            self._continue()

    def _continue(self) -> None:
        arrays = read_npz(self._folder.corrected_path)
        with damage_named(self._folder.corrected_path):
            self._fitness, self._descriptors = [arrays["fitness"]], [arrays["descriptors"]]
            self._keys, self._originals = arrays["keys"].tolist(), arrays["originals"].tolist()
            self._snapshots = _snapshots(arrays)
            if len({len(arrays[name]) for name in ("keys", "originals", "fitness", "descriptors")}) != 1:
                raise ValueError("its arrays differ in length")

    def taken(self, evaluations: int) -> bool:
        """Return whether there is a snapshot of that moment."""
        return any(int(snapshot["evaluations"]) == evaluations for snapshot in self._snapshots)

    def take(
        self,
        evaluations: int,
        elites: Evaluated,
        cells: Cells,
        interrupt: Interrupt,
        progress: CorrectionProgress = lambda done, total: None,
    ) -> None:
        """Re-evaluate the elites of this moment, as far as they are new, and write everything down.

        An interruption keeps what is done; the same call continues it.
        """
        if self.taken(evaluations):
            return
        keys = elites.evaluations[:, 0]
        missing = self._missing(keys, elites.fitness)
        total, saved, pause = len(missing) * self._n, time.monotonic(), SAVE_EVERY
        size = max(1, CHUNK_BYTES // (4 * self._plan.task.n_parameters * self._n))
        try:
            for start in range(0, len(missing), size):
                told = partial(_report, progress, start * self._n, total)
                self._evaluate(elites, missing[start : start + size], interrupt, told)
                if time.monotonic() - saved > pause:
                    begun = time.monotonic()
                    self._write()
                    saved = time.monotonic()
                    pause = max(SAVE_EVERY, 50 * (saved - begun))
        except BaseException:
            self._write()
            raise
        row_of = {key: row for row, key in enumerate(self._keys)}
        rows = np.array([row_of[key] for key in keys.tolist()], np.int64)
        columns = {"fitness": elites.fitness.copy(), "descriptors": elites.descriptors.copy()}
        moment = np.array(evaluations)
        self._snapshots.append({"evaluations": moment, "rows": rows, "cells": cells.copy(), **columns})
        self._snapshots.sort(key=lambda snapshot: int(snapshot["evaluations"]))
        self._write()

    def _missing(self, keys: NDArray[np.int64], fitness: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return which elites are to be re-evaluated: each once.

        In a run continued elsewhere an evaluation may have another outcome than it had: then it is another
        elite.
        """
        known = dict(zip(self._keys, self._originals, strict=True))
        new = [known.get(key) != value for key, value in zip(keys.tolist(), fitness.tolist(), strict=True)]
        _, first = np.unique(keys, return_index=True)
        return np.array([i for i in np.sort(first) if new[i]], np.int64)

    def _evaluate(
        self,
        elites: Evaluated,
        some: NDArray[np.int64],
        interrupt: Interrupt,
        progress: CorrectionProgress,
    ) -> None:
        task, n, keys = self._plan.task, self._n, elites.evaluations[some, 0].tolist()
        seeds = np.concatenate([reevaluation_seeds(self._plan, key, n) for key in keys])
        repeated = np.repeat(elites.solutions[some], n, axis=0)
        with interrupt.allowed():
            result = task.evaluate(repeated, seeds, workers=self._workers, progress=progress)
        self._fitness.append(result.fitness.reshape(len(keys), n))
        self._descriptors.append(result.descriptors.reshape(len(keys), n, -1))
        self._keys += keys
        self._originals += elites.fitness[some].tolist()

    def _write(self) -> None:
        self._fitness = [np.concatenate(self._fitness)]
        self._descriptors = [np.concatenate(self._descriptors)]
        snapshots = {
            f"snapshot_{i}_{name}": array
            for i, snapshot in enumerate(self._snapshots)
            for name, array in snapshot.items()
        }
        container = {f"container_{name}": array for name, array in self._container.arrays.items()}
        write_npz(
            self._folder.corrected_path,
            {
                "format": FORMAT,
                "task": self._plan.task.name,
                "fingerprint": self._plan.task.fingerprint,
                "algorithm": self._plan.algorithm,
                "seed": self._plan.seed,
                "determinants": json.dumps(self._plan.determinants()),
                "environment": json.dumps(environment()),
                "n_reevaluations": self._n,
                "keys": np.array(self._keys, np.int64),
                "originals": np.array(self._originals, np.float64),
                "fitness": self._fitness[0],
                "descriptors": self._descriptors[0],
                "n_snapshots": len(self._snapshots),
                **snapshots,
                "kind": self._container.kind,
                **container,
            },
        )


def require_continuable(folder: RunFolder, plan: Plan, n: int) -> None:
    """Refuse re-evaluations of another run, or another number of them."""
    path = folder.corrected_path
    if not path.exists():
        return
    arrays = read_npz(path, only=("format", "determinants", "n_reevaluations"))
    with damage_named(path):
        others = differences(json.loads(str(arrays["determinants"])), plan.determinants())
        found = int(arrays["n_reevaluations"])
    if others:
        raise InvalidInput(f"{path} is of another run ({'; '.join(others)}); delete it to begin anew")
    if found != n:
        raise InvalidInput(
            f"{path} has {found} re-evaluations per elite, not {n}; "
            f"give --reevaluations {found}, or delete the file to begin anew"
        )


def moments_corrected(folder: RunFolder) -> set[int]:
    """Return after how many evaluations the elites of a run have been re-evaluated."""
    path = folder.corrected_path
    if not path.exists():
        return set()
    n = int(read_npz(path, only=("format", "n_snapshots"))["n_snapshots"])
    names = [f"snapshot_{i}_evaluations" for i in range(n)]
    arrays = read_npz(path, only=("format", *names))
    return {int(arrays[name]) for name in names}


def _report(progress: CorrectionProgress, before: int, total: int, done: int, of_chunk: int) -> None:
    progress(before + done, total)


def reevaluation_seeds(plan: Plan, evaluation: int, n: int) -> Seeds:
    """Return the seeds of the re-evaluations of the elite that this evaluation gave."""
    return numbered_seeds(plan.seed, "reevaluations", plan.algorithm, evaluation, first=0, n=n)


def _snapshots(arrays: dict[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    names = ("evaluations", "rows", "cells", "fitness", "descriptors")
    return [
        {name: arrays[f"snapshot_{i}_{name}"] for name in names} for i in range(int(arrays["n_snapshots"]))
    ]


def read_corrections(folder: RunFolder) -> StoredCorrections:
    """Return what corrected.npz holds; re-evaluations that no snapshot needs yet are left out."""
    arrays = read_npz(folder.corrected_path)
    with damage_named(folder.corrected_path):
        prefix = "container_"
        parts = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        container = Container(str(arrays["kind"]), parts)
        corrections = tuple(
            Correction(
                int(snapshot["evaluations"]),
                snapshot["fitness"],
                snapshot["descriptors"],
                snapshot["cells"],
                Reevaluations(arrays["fitness"][snapshot["rows"]], arrays["descriptors"][snapshot["rows"]]),
            )
            for snapshot in _snapshots(arrays)
        )
        about = {name: arrays[name].tolist() for name in ("task", "fingerprint", "algorithm", "seed")}
        return StoredCorrections(int(arrays["n_reevaluations"]), container, corrections, about)
