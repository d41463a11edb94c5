"""What steps robots: a small interface, and MuJoCo behind it.

An engine holds a fixed number of simulations of one robot. It knows no rewards, descriptors or policies. Its
callers must keep the simulations in use at the first n places.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import numpy as np
from mujoco import mjtStage
from mujoco.batch import Batch
from numpy.typing import NDArray

from qdbench.robots.anatomy import Anatomy
from qdbench.tasks.state import Array, NotRead, State

_NO_STAGE = mjtStage.mjSTAGE_NONE.value
_POSITIONS = mjtStage.mjSTAGE_POS.value
_EVERYTHING = mjtStage.mjSTAGE_ACC.value

Slots = NDArray[np.intp]


class Engine(Protocol):
    """Several simulations of one robot, numbered from 0. The next call overwrites returned states."""

    def load(self, slots: Slots, qpos: Array, qvel: Array) -> State:
        """Restart some simulations from these positions and velocities; return their state."""

    def step(self, actions: NDArray[np.floating]) -> tuple[State, Array]:
        """Do a control step in the first len(actions) simulations; return their state and actions."""

    def diverged(self, n: int) -> NDArray[np.bool_]:
        """Return which of the first n simulations have diverged since they were loaded."""

    def with_current_positions(self, slots: Slots) -> State:
        """Return the state of some simulations; everything that depends on qpos is computed again."""

    def move(self, source: int, target: int) -> None:
        """Copy one simulation over another."""


class MujocoEngine:
    """Simulations on one `mujoco.batch.Batch`, stepped in the calling thread."""

    def __init__(self, robot: Anatomy, fields: Collection[str], n_slots: int) -> None:
        self.batch = Batch(robot.stepped_model, n_slots, nthread=1)
        self._robot = robot
        self._ids = np.arange(n_slots, dtype=np.int32)
        self._ctrl = self.batch.bind("ctrl")
        self._state = State._make(
            self.batch.bind(name) if name in fields else NotRead(name) for name in State._fields
        )

    def load(self, slots: Slots, qpos: Array, qvel: Array) -> State:
        """Restart some simulations: the start keyframe with these positions and velocities."""
        ids = slots.astype(np.int32)
        self.batch.reset(ids, keyframe=self._robot.start_keyframe, stage=_NO_STAGE)
        self._state.qpos[ids] = qpos
        self._state.qvel[ids] = qvel
        self.batch.forward(ids, stage=_EVERYTHING)  # else the first observation would be old
        return self._state.rows(ids)

    def step(self, actions: NDArray[np.floating]) -> tuple[State, Array]:
        """Do a control step in the first len(actions) simulations; return their state and actions."""
        n = len(actions)
        everyone = n == len(self._ids)
        self._ctrl[:n] = actions
        self.batch.step(None if everyone else self._ids[:n], nstep=self._robot.physics_steps)
        return self._state if everyone else self._state.rows(slice(n)), self._ctrl[:n]

    def diverged(self, n: int) -> NDArray[np.bool_]:
        """Return for which of the first n simulations MuJoCo has given a warning since they were loaded.

        MuJoCo resets a diverged simulation to a healthy state during the step. Only its counters show it.
        """
        warned: NDArray[np.bool_] = self.batch.warning[:n, :, 1].any(axis=1)
        return warned

    def with_current_positions(self, slots: Slots) -> State:
        """Return the state with current positions: after a step, they are one physics step old."""
        ids = slots.astype(np.int32)
        self.batch.forward(ids, stage=_POSITIONS)
        return self._state.rows(ids)

    def move(self, source: int, target: int) -> None:
        """Copy one simulation over another."""
        self.batch.reset(self._ids[target : target + 1], stage=_NO_STAGE)  # clears warnings
        self.batch.state[target] = self.batch.state[source]
