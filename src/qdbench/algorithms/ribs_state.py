"""A pyribs scheduler as a pickle, and back, without trusting the pickle.

One is loaded only if it names nothing but the parts of a scheduler: those listed here, the user's trusted
classes, and the classes of pyribs that the scheduler had when it was built.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ribs.archives import ArrayStore

from qdbench.errors import DamagedFile

PARTS = {
    "qdbench.algorithms.ribs": "TaskGrid",
    "collections": "deque",
    "numpy": "dtype ndarray float32 float64 int32 int64 uint64",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.random._pcg64": "PCG64",
    "numpy.random._philox": "Philox",
    "numpy.random._pickle": "__bit_generator_ctor __generator_ctor",
    "numpy.random.bit_generator": "SeedSequence __pyx_unpickle_SeedSequence",
    "scipy.spatial._kdtree": "KDTree",
    "sortedcontainers.sortedlist": "SortedList",
}

LARGE = 2**16  # bytes from which an array is saved as it is, without a copy in the pickle

Bytes = NDArray[np.uint8]
Names = set[tuple[str, str]]  # modules, and what is in them


class Saver(pickle.Pickler):
    """A pickled object: `data`, and its `large` arrays. Of archives only the rows in use are saved."""

    def __init__(self, scheduler: object) -> None:
        self.large: list[Bytes] = []
        self.kinds: set[type] = set()
        file = io.BytesIO()
        super().__init__(file, 5, buffer_callback=self._belongs_inside)
        self.dump(scheduler)
        self.data: Bytes = np.frombuffer(file.getvalue(), np.uint8)

    def reducer_override(self, thing: Any) -> Any:
        """Note what kinds of things there are, and leave the empty rows of archives out."""
        self.kinds.add(type(thing))
        if type(thing) is not ArrayStore:
            return NotImplemented
        rows = {name: column[thing.occupied_list] for name, column in thing._fields.items()}
        usual: Any = thing.__reduce_ex__(5)
        return usual[0], usual[1], {**usual[2], "_fields": rows}

    def _belongs_inside(self, buffer: pickle.PickleBuffer) -> bool:
        array = np.frombuffer(buffer.raw(), np.uint8)
        if len(array) >= LARGE:
            self.large.append(array)
        return len(array) < LARGE


class _Loader(pickle.Unpickler):
    def __init__(self, data: Bytes, large: list[Bytes], permitted: Names) -> None:
        super().__init__(io.BytesIO(data.tobytes()), buffers=large)
        self._permitted = permitted

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._permitted:
            raise DamagedFile(
                f"the pickled scheduler holds {module}.{name}, which is no part of it; if that is a class of "
                "yours, give it to RibsAlgorithm as trusted=(…,)"
            )
        found = super().find_class(module, name)
        return _Store if found is ArrayStore else found


def load(data: Bytes, large: list[Bytes], permitted: Names) -> object:
    """Return the scheduler of a pickle, or say what in it is none of a scheduler\'s."""
    try:
        return _Loader(data, large, permitted).load()
    except DamagedFile:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise DamagedFile(f"the pickled scheduler cannot be read: {type(error).__name__}: {error}") from error


class _Store(ArrayStore):
    """An archive's arrays while they are loaded. pyribs' own would import any module the pickle says."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["_xp"] != "array_api_compat.numpy":
            raise DamagedFile(f"the pickled archive computes with {state['_xp']!r}; only NumPy is known")
        super().__setstate__(state)
        for name, rows in state["_fields"].items():
            self._fields[name] = np.zeros((self.capacity, *rows.shape[1:]), rows.dtype)
            self._fields[name][self.occupied_list] = rows
        object.__setattr__(self, "__class__", ArrayStore)
