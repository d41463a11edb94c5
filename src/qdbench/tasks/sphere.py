"""The sphere function with a linear projection, a common toy problem: no robot, no noise, fast.

    qdbench run qdbench.tasks.sphere:task --evaluations 100000

After Fontaine, Togelius, Nikolaidis and Hoover (2020, "Covariance matrix adaptation for the rapid
illumination of behavior space"), in 100 dimensions. The fitness is 100 at the centre of the sphere, 0.4 ×
5.12 in every dimension, and 0 in the farthest corner of the box ±5.12. The descriptor is the sum of each half
of the parameters; a parameter x outside the box counts as 5.12 / x. The sum of many random numbers is rarely
far from zero, so the outer cells are hard to reach.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdbench.tasks.function_task import FunctionTask

N_PARAMETERS = 100
EDGE = 5.12
CENTRE = 0.4 * EDGE
WORST = N_PARAMETERS * (EDGE + CENTRE) ** 2


def sphere(solutions: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return fitness (n,) and descriptors (n, 2)."""
    x = solutions.astype(np.float64)
    fitness = 100 * (1 - np.square(x - CENTRE).sum(axis=1) / WORST)
    outside = np.abs(x) > EDGE
    x[outside] = EDGE / x[outside]
    return fitness, x.reshape(len(x), 2, -1).sum(axis=2)


task = FunctionTask(
    name="sphere",
    version=1,
    function=sphere,
    truth=sphere,
    n_parameters=N_PARAMETERS,
    descriptor_bounds=((-EDGE * N_PARAMETERS / 2, EDGE * N_PARAMETERS / 2),) * 2,
    cells=(100, 100),
    fitness_bounds=(0.0, 100.0),
    initial_bounds=(-EDGE, EDGE),
    reachable=1.0,
)
