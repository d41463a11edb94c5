"""Archives to pyribs and back: `run.archive.to_ribs()` and `qdbench.from_ribs`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Cvt, Geometry, Grid, Unstructured
from qdbench.checks import shown
from qdbench.errors import InvalidInput
from qdbench.store.archive_file import StoredArchive


def to_ribs(stored: StoredArchive) -> Any:
    """Return the elites of a run in an archive of pyribs. Of several in one cell the fittest stays."""
    _require_ribs()
    from qdbench.algorithms.ribs import EXTRA_FIELDS

    elites, extra = stored.elites, dict(EXTRA_FIELDS)
    columns = {"evaluation": elites.evaluations[:, 0], "seed": elites.seeds[:, 0]}
    k = elites.evaluations.shape[1]
    if k > 1:
        extra |= {"evaluations": ((k,), np.int64), "seeds": ((k,), np.uint64)}
        columns |= {"evaluations": elites.evaluations, "seeds": elites.seeds}
    archive = _empty(stored.geometry, elites.solutions.shape[1], extra)
    if len(elites):
        archive.add(elites.solutions, elites.fitness, elites.descriptors, **columns)
    return archive


def _empty(geometry: Geometry, n_parameters: int, extra: dict[str, Any]) -> Any:
    from ribs.archives import CVTArchive, ProximityArchive

    from qdbench.algorithms.ribs_parts import ExactGrid

    class ExactCvt(CVTArchive):
        """A CVT of pyribs with exactly qdbench's cells: distances are between normalised descriptors."""

        def index_of(self, measures: Any) -> NDArray[Any]:
            return geometry.cells(np.asarray(measures)).astype(np.int32)

    fields: dict[str, Any] = {
        "solution_dim": n_parameters,
        "solution_dtype": np.float32,
        "extra_fields": extra,
    }
    low, width = geometry.bounds[:, 0], np.ptp(geometry.bounds, axis=1)
    ranges: Any = geometry.bounds.tolist()
    if isinstance(geometry, Grid):
        return ExactGrid(dims=geometry.shape, ranges=ranges, **fields)
    if isinstance(geometry, Cvt):
        return ExactCvt(centroids=low + geometry.centroids * width, ranges=ranges, **fields)
    assert isinstance(geometry, Unstructured)
    # distances there are in the descriptor's own units; by the narrowest, all elites are far enough apart
    threshold = geometry.threshold * float(width.min())
    return ProximityArchive(
        measure_dim=len(width), k_neighbors=1, novelty_threshold=threshold, local_competition=True, **fields
    )


def from_ribs(archive: Any) -> Archive:
    """Return the elites of a GridArchive or CVTArchive of pyribs in an archive of qdbench.

    Parameters become float32. If the archive has no fields `evaluation` and `seed`, numbers of evaluations
    are -1 and seeds 0. Cells are qdbench's: a descriptor exactly on the border of two cells can be in the
    other one than in pyribs. Of two elites in one cell the fitter stays.
    """
    _require_ribs()
    from ribs.archives import CVTArchive, GridArchive

    if not isinstance(archive, GridArchive | CVTArchive):
        raise InvalidInput(f"the archive is {shown(archive)}; give a GridArchive or a CVTArchive of pyribs")
    bounds = np.stack([archive.lower_bounds, archive.upper_bounds], axis=1).astype(np.float64)
    geometry: Geometry
    if isinstance(archive, GridArchive):
        geometry = Grid(bounds, archive.dims.tolist())
    else:
        shares = (np.asarray(archive.centroids, np.float64) - bounds[:, 0]) / np.ptp(bounds, axis=1)
        geometry = Cvt(bounds, shares)
    data, size = archive.data(), archive.solution_dim
    n, n_parameters = len(data["objective"]), math.prod(size) if isinstance(size, tuple) else size
    numbers = data.get("evaluations", data.get("evaluation", np.full(n, -1)))
    seeds = data.get("seeds", data.get("seed", np.zeros(n)))
    elites = Evaluated(
        np.asarray(data["solution"], np.float32).reshape(n, int(n_parameters)),
        np.asarray(data["objective"], np.float64),
        np.asarray(data["measures"], np.float64),
        _in_rows(numbers, np.int64),
        _in_rows(seeds, np.uint64),
    )
    found = Archive(geometry, elites.solutions.shape[1], samples=elites.evaluations.shape[1])
    found.insert(elites)
    return found


def _in_rows(column: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """Return one row of numbers for every elite."""
    array = np.asarray(column, dtype)
    return array if array.ndim == 2 else array.reshape(len(array), 1)


def _require_ribs() -> None:
    try:
        import ribs  # noqa: F401
    except ImportError:
        raise InvalidInput("this needs pyribs: pip install 'qdbench[ribs]'") from None
