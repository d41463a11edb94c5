"""An episode as a viewer needs it: poses at a few frames per second, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qdbench.simulation import Episode

FRAMES_PER_SECOND = 25.0
"""Of simulated time. Robots with a longer control step have fewer."""


@dataclass(frozen=True, eq=False)
class Take:
    """One episode, thinned out in time."""

    rate: float
    """Frames per second of simulated time."""
    qpos: NDArray[np.float32]  #: (frames, nq)
    path: NDArray[np.float32]  #: (frames, 3) of the centre of mass
    contacts: NDArray[np.bool_]  #: (frames, feet) which feet are loaded
    fitness: float
    descriptor: tuple[float, ...]
    seconds: float
    """Of the whole episode."""

    @classmethod
    def of(cls, episode: Episode, rate: float = FRAMES_PER_SECOND) -> Take:
        """Return the poses of an episode at up to `rate` frames per second."""
        step = float(episode.time[1])
        apart = max(1, round(1 / (rate * step)))
        last = episode.steps if episode.valid else max(0, episode.steps - 1)  # after it diverged: NaN
        rows = np.arange(0, last + 1, apart)
        feet = episode.contacts[np.minimum(rows, episode.steps - 1)]
        return cls(
            rate=1 / (apart * step),
            qpos=episode.qpos[rows].astype(np.float32),
            path=episode.centre_of_mass[rows].astype(np.float32),
            contacts=feet,
            fitness=episode.fitness,
            descriptor=tuple(episode.descriptor.tolist()),
            seconds=episode.steps * step,
        )

    def __len__(self) -> int:
        return len(self.qpos)

    def thinned(self, rate: float, seconds: float) -> Take:
        """Return fewer frames: at most `rate` per second, and only the first `seconds`."""
        apart = max(1, round(self.rate / rate))
        rows = np.arange(0, min(len(self), int(seconds * self.rate) + 1), apart)
        return replace(
            self,
            rate=self.rate / apart,
            qpos=self.qpos[rows],
            path=self.path[rows],
            contacts=self.contacts[rows],
        )

    def frame_at(self, time: float) -> int:
        """Return the frame at a time, or the last one."""
        return min(len(self) - 1, round(time * self.rate))


def longest(takes: Sequence[Take]) -> float:
    """Return how many seconds the frames of the longest take last."""
    return max((len(take) - 1) / take.rate for take in takes)
