"""The state of a batch of simulations, as terms see it.

`qpos` and `qvel` are current. All other fields are those that MuJoCo computed at the start of the last
physics step (Gymnasium's MuJoCo tasks read them at the same time).
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import BrokenTask

Array = NDArray[np.float64]


class State(NamedTuple):
    """The state of a batch of robots, one row each. Only fields that a term demands can be read."""

    qpos: Array  #: (batch, nq)
    qvel: Array  #: (batch, nv)
    sensordata: Array  #: (batch, n) of the sensors in the MJCF, followed by those of the feet
    subtree_com: Array  #: (batch, bodies + 1, 3) centre of mass of each body and all bodies it carries
    subtree_linvel: Array  #: (batch, bodies + 1, 3) velocity of that centre of mass
    xpos: Array  #: (batch, bodies + 1, 3) position of each body
    xquat: Array  #: (batch, bodies + 1, 4) orientation of each body
    site_xpos: Array  #: (batch, sites, 3)
    cfrc_ext: Array  #: (batch, bodies + 1, 6) contact torque and force on each body
    cinert: Array  #: (batch, bodies + 1, 10) inertia about the centre of mass
    cvel: Array  #: (batch, bodies + 1, 6) angular and linear velocity
    actuator_force: Array  #: (batch, actions)

    def rows(self, index: slice | NDArray[np.integer[Any]]) -> State:
        """Return the state of some of the robots: views for a slice, copies for an array of indices."""
        fields: tuple[Any, ...] = self
        return State._make(field if type(field) is NotRead else field[index] for field in fields)


ALWAYS_READ = frozenset({"qpos", "qvel", "sensordata"})
"""The fields that every term may read without a demand."""

POSITIONS = frozenset({"subtree_com", "xpos", "xquat", "site_xpos"})
"""The fields that depend on qpos alone; a descriptor gets them for the final qpos."""


class NotRead:
    """Stands for a field that no term demands: reading it is an error, not a silent 0."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_: Any) -> NoReturn:
        raise BrokenTask(
            f"a term reads state.{self._name} without demanding it; add demands=({self._name!r},)"
        )

    __getitem__ = __array__ = __len__ = _refuse
