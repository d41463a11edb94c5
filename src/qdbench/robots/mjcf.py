"""A robot's MJCF as it is simulated: one text that plain MuJoCo compiles to exactly the same model.

A robot's own MJCF leaves the timestep to the robot's record, and sensors to the task. Here both are written
into it. MuJoCo's own writer rounds numbers to six digits; this one changes only what must be changed.
"""

from __future__ import annotations

from collections.abc import Collection
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from qdbench.errors import BrokenTask
from qdbench.robots import Robot
from qdbench.robots.anatomy import compile_robot, foot_sensor, sampled

_SOLREF = {"geom": "solref", "joint": "solreflimit", "pair": "solref"}
_SOLREF |= dict.fromkeys(("tendon", "spatial", "fixed"), "solreflimit")
"""Which attribute holds the time constants of a contact or limit, by element."""
_MUJOCO_S_SOLREF = "0.02 1"
_SENSORS = {
    "cfrc_ext": ("framelinacc", {"objtype": "body", "objname": "world"}),
    "subtree_linvel": ("subtreelinvel", {"body": "world"}),
}


def complete_mjcf(robot: Robot, filled: Collection[str] = ()) -> str:
    """Return the MJCF with timestep, contacts and sensors as the simulation has them.

    The sensors of the feet are called `qdbench foot NAME`; the last of their three numbers is the load on the
    foot in newtons. A sensor for each field in `filled` makes MuJoCo compute this field.
    """
    try:
        root = ET.fromstring(robot.mjcf)
    except ET.ParseError as error:
        raise BrokenTask(f"robot {robot.name!r}: its MJCF is no XML: {error}") from None
    step = robot.control_step / robot.physics_steps
    if robot.exact_contacts:
        _exact_contacts(root, robot, step)
    ET.SubElement(root, "option", timestep=repr(step), jacobian="dense")  # a later section counts
    sensors = ET.SubElement(root, "sensor")
    geoms = {geom.get("name") for geom in root.iter("geom")}
    for foot in robot.feet:
        which = "geom2" if foot in geoms else "body2"
        parts = {"geom1": str(robot.floor), which: foot, "data": "force", "reduce": "netforce"}
        ET.SubElement(sensors, "contact", parts, name=foot_sensor(foot))
    for field in sorted(filled):
        element, of = _SENSORS[field]
        ET.SubElement(sensors, element, of, name=f"qdbench {field}")
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode") + "\n"
    if _bytes(mujoco.MjModel.from_xml_string(text)) != _bytes(compile_robot(robot, filled).model):
        raise BrokenTask(
            f"robot {robot.name!r}: no MJCF with its timestep and contacts compiles to the same model; give "
            "contacts and limits by solref and solreflimit of geoms and joints"
        )
    return text


def _exact_contacts(root: ET.Element, robot: Robot, step: float) -> None:
    """Replace all time constants, and MuJoCo's own, as `Robot.exact_contacts` says."""
    usual = ET.Element("default")  # before all others, which may say something else
    root.insert(0, usual)
    for kind in ("geom", "joint", "pair", "tendon"):
        ET.SubElement(usual, kind, {_SOLREF[kind]: _MUJOCO_S_SOLREF})
    for element in root.iter():
        name = _SOLREF.get(element.tag, "")
        solref = np.array(element.get(name, "-1 -1").split(), np.float64)
        if len(solref) == 2 and solref[0] > 0:
            element.set(name, " ".join(map(repr, sampled(robot, solref, step))))


def _bytes(model: mujoco.MjModel) -> bytes:
    """Return everything that a compiled model consists of, but limits of joints that have none."""
    model.jnt_solref[model.jnt_limited == 0] = 0
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()
