"""The terms of robot tasks, and the records for your own terms: `from qdbench import terms`.

A `RobotTask` names its terms: what the policy observes (blocks), what a control step earns (rewards), how
behaviour is described (descriptor), when an episode ends early (ending), and where it starts (reset).
A term without parameters is a constant; a term with parameters is a function that returns it. Your own term
is a record around a function: docs/own-tasks.md shows how.
"""

from qdbench.tasks.descriptors import FEET_CONTACTS, FINAL_POSITION
from qdbench.tasks.endings import NEVER, healthy
from qdbench.tasks.observation import (
    ACTUATOR_FORCES,
    ANGULAR_VELOCITY,
    BODY_INERTIAS,
    BODY_VELOCITIES,
    COM_VELOCITY,
    CONTACT_WRENCHES,
    HEIGHT,
    JOINT_ANGLES,
    JOINT_VELOCITIES,
    ORIENTATION,
    POSITION,
    VELOCITY,
)
from qdbench.tasks.resets import JOINT_NOISE
from qdbench.tasks.rewards import forward, survive, torque
from qdbench.tasks.state import State
from qdbench.tasks.terms import Block, Descriptor, Ended, Ending, Moment, Reset, Reward

__all__ = [
    "ACTUATOR_FORCES",
    "ANGULAR_VELOCITY",
    "BODY_INERTIAS",
    "BODY_VELOCITIES",
    "COM_VELOCITY",
    "CONTACT_WRENCHES",
    "FEET_CONTACTS",
    "FINAL_POSITION",
    "HEIGHT",
    "JOINT_ANGLES",
    "JOINT_NOISE",
    "JOINT_VELOCITIES",
    "NEVER",
    "ORIENTATION",
    "POSITION",
    "VELOCITY",
    "Block",
    "Descriptor",
    "Ended",
    "Ending",
    "Moment",
    "Reset",
    "Reward",
    "State",
    "forward",
    "healthy",
    "survive",
    "torque",
]
