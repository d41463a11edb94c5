"""The robots: an MJCF file each, and the few facts a task needs to know about it.

The MJCF says what a robot is made of. A `Robot` adds what MJCF cannot say: which geoms are feet,
what the policy observes, how long a control step lasts and into how many physics steps it is cut.
`Robot.anatomy` compiles it, with the sensors that contacts and observations need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class Robot:
    """A simulated robot: its MJCF and the facts around it."""

    name: str
    mjcf: str = field(repr=False)
    """The MJCF itself, not its path: self-contained, without mesh or include files."""
    feet: tuple[str, ...]
    """Names of the foot geoms, in the order of the descriptor."""
    observation: tuple[str, ...]
    """Names of the blocks of `qdbench.tasks.observation` that make up what the policy sees."""
    control_step: float
    """Seconds between two actions."""
    physics_steps: int
    """Physics steps per control step; docs/convergence.md justifies the built-in ones."""
    exact_contacts: bool = False
    """Whether contacts and joint limits keep their time constants (`solref`) at any physics step.

    Else they are MuJoCo's own, stiffer the longer the step. Of two geoms that touch, the stiffer's counts."""
    root: str = "torso"
    floor: str = "floor"
    start: str = "start"
    """Names of the root body, the floor geom and the keyframe an episode starts from."""

    def __post_init__(self) -> None:
        step, physics_steps = self.control_step, self.physics_steps
        if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < float("inf"):
            raise InvalidInput(f"robot {self.name!r}: control_step is {step!r}; give seconds above 0")
        if isinstance(physics_steps, bool) or not isinstance(physics_steps, int) or physics_steps < 1:
            raise InvalidInput(f"robot {self.name!r}: physics_steps is {physics_steps!r}; give 1 or more")
        if not isinstance(self.exact_contacts, bool):
            raise InvalidInput(
                f"robot {self.name!r}: exact_contacts is {self.exact_contacts!r}; give True or False"
            )
        if len(set(self.feet)) != len(self.feet):
            raise InvalidInput(f"robot {self.name!r}: a foot is named twice in {self.feet}")
        object.__setattr__(self, "control_step", float(step))

    @cached_property
    def anatomy(self) -> Anatomy:
        """The compiled robot. MuJoCo is imported here, the first time it is needed."""
        from qdbench.robots.anatomy import compile_robot

        return compile_robot(self)


def read_mjcf(path: str | Path) -> str:
    """Return the text of an MJCF file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read the MJCF file {str(path)!r}: {error}") from None


def _built_in(name: str) -> str:
    return resources.files(__name__).joinpath(f"{name}.xml").read_text(encoding="utf-8")


HOPPER = Robot(
    name="hopper",
    mjcf=_built_in("hopper"),
    feet=("foot",),
    observation=("height", "orientation", "joint_angles", "velocity", "joint_velocities"),
    control_step=0.02,
    physics_steps=4,
)

WALKER = Robot(
    name="walker",
    mjcf=_built_in("walker"),
    feet=("right_foot", "left_foot"),
    observation=HOPPER.observation,
    control_step=0.02,
    physics_steps=6,
)

HALFCHEETAH = Robot(
    name="halfcheetah",
    mjcf=_built_in("halfcheetah"),
    feet=("front_foot", "back_foot"),
    observation=(
        "height",
        "orientation",
        "joint_angles",
        "velocity",
        "angular_velocity",
        "joint_velocities",
        "com_velocity",
    ),
    control_step=0.05,
    physics_steps=5,
)

ANT = Robot(
    name="ant",
    mjcf=_built_in("ant"),
    feet=("foot_1", "foot_2", "foot_3", "foot_4"),
    observation=(
        "height",
        "orientation",
        "joint_angles",
        "velocity",
        "angular_velocity",
        "joint_velocities",
        "contact_wrenches",
    ),
    control_step=0.05,
    physics_steps=5,
    exact_contacts=True,
)

HUMANOID = Robot(
    name="humanoid",
    mjcf=_built_in("humanoid"),
    feet=("right_foot", "left_foot"),
    observation=(
        "height",
        "orientation",
        "joint_angles",
        "velocity",
        "angular_velocity",
        "joint_velocities",
        "body_inertias",
        "body_velocities",
        "actuator_forces",
        "contact_wrenches",
    ),
    control_step=0.015,
    physics_steps=5,
)

HEXAPOD = Robot(
    name="hexapod",
    mjcf=_built_in("hexapod"),
    feet=("foot_0", "foot_1", "foot_2", "foot_3", "foot_4", "foot_5"),
    observation=(
        "position",
        "orientation",
        "joint_angles",
        "velocity",
        "angular_velocity",
        "joint_velocities",
        "contact_wrenches",
    ),
    control_step=0.02,
    physics_steps=2,
)

ROBOTS = {robot.name: robot for robot in (HOPPER, WALKER, HALFCHEETAH, ANT, HUMANOID, HEXAPOD)}
