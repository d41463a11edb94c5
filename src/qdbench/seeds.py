"""One root seed, many independent random streams, each with a name.

A stream is named by words and numbers: ``stream(7, "solutions")`` is independent of
``stream(7, "variation", 3)``, in whatever order and however much is drawn. Names are hashed, so a new
stream does not change the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import checked_count, is_whole, shown
from qdbench.errors import InvalidInput

Seeds = NDArray[np.uint64]

TUNING_SEEDS = 100
"""Seeds of runs from this one up are for tuning."""
_RESET = 0x71_64_62_65_6E_63_68  # "qdbench": the second word of the key of the reset noise


def seeds_text(which: Iterable[int]) -> str:
    """Return seeds in the form of --seeds: 0-3,7."""
    ordered = sorted(which)
    starts = [seed for seed in ordered if seed - 1 not in ordered]
    ends = [seed for seed in ordered if seed + 1 not in ordered]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the random stream of that name under a root seed."""
    return np.random.Generator(np.random.Philox(key=_key(seed, *name)))


def bulk_stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return a stream that is faster for millions of numbers, as in variation."""
    return np.random.Generator(np.random.SFC64(_key(seed, *name)))


def derived_seed(seed: int, *name: str | int) -> int:
    """Return the seed of that name under a root seed, for code that makes its own streams."""
    return _key(seed, *name) % 2**64


def numbered_seeds(seed: int, *name: str | int, first: int, n: int) -> Seeds:
    """Return evaluation seeds `first` to `first + n - 1` of that name.

    A seed depends on its number alone, not on the batch that it is in.
    """
    block = np.random.Philox(key=_key(seed, *name), counter=first // 4)  # gives four numbers per count
    return block.random_raw(first % 4 + n)[first % 4 :]


def _key(seed: int, *name: str | int) -> int:
    words = (_checked(seed), *(str(word) if isinstance(word, str) else _checked(word) for word in name))
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:16], "little")


def evaluation_seeds(seed: int, n: int) -> Seeds:
    """Return `n` evaluation seeds under a root seed."""
    return stream(seed, "evaluations").integers(0, 2**64, size=checked_count("n", n, 0), dtype=np.uint64)


def _checked(number: int) -> int:
    """Return a Python integer; a NumPy integer would have another hash."""
    if not is_whole(number) or number < 0:
        raise InvalidInput(f"{shown(number)} is not a seed or a count; give a whole number of 0 or more")
    return int(number)


def uniform_of(seeds: Seeds, n: int) -> NDArray[np.float64]:
    """Return `n` uniform numbers in [0, 1) for each evaluation seed, (seeds, n), from the seed alone.

    They are the first outputs of SplitMix64 (Steele, Lea and Flood 2014) that starts at the seed: fast for
    many seeds at once.
    """
    with np.errstate(over="ignore"):
        z = seeds[:, None] + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    uniform: NDArray[np.float64] = (z >> np.uint64(11)) * 2.0**-53
    return uniform


def normal_of(seeds: Seeds, n: int) -> NDArray[np.float64]:
    """Return `n` standard normal numbers for each evaluation seed, (seeds, n), from the seed alone."""
    radius, turn = np.split(uniform_of(seeds, 2 * n), 2, axis=1)
    normal: NDArray[np.float64] = np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * turn)
    return normal


class ResetNoise:
    """Uniform noise in [-1, 1) that depends on the evaluation seed alone.

    One generator gets a new key for every episode. A new generator each would take five times as long.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._philox = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._philox)
        self._state = self._philox.state

    def draw(self, seed: int) -> NDArray[np.float64]:
        """Return the `n` numbers of this evaluation seed."""
        self._state["state"]["key"][:] = (seed, _RESET)
        self._philox.state = self._state  # a new state: counter 0, empty buffer
        return 2.0 * self._generator.random(self._n) - 1.0
