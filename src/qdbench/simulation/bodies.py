"""Many episodes of one task at once in one thread: the innermost loop of the package.

Bodies apply the terms of a task to the simulations of an engine. Minds are the policies that control them.
Slot i of both belongs to one episode. The busy slots are always 0 … n - 1, so every step works on the first n
rows of all arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import BrokenTask
from qdbench.policy import Parameters, Policy
from qdbench.seeds import ResetNoise
from qdbench.simulation.engine import Engine, Slots
from qdbench.tasks.robot_task import RobotTask
from qdbench.tasks.state import POSITIONS, Array, State
from qdbench.tasks.terms import Ended, Moment


class Step(NamedTuple):
    """A control step of all busy slots, one row each. The next step overwrites the arrays."""

    actions: NDArray[np.float32]  #: (n, actions)
    rewards: Array  #: (n, terms)
    state: State
    observations: NDArray[np.float32]  #: (n, observations) after the step
    numbers: NDArray[np.int64]  #: (n,) control steps so far, including this one
    ended: NDArray[np.bool_]  #: (n,) the task's ending ended the episode
    truncated: NDArray[np.bool_]  #: (n,) the episode reached its full length without an ending
    diverged: NDArray[np.bool_]  #: (n,) the simulation diverged: the values of the step are meaningless

    @property
    def over(self) -> Slots:
        """The slots whose episodes are over, for any reason."""
        return np.flatnonzero(self.ended | self.truncated | self.diverged)


class Bodies:
    """The robots: they take seeds and actions, and return observations and rewards."""

    def __init__(self, task: RobotTask, engine: Engine, n_slots: int) -> None:
        self.task, self.engine, self.robot = task, engine, task.anatomy
        self._reset_noise = ResetNoise(task.reset.n_values(self.robot))
        self.observations = np.zeros((n_slots, task.policy.sizes[0]), np.float32)
        self._scales = task.observation_scales
        self.steps = np.zeros(n_slots, np.int64)
        self.rewards = np.zeros((n_slots, len(task.rewards)))  # of the last step
        self.terms = np.zeros((n_slots, len(task.rewards)))  # their sums so far
        self._remembering = [reward for reward in task.rewards if reward.remembers is not None]
        self._memories: dict[str, Array] = {}  # their values before the current step
        self._sums: Array | None = None  # sums of the descriptor's each_step

    def load(self, slots: Slots, seeds: Sequence[int]) -> State:
        """Start an episode in each of these slots; return their state."""
        task, robot = self.task, self.robot
        state = self.engine.load(slots, *task.reset(*self._start(len(slots)), self._noise(seeds), robot))
        self.steps[slots] = 0
        self.terms[slots] = 0
        if self._sums is not None:
            self._sums[slots] = 0
        for reward in self._remembering:
            now = reward.memory(state, robot)
            memory = self._memories.setdefault(reward.name, np.zeros((len(self.steps), *now.shape[1:])))
            memory[slots] = now
        blocks = np.concatenate(self._checked_blocks(state), axis=1, dtype=np.float32)
        self.observations[slots] = blocks * self._scales
        return state

    def _start(self, n: int) -> tuple[Array, Array]:
        return np.tile(self.robot.start_qpos, (n, 1)), np.tile(self.robot.start_qvel, (n, 1))

    def _noise(self, seeds: Sequence[int]) -> Array:
        if not self.task.reset_noise:
            return np.zeros((len(seeds), self.task.reset.n_values(self.robot)))
        return self.task.reset_noise * np.stack([self._reset_noise.draw(seed) for seed in seeds])

    def _checked_blocks(self, state: State) -> list[Array]:
        blocks = []
        for block in self.task.observation:
            values, expected = block(state, self.robot), (len(state.qpos), block.n_values(self.robot))
            if values.shape != expected:
                raise BrokenTask(f"{block} returned shape {values.shape}, not {expected}")
            blocks.append(values)
        return blocks

    def step(self, actions: NDArray[np.float32]) -> Step:
        """Do one control step in the first len(actions) slots."""
        task, n = self.task, len(actions)
        state, controls = self.engine.step(actions)
        rewards, steps, observations = self.rewards[:n], self.steps[:n], self.observations[:n]
        steps += 1
        moment = Moment(state, controls, steps, self.robot)
        for i, reward in enumerate(task.rewards):
            if reward.remembers is None:
                rewards[:, i] = reward(moment)
            else:
                before, now = self._memories[reward.name][:n], reward.memory(state, self.robot)
                rewards[:, i] = reward(moment, before, now)
                before[:] = now
        self.terms[:n] += rewards
        if task.descriptor.each_step is not None:
            self._add(task.descriptor.of_step(moment))
        blocks = [block(state, self.robot) for block in task.observation]
        np.concatenate(blocks, axis=1, out=observations, casting="same_kind")
        observations *= self._scales
        ended = task.ending(moment)
        truncated = (steps >= task.episode_length) & ~ended
        return Step(actions, rewards, state, observations, steps, ended, truncated, self.engine.diverged(n))

    def _add(self, values: Array) -> None:
        if self._sums is None:
            self._sums = np.zeros((len(self.steps), values.shape[1]))
        self._sums[: len(values)] += values

    def fitness(self, slots: Slots) -> Array:
        """Return the sum of the terms, in their order. Fitness is computed only here."""
        total: Array = reduce(np.add, self.terms[slots].T)
        return total

    def descriptors(self, slots: Slots, state: State) -> Array:
        """Return the descriptors of episodes that have just ended; `state` has all busy slots."""
        task = self.task
        if POSITIONS.isdisjoint(task.descriptor.demands):
            final = state.rows(slots)
        else:
            final = self.engine.with_current_positions(slots)
        sums = np.zeros((len(slots), 0)) if self._sums is None else self._sums[slots]
        ended = Ended(final, sums, self.steps[slots], task.episode_length, self.robot)
        return task.descriptor(ended, len(task.cells))

    def move(self, source: int, target: int) -> None:
        """Move an episode from one slot to another."""
        self.engine.move(source, target)
        rows: list[NDArray[Any] | None] = [self.observations, self.steps, self.terms, self._sums]
        for array in (*rows, *self._memories.values()):
            if array is not None:
                array[target] = array[source]


class Minds:
    """The policies: one per slot."""

    def __init__(self, policy: Policy, n_slots: int) -> None:
        self._policy = policy
        self._parameters = np.zeros((n_slots, policy.n_parameters), np.float32)

    def load(self, slots: Slots, parameters: Parameters) -> None:
        """Give some slots new policies."""
        self._parameters[slots] = parameters

    def act(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the policies of the first slots do about what they observe."""
        return self._policy.act(self._parameters[: len(observations)], observations)

    def move(self, source: int, target: int) -> None:
        """Let the policy of one slot go on in another."""
        self._parameters[target] = self._parameters[source]
