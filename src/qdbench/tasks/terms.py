"""The records a robot task is made of: observation blocks, rewards, descriptor, ending, reset.

Each is a function of arrays with its parameters, and what it demands of the robot and of the simulation. The
first axis of all arrays is the batch: one row per episode. Functions are pure: they keep and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import (
    checked_count,
    checked_flag,
    checked_function,
    checked_list,
    checked_name,
    checked_names,
    checked_number,
    checked_text,
    shown,
)
from qdbench.errors import BrokenTask, InvalidInput, UnknownName
from qdbench.robots import Robot
from qdbench.sources import source_digest
from qdbench.tasks.state import Array, State

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy

PARTS = {
    "root": "name the root body: Robot(root=…)",
    "floating root": "give the body named by Robot(root=…) a free joint, or a slide along x, a slide along z "
    "and a hinge about y, as the first joints of the model",
    "feet": "name them and the geom they stand on: Robot(feet=…, floor=…)",
    "weight": "gravity, the masses and the height of the root at the start must be above 0",
}
"""What a term may demand of a robot, besides fields of the state, and how to provide it."""


class Moment(NamedTuple):
    """The control step that was just made, as rewards and endings see it."""

    state: State
    """After the step."""
    actions: Array  #: (batch, actions) within [-1, 1]
    steps: NDArray[np.int64]  #: (batch,) control steps so far, including this one
    robot: Anatomy


class Ended(NamedTuple):
    """Episodes that have just ended, as a descriptor sees them."""

    state: State
    """The final state. Positions are current."""
    sums: Array  #: (batch, k) sums of what `each_step` returned
    steps: NDArray[np.int64]  #: (batch,) control steps made
    episode_length: int
    """The control steps of an episode that does not end early."""
    robot: Anatomy


@dataclass(frozen=True)
class Term:
    """The common part of all terms."""

    name: str
    function: Callable[..., Any] = field(repr=False)
    """A function of a module, so that the term can be sent to another process."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Passed to every function of the term by name; numbers, text or tuples of them."""
    demands: tuple[str, ...] = field(default=(), kw_only=True)
    """Fields of `State` besides qpos, qvel and sensordata, and parts of the robot: the keys of `PARTS`."""
    version: int | None = field(default=None, kw_only=True)
    """Raise it with every change. None: a hash of the file that defines the functions counts instead."""

    kind: ClassVar[str] = "term"

    def __post_init__(self) -> None:
        checked_name(f"the name of the {self.kind}", self.name)
        checked_function(f"{self}: function", self.function)
        if not isinstance(self.parameters, Mapping) or not all(isinstance(k, str) for k in self.parameters):
            raise InvalidInput(
                f"{self}: the parameters are {shown(self.parameters)}; give a dictionary by name"
            )
        object.__setattr__(self, "parameters", {k: _plain(self, k, v) for k, v in self.parameters.items()})
        object.__setattr__(self, "demands", checked_names(f"{self}: demands", self.demands))
        known = (*State._fields, *PARTS)
        for demand in self.demands:
            if demand not in known:
                raise UnknownName("demand", demand, known, f"{self} may demand {', '.join(known)}")
        if self.version is not None:
            object.__setattr__(self, "version", checked_count(f"{self}: version", self.version))

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    def identity(self) -> dict[str, Any]:
        """Return what counts in a fingerprint, in types that JSON has."""
        parameters = {name: _counted(value) for name, value in self.parameters.items()}
        facts = {"kind": self.kind, "name": self.name, "parameters": parameters}
        code = [
            value for f in fields(self) if callable(value := getattr(self, f.name)) and f.name != "labels"
        ]
        if self.version is None:
            return {**facts, "source": [source_digest(value) for value in code]}
        built_in = all(value.__module__.startswith("qdbench.") for value in code)
        return {**facts, "version" if built_in else "own version": self.version}


