"""Contacts that are listed beforehand are exactly those that MuJoCo finds by itself."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from qdbench import stream
from qdbench.robots import ROBOTS, Robot
from qdbench.robots.anatomy import Anatomy

STEPS = 400


def dropped(anatomy: Anatomy, model: mujoco.MjModel, i: int) -> mujoco.MjData:
    """A robot in any pose, some way above the floor."""
    data, rng = mujoco.MjData(model), stream(0, "dropped", i)
    data.qpos[:] = anatomy.start_qpos
    data.qpos[anatomy.root_q :] += rng.normal(0, 0.5, model.nq - anatomy.root_q)
    if anatomy.planar:
        data.qpos[2] = rng.uniform(-np.pi, np.pi)
    else:
        data.qpos[3:7] = rng.normal(size=4)
    data.qvel[:] = rng.normal(0, 1, model.nv)
    return data


@pytest.mark.parametrize("name", ROBOTS)
def test_listed_contacts_are_those_that_mujoco_finds(name: str) -> None:
    """Robots fall on all their sides and struggle there: the same contacts in the same order, to the bit."""
    anatomy = ROBOTS[name].anatomy
    plain, listed = anatomy.model, anatomy.stepped_model
    floor = plain.geom("floor").id
    assert (plain.npair, listed.npair) == (0, (plain.geom_contype != 0).sum())
    assert not (listed.geom_contype | listed.geom_conaffinity).any()
    met, most = set(), 0
    for i in range(8):
        both = [dropped(anatomy, model, i) for model in (plain, listed)]
        actions = stream(1, "actions", i).uniform(-1, 1, (STEPS, plain.nu))
        for action in actions:
            for model, data in zip((plain, listed), both, strict=True):
                data.ctrl[:] = action
                mujoco.mj_step(model, data)
            one, other = both
            for field in ("qpos", "qvel", "sensordata", "cfrc_ext", "qfrc_constraint"):
                assert np.array_equal(getattr(one, field), getattr(other, field)), field
            for field in (
                "geom",
                "dist",
                "pos",
                "frame",
                "friction",
                "solref",
                "solimp",
                "includemargin",
                "dim",
            ):
                assert np.array_equal(getattr(one.contact, field), getattr(other.contact, field)), field
            met |= set(one.contact.geom.ravel().tolist()) - {floor}
            most = max(most, one.ncon)
    assert most >= 3
    assert len(met) > len(ROBOTS[name].feet)


BALLS = """
<mujoco>
  <worldbody>
    <geom name="floor" type="{floor}" size="9 9 1" friction="0.3" {of_floor}/>
    {more}
    <body name="torso" pos="0 0 3">
      <freejoint/>
      <geom size="0.1" contype="1" conaffinity="0" {of_ball}/>
      <body pos="0.5 0 0">
        <joint name="hinge"/>
        <geom name="foot" size="0.1" contype="1" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  {rules}
  <actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


def balls(**changed: str) -> Robot:
    parts = {"floor": "plane", "of_floor": "", "more": "", "of_ball": "", "rules": ""} | changed
    facts = replace(ROBOTS["ant"], name="balls", feet=("foot",), root="torso", floor="floor", start=None)
    return replace(facts, mjcf=BALLS.format(**parts))


def test_geoms_need_no_name_and_friction_is_the_larger_one() -> None:
    anatomy = balls(of_ball='friction="0.7 0.002 0.003" condim="6"').anatomy
    listed = anatomy.stepped_model
    assert listed.pair_geom1.tolist() == [0, 0]
    assert listed.pair_geom2.tolist() == [1, 2]
    assert listed.pair_dim.tolist() == [6, 3]
    assert listed.pair_friction[0].tolist() == [0.7, 0.7, 0.005, 0.003, 0.003]
    assert listed.pair_friction[1].tolist() == [1, 1, 0.005, 0.0001, 0.0001]
    assert anatomy.model.geom(1).name == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"floor": "box"},
        {"of_ball": 'margin="0.01"'},
        {"of_ball": 'gap="0.01" margin="0.02"'},
        {"of_ball": 'solref="0.05 1"'},
        {"of_ball": 'solimp="0.8 0.9 0.01"'},
        {"of_ball": 'priority="1"'},
        {"of_ball": 'solmix="0.3"'},
        {"of_ball": 'adhesion="0.1"'},
        {"of_ball": 'surfacevel="1 0 0 0 0 0"'},
        {"more": '<geom type="plane" size="9 9 1" quat="1 1 0 0"/>'},
        {"more": '<body><geom size="0.1" pos="3 0 0" contype="1" conaffinity="0"/></body>'},
        {"rules": '<contact><pair geom1="floor" geom2="foot"/></contact>'},
        {"rules": '<contact><exclude body1="world" body2="torso"/></contact>'},
    ],
    ids=str,
)
def test_other_robots_are_left_to_mujoco(changed: dict[str, str]) -> None:
    anatomy = balls(**changed).anatomy
    assert anatomy.stepped_model is anatomy.model


def test_a_robot_that_meets_itself_is_left_to_mujoco() -> None:
    robot = replace(balls(), mjcf=balls().mjcf.replace('conaffinity="0"', 'conaffinity="1"'))
    assert robot.anatomy.stepped_model is robot.anatomy.model


def test_a_robot_without_a_floor_is_left_to_mujoco() -> None:
    robot = replace(balls(), feet=(), floor=None)
    assert robot.anatomy.stepped_model is robot.anatomy.model
