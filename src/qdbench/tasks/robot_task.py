"""A task in which a neural network controls a simulated robot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.checks import (
    Bounds,
    checked_count,
    checked_function,
    checked_generator,
    checked_geometry,
    checked_interval,
    checked_list,
    checked_name,
    checked_number,
    checked_seeds,
    checked_solutions,
    checked_text,
    checked_workers,
    shown,
)
from qdbench.errors import InvalidInput
from qdbench.policy import Parameters, Policy
from qdbench.robots import Robot
from qdbench.sources import subclass_digests
from qdbench.tasks.contract import Evaluations, Progress, fingerprint
from qdbench.tasks.endings import NEVER
from qdbench.tasks.reach import FOLLOWS, Follows, Reach
from qdbench.tasks.resets import JOINT_NOISE
from qdbench.tasks.state import ALWAYS_READ, State
from qdbench.tasks.terms import Block, Descriptor, Ending, Reset, Reward, Term, check_demands

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy
    from qdbench.simulation import Episode, Recorder

OPTIONS = ("episode_length", "descriptor_bounds", "cells", "reset_noise", "hidden")
MEANS = ("episode", "lived")


@dataclass(frozen=True, kw_only=True)
class RobotTask:
    """A task with a robot: a record of the robot, the terms of the task, and the task's grid.

    The fitness of an episode is the sum of all rewards over all control steps. The episode ends after
    `episode_length` control steps, or earlier if `ending` says so.
    """

    name: str
    version: int
    robot: Robot
    observation: tuple[Block, ...]
    """What the policy observes: blocks of numbers, concatenated."""
    rewards: tuple[Reward, ...]
    """What a control step earns; the fitness is the sum. Costs are negative."""
    descriptor: Descriptor
    ending: Ending = NEVER
    reset: Reset = JOINT_NOISE
    reach: Reach | None = None
    """If given, `descriptor_bounds` and `cells` follow from it and from the episode length."""
    descriptor_bounds: Bounds = FOLLOWS
    cells: tuple[int, ...] = FOLLOWS
    mean_over: str = ""
    """What a descriptor that counts steps divides by: `episode` (its full length) or `lived` (the steps
    made). Empty: what the descriptor itself says."""
    reset_noise: float
    """The random numbers of `reset` are uniform within ± this."""
    episode_length: int = 1000
    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the policy's hidden layers."""
    fitness_per_step: tuple[float, float] | None = None
    """The QD score's fitness interval, divided by the episode length. None: what is possible."""
    remark_on_max_fitness: str = ""
    """A sentence to show with max fitness if it can be misread."""

    def __post_init__(self) -> None:
        bounds, cells = self._geometry()
        hidden = checked_list("hidden", self.hidden, "give the sizes of the hidden layers, like (64, 64)")
        if not isinstance(self.robot, Robot):
            raise InvalidInput(f"robot is {shown(self.robot)}; give a qdbench.Robot")
        plain: dict[str, object] = {  # one form of every value: equal tasks have equal fingerprints
            "name": checked_name("name", self.name),
            "remark_on_max_fitness": checked_text("remark_on_max_fitness", self.remark_on_max_fitness),
            "version": checked_count("version", self.version),
            "observation": _records(self.name, "observation", self.observation, Block),
            "rewards": _records(self.name, "rewards", self.rewards, Reward),
            "descriptor_bounds": bounds,
            "cells": cells,
            "episode_length": checked_count("episode_length", self.episode_length),
            "hidden": tuple(checked_count("hidden", n) for n in hidden),
            "reset_noise": checked_number("reset_noise", self.reset_noise, 0.0),
        }
        if self.fitness_per_step is not None:
            plain["fitness_per_step"] = checked_interval("fitness_per_step", self.fitness_per_step)
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        _records(self.name, "descriptor", [self.descriptor], Descriptor)
        self._choose_mean()
        _records(self.name, "ending", [self.ending], Ending)
        _records(self.name, "reset", [self.reset], Reset)
        names = [reward.name for reward in self.rewards]
        if not names or len(set(names)) != len(names):
            raise InvalidInput(
                f"{self.name}: the rewards are ({', '.join(names)}); give at least one, with different names"
            )
        dimensions = len(self.descriptor_names)
        if dimensions and len(cells) != dimensions:
            raise InvalidInput(
                f"{self.name} has {dimensions} descriptor dimensions, but cells {cells} has {len(cells)}"
            )

    def _geometry(self) -> tuple[Bounds, tuple[int, ...]]:
        """Return bounds and cells: those given, or those that follow from the reach."""
        if self.reach is None:
            return checked_geometry(self.descriptor_bounds, self.cells)
        if not isinstance(self.reach, Reach) or not isinstance(self.robot, Robot):
            raise InvalidInput(f"reach is {shown(self.reach)}; give a qdbench.Reach")
        seconds = checked_count("episode_length", self.episode_length) * self.robot.control_step
        box, counts = self.reach.geometry(seconds, 2)
        given_box, given_counts = self.descriptor_bounds, self.cells
        bounds, cells = checked_geometry(
            box if isinstance(given_box, Follows) else given_box,
            counts if isinstance(given_counts, Follows) else given_counts,
        )
        return (
            Follows(bounds) if isinstance(given_box, Follows) else bounds,
            Follows(cells) if isinstance(given_counts, Follows) else cells,
        )

    def _choose_mean(self) -> None:
        """Give the descriptor the mean that is asked for."""
        own = self.descriptor.parameters.get("over")
        is_text = isinstance(self.mean_over, str)
        if is_text and self.mean_over in ("", own):
            return
        if own is None or not is_text or self.mean_over not in MEANS:
            known = "its descriptor is no mean over steps" if own is None else f"use {' or '.join(MEANS)}"
            raise InvalidInput(f"{self.name}: mean_over is {shown(self.mean_over)}; {known}")
        parameters = {**self.descriptor.parameters, "over": self.mean_over}
        object.__setattr__(self, "descriptor", replace(self.descriptor, parameters=parameters))

    # What the task is

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms: observation blocks, rewards, descriptor, ending, reset."""
        return (*self.observation, *self.rewards, self.descriptor, self.ending, self.reset)

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """A label for each dimension of the descriptor."""
        return self.descriptor.names(self.robot)

    @property
    def counts_steps(self) -> bool:
        """Whether the descriptor is a share of the episode's steps."""
        return self.descriptor.counts_steps

    @property
    def fields(self) -> frozenset[str]:
        """The fields of `State` that the simulation must provide."""
        demanded = {demand for term in self.terms for demand in term.demands}
        return ALWAYS_READ | demanded.intersection(State._fields)

    @cached_property
    def anatomy(self) -> Anatomy:
        """The compiled robot, with the sensors that the terms need."""
        anatomy = self.robot.compiled(self.fields)
        for term in self.terms:
            check_demands(self.name, term, self.robot, anatomy)
        return anatomy

    @cached_property
    def policy(self) -> Policy:
        """The shape of the policies."""
        observations = sum(block.n_values(self.anatomy) for block in self.observation)
        return Policy((observations, *self.hidden, self.anatomy.n_actions))

    @cached_property
    def observation_scales(self) -> NDArray[np.float32]:
        """What each entry of the observation is multiplied by, (observations,)."""
        sizes = [block.n_values(self.anatomy) for block in self.observation]
        return np.repeat(np.array([block.scale for block in self.observation], np.float32), sizes)

    @property
    def n_parameters(self) -> int:
        """The length of a solution."""
        return self.policy.n_parameters

    @property
    def fitness_bounds(self) -> tuple[float, float]:
        """The possible fitness, computed from the limits of the rewards."""
        worst = best = 0.0
        for low, high in (reward.bounds(self.anatomy) for reward in self.rewards):
            worst += low
            best += high
        # worst: a negative sum for all steps, or a positive one for a single step
        return (
            worst * (self.episode_length if worst < 0 else 1),
            best * (self.episode_length if best > 0 else 1),
        )

    @property
    def score_interval(self) -> tuple[float, float]:
        """The fixed fitness interval of the QD score; it grows with the episode length."""
        if self.fitness_per_step is None:
            return self.fitness_bounds
        low, high = self.fitness_per_step
        return low * self.episode_length, high * self.episode_length

    @cached_property
    def fingerprint(self) -> str:
        """A hash of version, options, terms, MJCF and MuJoCo's version: equal ones are comparable.

        Built-in terms count by name, version and parameters; for your own see `Term.version`. A subclass
        counts by the file that defines it, because it may change anything.
        """
        import mujoco

        return fingerprint(
            {
                "name": self.name,
                "version": self.version,
                "robot": asdict(self.robot),
                "terms": [term.identity() for term in self.terms],
                "options": self.options(),
                "mujoco": mujoco.mj_versionString(),
                "source": subclass_digests(self, RobotTask),
            }
        )

    def options(self) -> dict[str, Any]:
        """Return what a user may change, with the current values."""
        own = {name: getattr(self, name) for name in OPTIONS}
        over = self.descriptor.parameters.get("over")
        return own if over is None else {**own, "mean_over": over}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the compiled model: other processes compile their own."""
        return {name: value for name, value in vars(self).items() if name != "anatomy"}

    # What can be done with it

    def random_solutions(self, n: int, generator: np.random.Generator) -> Parameters:
        """Return `n` random policies with LeCun-uniform weights."""
        return self.policy.lecun_uniform(checked_count("n", n), checked_generator(generator))

    def evaluate(
        self,
        solutions: Parameters,
        seeds: ArrayLike,
        *,
        workers: int | None = None,
        progress: Progress | None = None,
        slots: int | None = None,
        recorder: Recorder | None = None,
    ) -> Evaluations:
        """Evaluate every solution in one episode with its own seed.

        A result depends on task, solution and seed alone. It does not depend on the batch, on `workers`
        (threads; by default all cores) or on `slots` (episodes that a worker simulates at once). A `recorder`
        from `qdbench.simulation` sees every control step and keeps transitions, episodes or actions.
        """
        from qdbench import simulation

        if progress is not None:
            checked_function("progress", progress)
        if recorder is not None and not isinstance(recorder, simulation.Recorder):
            raise InvalidInput(f"recorder is {shown(recorder)}; give one of qdbench.simulation")
        solutions = checked_solutions(self.name, solutions, self.n_parameters)
        return simulation.evaluate(
            self,
            solutions,
            checked_seeds(seeds, len(solutions)),
            workers=checked_workers(workers),
            slots=None if slots is None else checked_count("slots", slots),
            progress=progress,
            recorder=recorder,
        )

    def rollout(self, solution: Parameters, seed: int) -> Episode:
        """Return the episode of one solution, step by step."""
        from qdbench import simulation

        if isinstance(solution, np.ndarray) and solution.ndim == 1:
            solution = solution[None]
        solutions = checked_solutions(self.name, solution, self.n_parameters)
        if len(solutions) != 1:
            raise InvalidInput(f"a rollout is of one solution, not {len(solutions)}; give one row")
        return simulation.rollouts(self, solutions, checked_seeds([seed], 1))[0]

    def rollouts(
        self, solutions: Parameters, seeds: ArrayLike, *, workers: int | None = None
    ) -> list[Episode]:
        """Return the episodes of several solutions, step by step, each under its own seed."""
        from qdbench import simulation

        checked = checked_solutions(self.name, solutions, self.n_parameters)
        return simulation.rollouts(
            self, checked, checked_seeds(seeds, len(checked)), checked_workers(workers)
        )


def _records(task: str, name: str, given: Iterable[Any], kind: type[Term]) -> tuple[Any, ...]:
    """Return terms as a tuple; raise InvalidInput if one is of another kind."""
    terms = checked_list(f"{task}: {name}", given, "give a tuple of records from qdbench.terms")
    for term in terms:
        if not isinstance(term, kind):
            raise InvalidInput(
                f"{task}: {name} has {shown(term)}; give {kind.kind}s from qdbench.terms, or "
                f"your own qdbench.terms.{kind.__name__}"
            )
    return tuple(terms)
