"""How a batch is cut into chunks, and what becomes of a chunk whose worker dies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qdbench.errors import QdbenchError

ROWS_PER_CPU = 64
"""A worker's thread simulates about as many episodes at once; fewer cost more time each."""
CHUNK_BYTES = 2**26
"""Parameters of one chunk, at most."""
MOST_DEATHS = 3
"""A solution that ends its worker so often, alone, is not tried again."""


@dataclass(frozen=True)
class Chunk:
    """Solutions of a batch that travel together: from `start` to `stop` - 1."""

    start: int
    stop: int
    deaths: int = 0
    """How many workers have died while they had it."""
    alone: bool = False
    """It may have killed a worker: nothing else is evaluated beside it."""

    def __len__(self) -> int:
        return self.stop - self.start


class Chunks:
    """The chunks of a batch that are still to be evaluated.

    Chunks are large at first and smaller towards the end, so that fast and slow nodes end together. A chunk
    whose worker dies is evaluated again. If that happens twice, it is cut into pieces, and each is evaluated
    alone, until the solution is known that kills its worker.
    """

    def __init__(self, n: int, bytes_per_row: int) -> None:
        self._n, self._next = n, 0
        self._most = max(1, CHUNK_BYTES // max(1, bytes_per_row))
        self._again: list[Chunk] = []

    @property
    def n_waiting(self) -> int:
        """How many solutions nobody has taken."""
        return self._n - self._next + sum(map(len, self._again))

    def take(self, cpus: int, of: int, *, idle: bool) -> Chunk | None:
        """Return a chunk for a worker with so many of all CPUs; None if there is none for it now."""
        for i, chunk in enumerate(self._again):
            if idle or not chunk.alone:
                return self._again.pop(i)
        left, share = self._n - self._next, cpus / max(1, of)
        if not left:
            return None
        least = min(ROWS_PER_CPU * cpus, -(-self._n * cpus // max(1, of)))
        size = min(max(least, round(left * share / 2)), self._most, left)
        chunk = Chunk(self._next, self._next + size)
        self._next += size
        return chunk

    def smaller(self, chunk: Chunk) -> bool:
        """Put back a chunk that was too large for the object store, in pieces; False of a single one."""
        if len(chunk) == 1:
            return False
        self._again += _pieces(chunk)
        self._most = len(self._again[-1])
        return True

    def give_back(self, chunk: Chunk, *, began: bool) -> None:
        """Put back a chunk whose worker died; one that waited behind another (not `began`) is innocent."""
        if not began:
            self._again.append(chunk)
            return
        struck = replace(chunk, deaths=chunk.deaths + 1)
        if len(struck) == 1 and struck.alone and struck.deaths >= MOST_DEATHS:
            raise QdbenchError(
                f"solution {struck.start} of the batch killed its worker {struck.deaths} times; the run "
                "keeps its state before this batch"
            )
        if struck.alone or struck.deaths > 1:
            again = _pieces(struck) if len(struck) > 1 else [struck]
            self._again += [replace(one, alone=True) for one in again]
        else:
            self._again.append(struck)


def _pieces(chunk: Chunk) -> list[Chunk]:
    """Return an eighth each: to start a worker again takes seconds, so that few deaths must be enough."""
    size = -(-len(chunk) // 8)
    return [Chunk(start, min(start + size, chunk.stop)) for start in range(chunk.start, chunk.stop, size)]
