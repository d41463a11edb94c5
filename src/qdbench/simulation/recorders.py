"""Recorders: they keep actions, transitions or complete episodes of an evaluation.

A recorder is given to `RobotTask.evaluate` and sees every control step of every worker. What it keeps does
not depend on the number of workers or slots, because each solution has its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import checked_count
from qdbench.errors import InvalidInput
from qdbench.simulation.bodies import Step
from qdbench.tasks.robot_task import RobotTask
from qdbench.tasks.state import State

Indices = NDArray[np.intp]


@runtime_checkable
class Recorder(Protocol):
    """Sees all steps of a call of `evaluate`. Called from several threads, each with other solutions."""

    def begin(self, task: RobotTask, n_solutions: int) -> None:
        """Called when `evaluate` starts."""

    def start(self, solutions: Indices, state: State, observations: NDArray[np.float32]) -> None:
        """Called when episodes of these solutions start, with their state and first observations."""

    def step(self, solutions: Indices, step: Step) -> None:
        """Called after a control step of these solutions. Copy what you keep: the arrays are used again."""


class ControlRecorder:
    """Keeps all actions: `controls`, (solutions, episode_length, actions), 0 after the end of an episode."""

    controls: NDArray[np.float32]

    def begin(self, task: RobotTask, n_solutions: int) -> None:
        """Allocate memory for all actions."""
        self.controls = np.zeros((n_solutions, task.episode_length, task.anatomy.n_actions), np.float32)

    def start(self, solutions: Indices, state: State, observations: NDArray[np.float32]) -> None:
        """Do nothing: there is no action yet."""

    def step(self, solutions: Indices, step: Step) -> None:
        """Keep the actions."""
        self.controls[solutions, step.numbers - 1] = step.actions


@dataclass(frozen=True, eq=False)
class Transitions:
    """Control steps for reinforcement learning, one row each, ordered by solution and step."""

    solutions: Indices  #: (n,) index of the solution in the batch
    observations: NDArray[np.float32]  #: (n, observations) before the step
    actions: NDArray[np.float32]  #: (n, actions)
    rewards: NDArray[np.float64]  #: (n,) of the step, the sum of its terms
    next_observations: NDArray[np.float32]  #: (n, observations) after the step
    ended: NDArray[np.bool_]  #: (n,) the task's ending ended the episode
    truncated: NDArray[np.bool_]  #: (n,) the episode reached its full length without an ending

    def __len__(self) -> int:
        return len(self.solutions)


class TransitionRecorder:
    """Keeps the transitions of the first `episodes` solutions of a batch.

    It needs at most episodes × (episode_length + 1) × (observations + actions + 2) × 4 bytes. Steps that are
    not made need no memory. `transitions()` copies the steps that were made, and the observations twice.
    Episodes in which the simulation diverged are left out.
    """

    def __init__(self, episodes: int) -> None:
        self._limit = checked_count("episodes", episodes)

    def begin(self, task: RobotTask, n_solutions: int) -> None:
        """Allocate memory for the episodes asked for."""
        n, length = min(self._limit, n_solutions), task.episode_length
        inputs, *_, outputs = task.policy.sizes
        self._observations = np.zeros((n, length + 1, inputs), np.float32)
        self._actions = np.zeros((n, length, outputs), np.float32)
        self._rewards = np.zeros((n, length))
        self._steps = np.zeros(n, np.int64)
        self._ended, self._truncated, self._valid = (np.zeros(n, np.bool_) for _ in range(3))

    def start(self, solutions: Indices, state: State, observations: NDArray[np.float32]) -> None:
        """Keep the first observations."""
        kept = solutions < len(self._steps)
        self._observations[solutions[kept], 0] = observations[kept]

    def step(self, solutions: Indices, step: Step) -> None:
        """Keep actions, rewards and the next observations."""
        kept = solutions < len(self._steps)
        rows, numbers = solutions[kept], step.numbers[kept]
        self._observations[rows, numbers] = step.observations[kept]
        self._actions[rows, numbers - 1] = step.actions[kept]
        self._rewards[rows, numbers - 1] = step.rewards[kept].sum(axis=1)
        self._steps[rows] = numbers
        self._ended[rows], self._truncated[rows] = step.ended[kept], step.truncated[kept]
        self._valid[rows] = ~step.diverged[kept]

    def transitions(self) -> Transitions:
        """Return the transitions of the last call of `evaluate`."""
        if not hasattr(self, "_steps"):
            raise InvalidInput("nothing has been recorded; give the recorder to task.evaluate(…, recorder=…)")
        numbers = np.arange(self._rewards.shape[1])
        made = numbers < np.where(self._valid, self._steps, 0)[:, None]
        solutions, steps = np.nonzero(made)
        last = steps == self._steps[solutions] - 1
        return Transitions(
            solutions=solutions,
            observations=self._observations[:, :-1][made],
            actions=self._actions[made],
            rewards=self._rewards[made],
            next_observations=self._observations[:, 1:][made],
            ended=last & self._ended[solutions],
            truncated=last & self._truncated[solutions],
        )


class Trace:
    """A growing episode: lists with one array per step."""

    def __init__(self) -> None:
        self.qpos: list[NDArray[np.float64]] = []
        self.qvel: list[NDArray[np.float64]] = []
        self.observations: list[NDArray[np.float32]] = []
        self.actions: list[NDArray[np.float32]] = []
        self.contacts: list[NDArray[np.bool_]] = []
        self.rewards: list[NDArray[np.float64]] = []


class EpisodeRecorder:
    """Keeps all steps of the first `episodes` solutions, in `traces`."""

    def __init__(self, episodes: int) -> None:
        self._limit = checked_count("episodes", episodes)
        self.traces: list[Trace] = []

    def begin(self, task: RobotTask, n_solutions: int) -> None:
        """Make an empty trace for each episode."""
        self._robot = task.anatomy
        self.traces = [Trace() for _ in range(min(self._limit, n_solutions))]

    def start(self, solutions: Indices, state: State, observations: NDArray[np.float32]) -> None:
        """Keep the start and the first observation."""
        for row, trace in self._of(solutions):
            _keep(row, (trace.qpos, state.qpos), (trace.qvel, state.qvel), (trace.observations, observations))

    def step(self, solutions: Indices, step: Step) -> None:
        """Keep everything."""
        contacts = self._robot.loaded_feet(step.state.sensordata)
        for row, trace in self._of(solutions):
            _keep(
                row,
                (trace.qpos, step.state.qpos),
                (trace.qvel, step.state.qvel),
                (trace.observations, step.observations),
                (trace.actions, step.actions),
                (trace.contacts, contacts),
                (trace.rewards, step.rewards),
            )

    def _of(self, solutions: Indices) -> list[tuple[int, Trace]]:
        kept = [(row, i) for row, i in enumerate(solutions.tolist()) if i < len(self.traces)]
        return [(row, self.traces[i]) for row, i in kept]


def _keep(row: int, *pairs: tuple[list[Any], NDArray[Any]]) -> None:
    for kept, values in pairs:
        kept.append(values[row].copy())
