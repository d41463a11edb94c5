"""Many episodes at once in one thread: the innermost loop of the package.

A slot holds one running episode. Slots 0 … `n_active` - 1 are always the busy ones, so that
stepping and thinking work on plain prefixes of arrays; an episode that ends leaves its slot to the
next solution, or, when none is left, to the episode in the last busy slot.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mujoco import mjtStage
from mujoco.batch import Batch
from numpy.typing import NDArray

from qdbench.policy import Parameters
from qdbench.seeds import ResetNoise
from qdbench.tasks.observation import block
from qdbench.tasks.robot_task import RobotTask
from qdbench.tasks.state import ALWAYS_READ, State

_NO_STAGE = mjtStage.mjSTAGE_NONE.value
_POSITIONS = mjtStage.mjSTAGE_POS.value
_EVERYTHING = mjtStage.mjSTAGE_ACC.value

FORWARD, SURVIVE, TORQUE = range(3)
TERMS = ("forward", "survive", "torque")


class Slots:
    """A fixed number of simulations of one task, each with its own policy."""

    def __init__(self, task: RobotTask, n_slots: int) -> None:
        self.task = task
        self.robot = robot = task.robot.anatomy
        self.batch = Batch(robot.model, n_slots, nthread=1)
        self.n_active = 0
        needed = {*ALWAYS_READ, *(block(name).field for name in task.robot.observation)}
        self.state = State._make(
            self.batch.bind(name) if name in needed else np.empty((n_slots, 0)) for name in State._fields
        )
        self.actions = self.batch.bind("ctrl")
        self._noise = ResetNoise(2 * robot.n_joints)
        self._ids = np.arange(n_slots, dtype=np.int32)
        self.parameters = np.zeros((n_slots, task.n_parameters), np.float32)
        self.observations = np.zeros((n_slots, task.policy.sizes[0]), np.float32)
        self.solution = np.zeros(n_slots, np.intp)  # which solution lives in the slot
        self.steps = np.zeros(n_slots, np.int64)
        self.position = np.zeros(n_slots)  # along x, after the last control step
        self.contacts = np.zeros((n_slots, len(task.robot.feet)))  # steps each foot was loaded
        self.rewards = np.zeros((n_slots, len(TERMS)))  # the last step's terms
        self.terms = np.zeros((n_slots, len(TERMS)))  # their sums so far
        self._rows = (
            self.batch.state,
            self.parameters,
            self.observations,
            self.solution,
            self.steps,
            self.position,
            self.contacts,
            self.terms,
        )  # everything a slot remembers between two steps

    def load(
        self, slots: Sequence[int], solutions: Sequence[int], parameters: Parameters, seeds: Sequence[int]
    ) -> None:
        """Begin episodes in some slots: solution indices, their parameters and seeds, one each."""
        ids = np.array(slots, np.int32)
        robot, task = self.robot, self.task
        self.batch.reset(ids, keyframe=robot.start_keyframe, stage=_NO_STAGE)
        if task.reset_noise:
            noise = task.reset_noise * np.stack([self._noise.draw(seed) for seed in seeds])
            self.state.qpos[ids, robot.root_q :] += noise[:, : robot.n_joints]
            self.state.qvel[ids, robot.root_v :] += noise[:, robot.n_joints :]
        self.batch.forward(ids, stage=_EVERYTHING)
        self.solution[ids] = solutions
        self.parameters[ids] = parameters
        self.steps[ids] = 0
        self.contacts[ids] = 0
        self.terms[ids] = 0
        started = self.state.rows(ids)
        self.position[ids] = task.position(started)
        self.observations[ids] = np.concatenate(task.observe(started), axis=1, dtype=np.float32)

    def step(self) -> NDArray[np.intp]:
        """Let every busy slot live one control step; return the slots whose episodes ended."""
        task, n = self.task, self.n_active
        actions, rewards = self.actions[:n], self.rewards[:n]
        actions[:] = task.policy.act(self.parameters[:n], self.observations[:n])
        rewards[:, TORQUE] = task.torque * np.sum(np.square(actions), axis=1)
        everyone = n == len(self._ids)
        self.batch.step(None if everyone else self._ids[:n], nstep=task.robot.physics_steps)

        state = self.state if everyone else self.state.rows(slice(n))
        position = task.position(state)
        rewards[:, FORWARD] = task.forward * (position - self.position[:n]) / task.robot.control_step
        rewards[:, SURVIVE] = task.survive
        self.terms[:n] += rewards
        self.position[:n] = position
        self.contacts[:n] += task.contacts(state)
        self.steps[:n] += 1
        np.concatenate(task.observe(state), axis=1, out=self.observations[:n], casting="same_kind")
        ended = self.diverged() | ~task.is_healthy(state) | (self.steps[:n] >= task.episode_length)
        return np.flatnonzero(ended)

    def diverged(self) -> NDArray[np.bool_]:
        """Return which busy slots MuJoCo has warned about since their episode began.

        It resets a diverged simulation to a healthy state in mid-step: its counters are the only trace.
        """
        warned: NDArray[np.bool_] = self.batch.warning[: self.n_active, :, 1].any(axis=1)
        return warned

    def descriptors(self, slots: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the descriptors of episodes that just ended."""
        if self.task.descriptor == "feet":
            return self.contacts[slots] / self.steps[slots, None]
        # the last step left the centre of mass one physics step behind
        self.batch.forward(slots.astype(np.int32), stage=_POSITIONS)
        return self.state.subtree_com[slots, self.robot.root_body, :2]

    def release(self, slot: int) -> None:
        """Free a slot for good: the last busy slot's episode moves into it."""
        self.n_active -= 1
        self.batch.reset(self._ids[slot : slot + 1], stage=_NO_STAGE)  # clears warnings
        for rows in self._rows:
            rows[slot] = rows[self.n_active]
