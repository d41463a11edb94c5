"""What an exported policy says about itself: enough to run it without qdbench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from qdbench.errors import InvalidInput
from qdbench.policy import Policy
from qdbench.store.record import Determinants, Versions
from qdbench.store.sound import require_sound_determinants


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """The network: a multi-layer perceptron in float32."""

    sizes: tuple[int, ...]
    """Inputs, hidden layers, outputs."""
    hidden: Literal["relu"] = "relu"
    output: Literal["tanh"] = "tanh"


@dataclass(frozen=True, kw_only=True)
class BlockFacts:
    """A block of the observation: entries `start` to `stop` - 1 are its values times `factor`."""

    name: str
    start: int
    stop: int
    factor: float
    unit: str
    """Of the values before they are multiplied by the factor."""
    meaning: str
    when: Literal["now", "last physics step", "unknown"]
    """Whether MuJoCo computed the values for the current state or for the one before the last `mj_step`;
    unknown for a block of your own that demands nothing."""
    labels: tuple[str, ...]
    """What each entry is of: a joint, an axis, a body."""


@dataclass(frozen=True, kw_only=True)
class ActuatorFacts:
    """What an action controls: within -1 … 1, held for one control step.

    A motor's torque on its joint is gear × gain × action, in N·m.
    """

    name: str
    kind: Literal["motor", "other"]
    joint: str
    """Empty if it acts on no joint."""
    gear: float
    gain: float
    force_limit: float
    """Its largest force before the gear."""


@dataclass(frozen=True, kw_only=True)
class RobotFacts:
    """The robot, as far as the policy's loop needs it; the rest is in the MJCF."""

    name: str
    root: Literal["free", "planar", "fixed"]
    """How the root moves: a free joint, or slide along x, slide along z and hinge about y, or not at all."""
    root_body: str
    """Empty if the robot names none."""
    control_step: float
    """Seconds between two actions."""
    physics_steps: int
    """Calls of `mj_step` per action."""
    timestep: float
    """Seconds of one of them; it is in the MJCF, too."""
    start: str
    """The keyframe in which an episode starts. Empty: the pose in which the MJCF is written."""
    feet: tuple[str, ...]
    weight: float
    """In newtons."""
    standing_height: float | None
    """Height of the root at the start, in metres. None if the root is fixed."""


@dataclass(frozen=True, kw_only=True)
class TermFacts:
    """A term of the task by name, with its numbers; docs/tasks.md has the formulas. None: no limit."""

    name: str
    parameters: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PolicyFacts(Determinants):
    """All facts about exported policies: task, algorithm and seed of the run, and how to run them elsewhere.

    `task` has name, version, fingerprint and options such as the reset noise and the episode length.
    """

    evaluations: int
    """Of the run when its archive was written."""
    versions: Versions
    """Where the run was made: results are exactly the same only there."""
    robot: RobotFacts
    network: NetworkFacts
    observation: tuple[BlockFacts, ...]
    actions: tuple[ActuatorFacts, ...]
    rewards: tuple[TermFacts, ...]
    """The fitness is their sum over all control steps."""
    ending: TermFacts
    reset: TermFacts
    descriptor: TermFacts
    descriptor_names: tuple[str, ...]


def require_sound_facts(facts: PolicyFacts) -> Policy:
    """Raise an error where no policy can have these facts; return the shape of its network."""
    require_sound_determinants(facts)
    policy = Policy(facts.network.sizes)
    ends = [0, *(block.stop for block in facts.observation)]
    starts = [*(block.start for block in facts.observation), policy.sizes[0]]
    if starts != ends or any(b.stop - b.start != len(b.labels) for b in facts.observation):
        raise InvalidInput("its observation blocks are not the inputs of its network")
    if len(facts.actions) != policy.sizes[-1]:
        raise InvalidInput("its actions are not the outputs of its network")
    if policy.n_parameters != facts.task.n_parameters:
        raise InvalidInput("its network has not the parameters of its task")
    if facts.evaluations < 0 or facts.robot.physics_steps < 1 or not facts.robot.control_step > 0:
        raise InvalidInput("a count or a time is impossible")
    if len(facts.descriptor_names) != len(facts.task.cells):
        raise InvalidInput("it has not one name per descriptor dimension")
    return policy