@dataclass(frozen=True)
class Block(Term):
    """A part of the observation: `function(state, robot, **parameters)` → (batch, size)."""

    size: int | Callable[..., int] = field(kw_only=True, repr=False)
    """The number of values, or a function `size(robot, **parameters)`."""
    scale: float = field(default=1.0, kw_only=True)
    """The policy observes the values times this."""
    unit: str = field(default="", kw_only=True, repr=False)
    """Of the values before they are scaled, for those who read an exported policy. As the next two, it is no
    part of the fingerprint."""
    meaning: str = field(default="", kw_only=True, repr=False)
    """A sentence on what is observed."""
    labels: tuple[str, ...] | Callable[..., tuple[str, ...]] = field(default=(), kw_only=True, repr=False)
    """A label for each value, or a function `labels(robot, **parameters)`. Empty: they are numbered."""

    kind: ClassVar[str] = "observation block"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size(self, self.size)
        for name in ("unit", "meaning"):
            object.__setattr__(self, name, checked_text(f"{self}: {name}", getattr(self, name)))
        if not callable(self.labels):
            object.__setattr__(self, "labels", checked_names(f"{self}: labels", self.labels))
        object.__setattr__(self, "scale", checked_number(f"{self}: scale", self.scale))

    def times(self, scale: float) -> Block:
        """Return the block with its values multiplied by `scale`, to bring them to the order of 1."""
        return replace(self, scale=self.scale * checked_number(f"{self}: scale", scale))

    def identity(self) -> dict[str, Any]:
        """Return what counts in a fingerprint."""
        return {**super().identity(), **({} if self.scale == 1 else {"scale": self.scale})}

    def __call__(self, state: State, robot: Anatomy) -> Array:
        """Return the values of the block for a batch of states, before they are scaled."""
        return np.asarray(self.function(state, robot, **self.parameters))

    def n_values(self, robot: Anatomy) -> int:
        """Return the number of values of the block for this robot."""
        return _size(self, self.size, robot)

    def value_labels(self, robot: Anatomy) -> tuple[str, ...]:
        """Return a label for each value of the block."""
        labels, n = self.labels, self.n_values(robot)
        if callable(labels):
            labels = checked_names(f"{self}: labels", labels(robot, **self.parameters))
        if labels and len(labels) != n:
            raise BrokenTask(f"{self} has {len(labels)} labels for {n} values; give one each")
        return labels or tuple(map(str, range(n)))


@dataclass(frozen=True)
class Reward(Term):
    """A reward: `function(moment, **parameters)` → (batch,), what one control step earns.

    A cost is a negative reward. `remembers` is a function of (state, robot, **parameters). If it is given,
    the reward is called as `function(moment, before, now, **parameters)`, with what `remembers` returned
    before and after the step.
    """

    limits: tuple[float, float] | Callable[..., tuple[float, float]] = field(kw_only=True, repr=False)
    """Lowest and highest value of one step, or a function `limits(robot, **parameters)`. The fitness bounds
    are computed from them."""
    remembers: Callable[..., Array] | None = field(default=None, kw_only=True, repr=False)

    kind: ClassVar[str] = "reward"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.limits):
            object.__setattr__(self, "limits", _limits(self, self.limits))
        if self.remembers is not None:
            checked_function(f"{self}: remembers", self.remembers)

    def __call__(self, moment: Moment, *memory: Array) -> Array:
        """Return what each episode earned in the step."""
        n = len(moment.steps)
        return _shaped(self, self.function(moment, *memory, **self.parameters), (), (n,))

    def memory(self, state: State, robot: Anatomy) -> Array:
        """Return what must be kept until after the next step."""
        assert self.remembers is not None
        return self.remembers(state, robot, **self.parameters)

    def bounds(self, robot: Anatomy) -> tuple[float, float]:
        """Return the lowest and the highest value of one step."""
        return _limits(self, self.limits(robot, **self.parameters)) if callable(self.limits) else self.limits

    def identity(self) -> dict[str, Any]:
        """Return what counts in a fingerprint."""
        return {**super().identity(), "limits": None if callable(self.limits) else self.limits}


@dataclass(frozen=True)
class Descriptor(Term):
    """A descriptor: `function(ended, **parameters)` → (batch, dimensions).

    `each_step(moment, **parameters)` → (batch, k) is summed over the episode; the sums are in `ended.sums`.
    """

    axes: tuple[str, ...] | Callable[..., tuple[str, ...]] = field(kw_only=True, repr=False)
    """A label for each dimension, for pictures; or a function of the `Robot`."""
    each_step: Callable[..., NDArray[Any]] | None = field(default=None, kw_only=True, repr=False)
    counts_steps: bool = field(default=False, kw_only=True)
    """Whether it is a share of the episode's steps. Then short episodes cannot fill many cells."""

    kind: ClassVar[str] = "descriptor"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.axes):
            object.__setattr__(self, "axes", checked_names(f"{self}: axes", self.axes))
        if self.each_step is not None:
            checked_function(f"{self}: each_step", self.each_step)
        object.__setattr__(self, "counts_steps", checked_flag(f"{self}: counts_steps", self.counts_steps))

    def __call__(self, ended: Ended, dimensions: int) -> Array:
        """Return the descriptors of episodes that ended."""
        return _shaped(self, self.function(ended, **self.parameters), (len(ended.steps), dimensions))

    def of_step(self, moment: Moment) -> Array:
        """Return what is summed over the episode."""
        assert self.each_step is not None
        values = np.asarray(self.each_step(moment, **self.parameters))
        return _shaped(self, values, (len(moment.steps), values.shape[-1] if values.ndim else 0))

    def names(self, robot: Robot) -> tuple[str, ...]:
        """Return a label for each dimension."""
        return checked_names(f"{self}: axes", self.axes(robot)) if callable(self.axes) else self.axes


