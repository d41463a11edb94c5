"""What a task sees of a batch of simulations after a control step.

`qpos` and `qvel` are current; everything else is as of the last physics step, the step whose
forces brought the robot to where it is (Gymnasium's MuJoCo tasks read it at the same moment).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class State(NamedTuple):
    """A batch of robots, one row each. A field that the task does not need has rows of length 0."""

    qpos: Array  #: (batch, nq)
    qvel: Array  #: (batch, nv)
    sensordata: Array  #: (batch, n)
    subtree_com: Array  #: (batch, bodies + 1, 3)
    cfrc_ext: Array  #: (batch, bodies + 1, 6) contact torque and force on each body
    cinert: Array  #: (batch, bodies + 1, 10) inertia about the centre of mass
    cvel: Array  #: (batch, bodies + 1, 6) angular and linear velocity
    actuator_force: Array  #: (batch, actions)

    def rows(self, index: slice | NDArray[np.integer[Any]]) -> State:
        """Return the state of some of the robots: views for a slice, copies for a list."""
        return State(*(field[index] for field in self))


ALWAYS_READ = ("qpos", "qvel", "sensordata", "subtree_com")
"""The fields every task needs; an observation's blocks name the others."""
