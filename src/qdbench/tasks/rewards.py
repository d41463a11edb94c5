"""The built-in rewards. Each function returns a record for `RobotTask.rewards`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from qdbench.checks import checked_choice, checked_number
from qdbench.tasks.state import Array, State
from qdbench.tasks.terms import Moment, Reward

if TYPE_CHECKING:
    from qdbench.robots.anatomy import Anatomy


def forward(weight: float, *, of: Literal["com", "root"] = "com", top_speed: float) -> Reward:
    """Reward `weight` × velocity along x: the displacement in a control step divided by its length.

    `of` is the centre of mass ("com") or the root body ("root"). `top_speed` is a mean speed in m/s that no
    controller reaches; the fitness bounds are computed from it.
    """
    checked_choice("of", of, ("com", "root"))
    parameters = {
        "weight": checked_number("weight", weight),
        "of": of,
        "top_speed": checked_number("top_speed", top_speed, 0.0),
    }
    demands = ("root", "subtree_com") if of == "com" else ("floating root",)
    return Reward(
        "forward", _forward, parameters, limits=_forward_limits, remembers=_x, demands=demands, version=1
    )


def _x(state: State, robot: Anatomy, *, of: str, **_: float) -> Array:
    return state.qpos[:, 0] if of == "root" else state.subtree_com[:, robot.root_body, 0]


def _forward(moment: Moment, before: Array, now: Array, *, weight: float, **_: object) -> Array:
    return weight * (now - before) / moment.robot.control_step


def _forward_limits(robot: Anatomy, *, weight: float, top_speed: float, **_: object) -> tuple[float, float]:
    speed = abs(weight) * top_speed
    return -speed, speed


def survive(bonus: float) -> Reward:
    """Reward `bonus` for every control step."""
    return Reward("survive", _survive, {"bonus": checked_number("bonus", bonus)}, limits=_bonus, version=1)


def _survive(moment: Moment, *, bonus: float) -> Array:
    return np.full(len(moment.steps), bonus)


def _bonus(robot: Anatomy, *, bonus: float) -> tuple[float, float]:
    return bonus, bonus


def torque(weight: float) -> Reward:
    """Reward -`weight` × Σ action²: a cost."""
    return Reward("torque", _torque, {"weight": checked_number("weight", weight)}, limits=_cost, version=1)


def _torque(moment: Moment, *, weight: float) -> Array:
    cost: Array = -weight * np.sum(np.square(moment.actions), axis=1)
    return cost


def _cost(robot: Anatomy, *, weight: float) -> tuple[float, float]:
    most = weight * robot.n_actions
    return min(-most, 0.0), max(-most, 0.0)
