"""A robot as it is stepped: what can touch the floor is listed beforehand, so MuJoCo need not search for it.

MuJoCo's search finds the same contacts, in the same order and with the same parameters, but takes up to a
quarter of a step. So results are the same, bit for bit (tests/test_contact_pairs.py).
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


def with_contact_pairs(spec: mujoco.MjSpec, model: mujoco.MjModel, floor: str | None) -> mujoco.MjModel:
    """Return a model that steps like this one, which the specification compiled to.

    It is the model itself unless floor and robot are all that can touch, with contacts that all have the same
    softness. Else the specification is changed.
    """
    if floor is None or not _lists_all_contacts(model, ground := model.geom(floor).id):
        return model
    names = {}
    for geom in spec.geoms:
        names[geom.id] = geom.name = geom.name or f"qdbench geom {geom.id}"
        geom.contype = geom.conaffinity = 0  # no search
    for other in np.flatnonzero(_touching(model)[ground]).tolist():
        sliding, torsional, rolling = np.maximum(model.geom_friction[ground], model.geom_friction[other])
        spec.add_pair(
            geomname1=floor,
            geomname2=names[other],
            condim=max(model.geom_condim[ground], model.geom_condim[other]),
            friction=[sliding, sliding, torsional, rolling, rolling],
            solref=model.geom_solref[ground],
            solimp=model.geom_solimp[ground],
        )
    return spec.compile()


def _lists_all_contacts(model: mujoco.MjModel, ground: int) -> bool:
    """Return whether every contact is one of the plane `ground`, with parameters that need no mixing."""
    touching = _touching(model)
    apart = np.delete(np.delete(touching, ground, axis=0), ground, axis=1)
    others = touching[ground]
    alike = all(
        (of_geom[others] == of_geom[ground]).all()
        for of_geom in (model.geom_priority, model.geom_solmix, model.geom_solref, model.geom_solimp)
    )
    rare = (model.geom_margin, model.geom_gap, model.geom_adhesion, model.geom_surfacevel)
    other_rules = model.npair or model.nexclude or model.nflex or any(of_geom.any() for of_geom in rare)
    fixed = model.body_weldid[model.geom_bodyid] == 0
    return (
        model.geom_type[ground] == _PLANE
        and fixed[ground]
        and not (other_rules or apart.any() or fixed[others].any())
        and alike
    )


def _touching(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return which geoms may touch which, by MuJoCo's rule for their types and affinities: (geoms, geoms)."""
    one_way = (model.geom_contype[:, None] & model.geom_conaffinity[None, :]) != 0
    found: NDArray[np.bool_] = (one_way | one_way.T) & ~np.eye(model.ngeom, dtype=bool)
    return found
