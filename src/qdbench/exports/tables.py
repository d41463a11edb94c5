"""Archives to pandas and back: `run.archive.to_pandas()` and `qdbench.from_pandas`.

A data frame keeps the geometry of its cells in `attrs`, which pandas also writes into Parquet files.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Geometry, Grid
from qdbench.archives.unstructured import empty_archive
from qdbench.checks import checked_flag, shown
from qdbench.errors import InvalidInput
from qdbench.store.archive_file import GEOMETRY, StoredArchive, read_geometry

ATTRIBUTE = "qdbench"
_WHOLE = {"shape": np.int64}  # of a geometry's arrays; the others are numbers


def frame_of(stored: StoredArchive, solutions: bool = False) -> Any:
    """Return the elites as a data frame."""
    pd, solutions = _pandas("to_pandas"), checked_flag("solutions", solutions)
    geometry = stored.geometry
    columns: dict[str, Any] = {"cell": stored.cells}
    if isinstance(geometry, Grid):
        columns |= _numbered("cell", np.unravel_index(stored.cells, geometry.shape))
    columns["fitness"] = stored.fitness
    columns |= _numbered("descriptor", stored.descriptors.T)
    columns |= {name: getattr(stored, f"{name}s")[:, 0] for name in ("evaluation", "seed")}
    columns |= {"steps": stored.steps[:, 0], "samples": (stored.evaluations >= 0).sum(axis=1)}
    if solutions:
        columns["solution"] = list(stored.elites.solutions)
        columns |= {name: list(getattr(stored, name)) for name in ("evaluations", "seeds")}
    frame = pd.DataFrame(columns)
    arrays = {name: array.tolist() for name, array in geometry.arrays().items()}
    frame.attrs[ATTRIBUTE] = {"kind": geometry.kind, **arrays}
    return frame


def _numbered(name: str, columns: Any) -> dict[str, NDArray[Any]]:
    return {f"{name}_{i}": column for i, column in enumerate(columns)}


def from_pandas(frame: Any) -> Archive:
    """Return the archive of a data frame from `run.archive.to_pandas(solutions=True)`, every part checked.

    The frame may have been written to a Parquet file and read again. Of two elites in one cell the
    fitter stays.
    """
    pd = _pandas("from_pandas")
    if not isinstance(frame, pd.DataFrame):
        raise InvalidInput(f"the frame is {shown(frame)}; give a pandas DataFrame")
    names = [name for name in frame.columns if re.fullmatch(r"descriptor_\d+", str(name))]
    missing = {"fitness", "solution", "evaluations", "seeds"}.difference(frame.columns)
    if missing or not names:
        raise InvalidInput(
            f"the frame has no column {min(missing, default='descriptor_0')!r}; give one that "
            "run.archive.to_pandas(solutions=True) returned"
        )
    try:
        geometry = _geometry(frame.attrs.get(ATTRIBUTE), len(names))
        elites = Evaluated(
            _stacked(frame["solution"], np.float32),
            np.asarray(frame["fitness"], np.float64),
            np.stack([np.asarray(frame[name], np.float64) for name in names], axis=1),
            _stacked(frame["evaluations"], np.int64),
            _stacked(frame["seeds"], np.uint64),
        )
        archive = empty_archive(
            geometry, elites.solutions.shape[1], samples=max(1, elites.evaluations.shape[1])
        )
        archive.insert(elites)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise InvalidInput(f"the frame holds no archive: {' '.join(str(error).split())}") from None
    return archive


def _geometry(found: Any, dimensions: int) -> Geometry:
    if not isinstance(found, dict) or found.get("kind") not in GEOMETRY:
        raise ValueError(f"its attrs[{ATTRIBUTE!r}] is {shown(found)}, which describes no cells")
    part = GEOMETRY[found["kind"]]
    arrays = {
        "kind": np.array(found["kind"]),
        "descriptor_bounds": np.array(found["descriptor_bounds"], np.float64),
        part: np.array(found[part], _WHOLE.get(part, np.float64)),
    }
    return read_geometry(arrays, dimensions)[0]


def _stacked(column: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """Return a column of arrays as one array, one row each."""
    rows = [np.asarray(row) for row in column]
    stacked = np.stack(rows) if rows else np.zeros((0, 1))
    if stacked.ndim != 2 or (rows and stacked.dtype.kind not in "iuf"):
        raise ValueError(f"{column.name} is no column of arrays of numbers")
    return stacked.astype(dtype)


def _pandas(who: str) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise InvalidInput(f"{who} needs pandas: pip install 'qdbench[tables]'") from None
    return pd
