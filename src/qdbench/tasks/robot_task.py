"""A task in which a neural controller moves a simulated robot."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.errors import InvalidInput
from qdbench.policy import Parameters, Policy
from qdbench.robots import Robot
from qdbench.tasks.contract import (
    Bounds,
    Evaluation,
    Progress,
    checked_choice,
    checked_count,
    checked_geometry,
    checked_interval,
    checked_number,
    checked_seeds,
    checked_solutions,
    checked_workers,
    fingerprint,
)
from qdbench.tasks.observation import block
from qdbench.tasks.state import Array, State

if TYPE_CHECKING:
    from qdbench.simulation import Episode


@dataclass(frozen=True, kw_only=True)
class RobotTask:
    """A robot, its reward, its descriptor and its archive's shape: a record, complete in one place.

    Per control step the fitness grows by `forward` × velocity along x + `survive`
    - `torque` × Σ action². The episode ends after `episode_length` control steps, or with the step in
    which the root's height leaves `healthy`.
    """

    name: str
    version: int
    robot: Robot
    descriptor: Literal["feet", "position"]
    """`feet`: share of lived steps each foot was loaded; `position`: final x, y of the centre of mass."""
    forward: float
    forward_of: Literal["com", "root"]
    """Whose displacement counts: the centre of mass's or the root body's."""
    survive: float
    torque: float
    healthy: tuple[float, float]
    top_speed: float
    """A mean speed in m/s no controller reaches; it makes `fitness_bounds` wide enough."""
    descriptor_bounds: Bounds
    cells: tuple[int, ...]
    reset_noise: float
    """At the start, uniform noise within ± this on joint angles and velocities, never on the root."""
    episode_length: int = 1000
    hidden: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        checked_choice("descriptor", self.descriptor, ("feet", "position"))
        checked_choice("forward_of", self.forward_of, ("com", "root"))
        bounds, cells = checked_geometry(self.descriptor_bounds, self.cells)
        dimensions = len(self.robot.feet) if self.descriptor == "feet" else 2
        if len(cells) != dimensions:
            raise InvalidInput(
                f"{self.name} has {dimensions} descriptor dimensions, not {len(cells)} as in {cells}"
            )
        if isinstance(self.hidden, str) or not np.iterable(self.hidden):
            raise InvalidInput(
                f"hidden is {self.hidden!r}; give the sizes of the hidden layers, like (64, 64)"
            )
        plain: dict[str, object] = {  # one spelling of every value: equal tasks have equal fingerprints
            "version": checked_count("version", self.version),
            "descriptor_bounds": bounds,
            "cells": cells,
            "healthy": checked_interval("healthy", self.healthy, finite=False),
            "episode_length": checked_count("episode_length", self.episode_length),
            "hidden": tuple(checked_count("hidden", n) for n in self.hidden),
            **{name: checked_number(name, getattr(self, name)) for name in ("forward", "survive", "torque")},
            **{name: checked_number(name, getattr(self, name), 0.0) for name in ("reset_noise", "top_speed")},
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        for name in self.robot.observation:
            block(name)

    # What the task is

    @cached_property
    def policy(self) -> Policy:
        """The shape of the controllers."""
        anatomy = self.robot.anatomy
        observations = sum(block(name).size(anatomy) for name in self.robot.observation)
        return Policy((observations, *self.hidden, anatomy.n_actions))

    @property
    def n_parameters(self) -> int:
        """The length of a solution."""
        return self.policy.n_parameters

    @property
    def fitness_bounds(self) -> tuple[float, float]:
        """The fixed interval of the QD score: exact without a forward term, else up to `top_speed`."""
        speed, cost = abs(self.forward) * self.top_speed, self.torque * self.robot.anatomy.n_actions
        worst, best = self.survive - max(cost, 0.0) - speed, self.survive - min(cost, 0.0) + speed
        # a negative sum is worst when it lasts, a positive one when the first step is the last
        return (
            worst * (self.episode_length if worst < 0 else 1),
            best * (self.episode_length if best > 0 else 1),
        )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of version, options, rewards, MJCF and MuJoCo: equal ones are comparable."""
        import mujoco

        facts = asdict(self)
        if not self.robot.exact_contacts:
            del facts["robot"]["exact_contacts"]  # so that fingerprints are as before there was such a thing
        return fingerprint({**facts, "mujoco": mujoco.mj_versionString()})

    # How a batch of states is read: arrays with a leading batch axis, in and out

    def observe(self, state: State) -> list[Array]:
        """Return the blocks of the observation, to be put side by side."""
        anatomy = self.robot.anatomy
        return [block(name).values(state, anatomy) for name in self.robot.observation]

    def position(self, state: State) -> Array:
        """Return where along x the robot is, for the forward term."""
        if self.forward_of == "root":
            return state.qpos[:, 0]
        return state.subtree_com[:, self.robot.anatomy.root_body, 0]

    def contacts(self, state: State) -> NDArray[np.bool_]:
        """Return which feet the floor pushes against, (batch, feet)."""
        return state.sensordata[:, self.robot.anatomy.foot_sensors] > 0

    def is_healthy(self, state: State) -> NDArray[np.bool_]:
        """Return whose root is at a healthy height."""
        height = state.qpos[:, 1 if self.robot.anatomy.planar else 2]
        return (height > self.healthy[0]) & (height < self.healthy[1])

    # What can be done with it

    def random_solutions(self, n: int, generator: np.random.Generator) -> Parameters:
        """Return `n` fresh policies with LeCun-uniform weights."""
        return self.policy.lecun_uniform(checked_count("n", n), generator)

    def evaluate(
        self,
        solutions: Parameters,
        seeds: ArrayLike,
        *,
        workers: int | None = None,
        progress: Progress | None = None,
        slots: int | None = None,
    ) -> Evaluation:
        """Let every solution live one episode under its own seed.

        The result depends on task, solution and seed alone: not on the batch, on `workers` (threads;
        default all cores) or on `slots` (episodes a worker keeps going at once).
        """
        from qdbench import simulation

        solutions = checked_solutions(self.name, solutions, self.n_parameters)
        return simulation.evaluate(
            self,
            solutions,
            checked_seeds(seeds, len(solutions)),
            workers=checked_workers(workers),
            slots=None if slots is None else checked_count("slots", slots),
            progress=progress,
        )

    def rollout(self, solution: Parameters, seed: int) -> Episode:
        """Return the whole episode of one solution, step by step."""
        from qdbench import simulation

        if isinstance(solution, np.ndarray) and solution.ndim == 1:
            solution = solution[None]
        solutions = checked_solutions(self.name, solution, self.n_parameters)
        if len(solutions) != 1:
            raise InvalidInput(f"a rollout is of one solution, not {len(solutions)}; give one row")
        return simulation.rollout(self, solutions, checked_seeds([seed], 1))
