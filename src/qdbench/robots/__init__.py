"""The robots: one MJCF file each, and a few facts that tasks need.

The MJCF describes the robot. A `Robot` adds what MJCF cannot express: which parts are feet, how long a
control step is, and how many physics steps it has. The task decides what the policy observes, and which
sensors this needs: `RobotTask.anatomy` compiles the robot with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdbench.checks import (
    checked_flag,
    checked_name,
    checked_names,
    checked_path,
    checked_text,
    is_number,
    is_whole,
    shown,
)
from qdbench.errors import InvalidInput

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class Robot:
    """A simulated robot: its MJCF, and facts that MJCF cannot express."""

    name: str
    mjcf: str = field(repr=False)
    """The text of the MJCF, not its path. It must be self-contained: no mesh or include files."""
    control_step: float
    """Seconds between two actions."""
    physics_steps: int
    """Physics steps per control step. docs/convergence.md explains the built-in values."""
    exact_contacts: bool = False
    """Whether contacts and joint limits keep their time constants (`solref`) at any physics step.

    If False, they are MuJoCo's own, which become stiffer with longer steps. If two geoms touch, the stiffer
    `solref` counts."""
    root: str | None = None
    """Name of the body that carries all others, for terms about the complete robot. It may be fixed."""
    feet: tuple[str, ...] = ()
    """Names of the feet, in the order of the descriptor; empty for a robot without feet.

    A foot is a geom or, if no geom has this name, a body with all its geoms."""
    floor: str | None = None
    """Name of the geom that the feet stand on."""
    start: str | None = None
    """Name of the keyframe in which an episode starts. None: the pose in which the MJCF is written."""

    def __post_init__(self) -> None:
        whose, step, physics_steps = f"robot {self.name!r}: ", self.control_step, self.physics_steps
        checked_name("a robot's name", self.name)
        if not is_number(step) or not 0 < step < 2**31:
            raise InvalidInput(f"{whose}control_step is {shown(step)}; give seconds above 0")
        if not is_whole(physics_steps) or not 1 <= physics_steps < 2**31:
            raise InvalidInput(f"{whose}physics_steps is {shown(physics_steps)}; give 1 or more")
        plain: dict[str, object] = {
            "mjcf": checked_text(f"{whose}mjcf", self.mjcf),
            "control_step": float(step),
            "physics_steps": int(physics_steps),
            "exact_contacts": checked_flag(f"{whose}exact_contacts", self.exact_contacts),
            "feet": checked_names(f"{whose}feet", self.feet),
        }
        for part in ("root", "floor", "start"):
            if getattr(self, part) is not None:
                checked_name(f"{whose}{part}", getattr(self, part))
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if len(set(self.feet)) != len(self.feet):
            raise InvalidInput(f"robot {self.name!r}: a foot is named twice in {self.feet}")
        if self.feet and self.floor is None:
            raise InvalidInput(
                f"robot {self.name!r} has feet but no floor; name the geom they stand on: floor="
            )

    @property
    def anatomy(self) -> Anatomy:
        """The compiled robot, without the sensors that a task adds."""
        return self.compiled(frozenset())

    def compiled(self, fields: frozenset[str]) -> Anatomy:
        """Return the compiled robot whose simulation fills these fields of the state. It is compiled once.

        MuJoCo is imported here, when it is first needed.
        """
        from qdbench.robots.anatomy import SENSORS, compile_robot

        if not isinstance(fields, frozenset):
            raise InvalidInput(f"fields are {shown(fields)}; give a frozenset of names")
        sensors = fields.intersection(SENSORS)
        if sensors not in self._compiled:
            self._compiled[sensors] = compile_robot(self, sensors)
        return self._compiled[sensors]

    @cached_property
    def _compiled(self) -> dict[frozenset[str], Anatomy]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the compiled model: other processes compile their own."""
        return {name: value for name, value in vars(self).items() if name != "_compiled"}


def read_mjcf(path: str | Path) -> str:
    """Return the text of an MJCF file."""
    path = checked_path("the MJCF file", path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read the MJCF file {str(path)!r}: {error}") from None


def _built_in(name: str) -> str:
    return resources.files(__name__).joinpath(f"{name}.xml").read_text(encoding="utf-8")


HOPPER = Robot(
    name="hopper",
    mjcf=_built_in("hopper"),
    root="torso",
    floor="floor",
    start="start",
    feet=("foot",),
    control_step=0.02,
    physics_steps=4,
)

WALKER = Robot(
    name="walker",
    mjcf=_built_in("walker"),
    root="torso",
    floor="floor",
    start="start",
    feet=("right_foot", "left_foot"),
    control_step=0.02,
    physics_steps=6,
)

HALFCHEETAH = Robot(
    name="halfcheetah",
    mjcf=_built_in("halfcheetah"),
    root="torso",
    floor="floor",
    start="start",
    feet=("front_foot", "back_foot"),
    control_step=0.05,
    physics_steps=5,
    exact_contacts=True,
)

ANT = Robot(
    name="ant",
    mjcf=_built_in("ant"),
    root="torso",
    floor="floor",
    start="start",
    feet=("foot_1", "foot_2", "foot_3", "foot_4"),
    control_step=0.05,
    physics_steps=5,
    exact_contacts=True,
)

HUMANOID = Robot(
    name="humanoid",
    mjcf=_built_in("humanoid"),
    root="torso",
    floor="floor",
    start="start",
    feet=("right_foot", "left_foot"),
    control_step=0.015,
    physics_steps=5,
)

HEXAPOD = Robot(
    name="hexapod",
    mjcf=_built_in("hexapod"),
    root="torso",
    floor="floor",
    start="start",
    feet=("foot_0", "foot_1", "foot_2", "foot_3", "foot_4", "foot_5"),
    control_step=0.02,
    physics_steps=3,
    exact_contacts=True,
)

ROBOTS = {robot.name: robot for robot in (HOPPER, WALKER, HALFCHEETAH, ANT, HUMANOID, HEXAPOD)}
