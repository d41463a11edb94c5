"""Episodes ready to be drawn, and a cache of them that does not grow without end."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from qdbench.simulation import Episode

Numbers = NDArray[np.float64]
Frames = NDArray[np.float32]

MOST_BYTES = 256 * 2**20
"""What all replays in the cache may take."""


class Pose(NamedTuple):
    """A robot at one moment."""

    positions: Frames  #: (bodies + 1, 3)
    orientations: Frames  #: (bodies + 1, 4)
    loaded: NDArray[np.bool_]  #: (feet,)
    centre: Numbers  #: (3,) centre of mass


@dataclass(frozen=True, eq=False)
class Replay:
    """An episode with the place of every body at every step; the last body is the world."""

    step_seconds: float
    positions: Frames  #: (steps + 1, bodies + 1, 3)
    orientations: Frames  #: (steps + 1, bodies + 1, 4)
    loaded: NDArray[np.bool_]  #: (steps, feet)
    centre: Numbers  #: (steps + 1, 3) centre of mass
    terms: Mapping[str, Numbers]  #: reward terms of every step, (steps,)
    fitness: float
    descriptor: Numbers  #: (dimensions,)
    steps: int
    valid: bool

    @property
    def seconds(self) -> float:
        """How long the episode lasts."""
        return (len(self.centre) - 1) * self.step_seconds

    @property
    def nbytes(self) -> int:
        """How much memory it takes, about."""
        arrays = (self.positions, self.orientations, self.loaded, self.centre, *self.terms.values())
        return sum(array.nbytes for array in arrays)

    def at(self, seconds: float) -> Pose:
        """Return the pose at a time; between two steps, in between. After its end it stays as it is."""
        place = min(max(seconds / self.step_seconds, 0.0), len(self.centre) - 1.0)
        i = min(int(place), len(self.centre) - 2) if len(self.centre) > 1 else 0
        j, share = min(i + 1, len(self.centre) - 1), np.float32(place - i)
        before, after = self.orientations[i], self.orientations[j]
        same_side = np.where((before * after).sum(axis=1, keepdims=True) < 0, -1, 1).astype(np.float32)
        turned = (1 - share) * before + share * after * same_side
        turned /= np.linalg.norm(turned, axis=1, keepdims=True)
        return Pose(
            (1 - share) * self.positions[i] + share * self.positions[j],
            turned,
            self.loaded[min(i, len(self.loaded) - 1)] if len(self.loaded) else np.zeros(0, np.bool_),
            (1 - float(share)) * self.centre[i] + float(share) * self.centre[j],
        )


def replay_of(episode: Episode, step_seconds: float) -> Replay:
    """Return an episode ready to be drawn. A state after the simulation diverged is left out."""
    n = len(episode.time) if episode.valid else len(episode.time) - 1
    world = np.array([0, 0, 0, 1, 0, 0, 0], np.float32)  # it never moves
    at_rest = np.broadcast_to(world, (n, 1, 7))
    return Replay(
        step_seconds,
        np.concatenate([episode.body_positions[:n], at_rest[..., :3]], axis=1, dtype=np.float32),
        np.concatenate([episode.body_orientations[:n], at_rest[..., 3:]], axis=1, dtype=np.float32),
        episode.contacts,
        episode.centre_of_mass[:n],
        {name: values[: n - 1] for name, values in episode.terms.items()},
        episode.fitness,
        episode.descriptor,
        episode.steps,
        episode.valid,
    )


class Replays:
    """A cache of replays for all viewers. The ones not used for longest go when it is full."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._lock = most_bytes, threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Replay, ...]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    @property
    def nbytes(self) -> int:
        """What the cache holds."""
        with self._lock:
            return self._n_bytes()

    def _n_bytes(self) -> int:
        return sum(replay.nbytes for several in self._kept.values() for replay in several)

    def get(self, key: Hashable, make: Callable[[], Sequence[Replay]]) -> tuple[Replay, ...]:
        """Return what is kept under a key, or make it; two viewers that ask at once make it once."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            made = tuple(make())  # outside of the lock: other viewers go on
            with self._lock:
                self._kept[key] = made
                while len(self._kept) > 1 and self._n_bytes() > self._most:
                    del self._kept[next(iter(self._kept))]
                self._making.pop(key, None)
        return made