@dataclass(frozen=True)
class Ending(Term):
    """An ending: `function(moment, **parameters)` → (batch,) of booleans. True ends the episode early.

    The step that ends it still counts.
    """

    kind: ClassVar[str] = "ending"

    def __call__(self, moment: Moment) -> NDArray[np.bool_]:
        """Return which episodes end with this step."""
        return _shaped(self, self.function(moment, **self.parameters), (len(moment.steps),)).astype(np.bool_)


@dataclass(frozen=True)
class Reset(Term):
    """A reset: `function(qpos, qvel, noise, robot, **parameters)` → (qpos, qvel), where episodes start.

    It gets copies of the robot's start, (batch, nq) and (batch, nv), and noise (batch, size). The noise is
    uniform in ± the task's `reset_noise` and depends on the evaluation seed alone.
    """

    size: int | Callable[..., int] = field(kw_only=True, repr=False)
    """The number of random numbers per episode, or a function `size(robot, **parameters)`."""

    kind: ClassVar[str] = "reset"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size(self, self.size)

    def __call__(self, qpos: Array, qvel: Array, noise: Array, robot: Anatomy) -> tuple[Array, Array]:
        """Return the positions and velocities of the start."""
        qpos, qvel = self.function(qpos, qvel, noise, robot, **self.parameters)
        return qpos, qvel

    def n_values(self, robot: Anatomy) -> int:
        """Return the number of random numbers per episode."""
        return _size(self, self.size, robot)


def check_demands(task: str, term: Term, robot: Robot, anatomy: Anatomy) -> None:
    """Raise BrokenTask if a robot does not have what a term needs."""
    met = {
        "root": robot.root is not None,
        "floating root": anatomy.root != "fixed",
        "feet": bool(robot.feet),
        "weight": anatomy.weight > 0 and anatomy.standing_height > 0,
    }
    for demand in term.demands:
        if not met.get(demand, True):
            raise BrokenTask(
                f"{task}: {term} needs {demand}, which robot {robot.name!r} does not have; {PARTS[demand]}"
            )


Size = int | Callable[..., int]
"""A number, or what computes it for a robot."""


def _check_size(term: Block | Reset, size: Size) -> None:
    if not callable(size):
        object.__setattr__(term, "size", checked_count(f"{term}: size", size, 0))


def _size(term: Term, size: Size, robot: Anatomy) -> int:
    if not callable(size):
        return size
    return checked_count(f"{term}: size", size(robot, **term.parameters), 0)


def _limits(term: Term, value: tuple[float, float]) -> tuple[float, float]:
    """Return lowest and highest value of a step, which may be the same."""
    ends = checked_list(f"{term}: limits", value, "give (lowest, highest)")
    if len(ends) != 2:
        raise InvalidInput(f"{term}: limits are {shown(value)}; give (lowest, highest)")
    low, high = (checked_number(f"{term}: limits", end) for end in ends)
    if low > high:
        raise InvalidInput(f"{term}: limits are {shown(value)}; give (lowest, highest)")
    return low, high


def _plain(term: Term, name: str, value: Any) -> Any:
    """Return a parameter as Python numbers, text or tuples, so that equal ones give equal fingerprints."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_plain(term, name, item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInput(
        f"{term}: the parameter {name} is {shown(value)}; give numbers, text or tuples of them"
    )


def _counted(value: Any) -> Any:
    """Return a parameter as it counts in a fingerprint: 1 and 1.0 are the same."""
    if isinstance(value, tuple):
        return [_counted(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shaped(term: Term, given: Any, *shapes: tuple[int, ...]) -> NDArray[Any]:
    values: NDArray[Any] = np.asarray(given)
    if values.shape not in shapes:
        raise BrokenTask(
            f"{term} returned shape {values.shape} for {shapes[-1][0]} episodes, not {shapes[-1]}"
        )
    return values
