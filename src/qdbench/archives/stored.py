"""An archive's container as a file holds it: its kind and the arrays that say where its cells are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qdbench.archives.archive import Archive
from qdbench.archives.geometry import Cvt, Grid
from qdbench.archives.unstructured import Apart, UnstructuredArchive
from qdbench.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Container:
    """What an empty archive of the same shape can be made of."""

    kind: str
    """`grid`, `cvt` or `unstructured`."""
    arrays: dict[str, NDArray[Any]]
    """descriptor_bounds (dimensions, 2); and shape, centroids or threshold."""

    def empty_archive(self, n_parameters: int = 0) -> Archive:
        """Return an archive of this shape that holds nothing."""
        bounds = self.arrays["descriptor_bounds"]
        if self.kind == "grid":
            return Archive(Grid(bounds, self.arrays["shape"].tolist()), n_parameters)
        if self.kind == "cvt":
            return Archive(Cvt(bounds, self.arrays["centroids"]), n_parameters)
        if self.kind == "unstructured":
            return UnstructuredArchive(Apart(bounds, float(self.arrays["threshold"])), n_parameters)
        raise InvalidInput(f"no container is called {self.kind!r}; there are grid, cvt and unstructured")

    @property
    def n_cells(self) -> int | None:
        """How many cells there are; None where nothing limits them."""
        if self.kind == "grid":
            return int(self.arrays["shape"].prod())
        return len(self.arrays["centroids"]) if self.kind == "cvt" else None
