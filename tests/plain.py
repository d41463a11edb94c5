"""One episode on one MjData with plain `mj_step`, written from the task's definition alone.

Nothing here uses the package's observation, reward, contact or simulation code: what it shares with
them is the record of facts (weights, names, times) and the MJCF.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import mujoco
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from qdbench import RobotTask

SCALES: dict[str, dict[str, float]] = {
    "hopper": {"joint velocities": 0.5},
    "walker": {"joint velocities": 0.1},
    "halfcheetah": {"joint angles": 2.0, "joint velocities": 0.2},
    "ant": {"velocity": 5.0, "spin": 2.0, "wrenches": 5.0},
    "humanoid": {"joint velocities": 0.5, "wrenches": 10.0},
    "hexapod": {"position": 5.0, "velocity": 20.0, "spin": 5.0, "joint velocities": 5.0, "wrenches": 20.0},
}
"""By what a robot's observations are multiplied, where not by 1."""

Array = NDArray[np.float64]
Controller = Callable[["Plain"], NDArray[np.floating]]


@dataclass
class Plain:
    """A robot on one MjData, and what its episode has added up to so far."""

    task: RobotTask
    seed: int
    steps: int = 0
    forward: float = 0.0
    survive: float = 0.0
    torque: float = 0.0
    contacts: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        robot = self.task.robot
        self.model = mujoco.MjModel.from_xml_string(robot.mjcf)
        self.model.opt.timestep = robot.control_step / robot.physics_steps
        if robot.exact_contacts:
            for solref in (*self.model.geom_solref, *self.model.jnt_solref):
                solref[:] = critically_damped(solref, self.model.opt.timestep)
        self.data = mujoco.MjData(self.model)
        self.planar = self.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_SLIDE
        self.nq, self.nv = (3, 3) if self.planar else (7, 6)  # of the root
        mujoco.mj_resetDataKeyframe(self.model, self.data, self.model.key("start").id)
        key = np.array([self.seed, int.from_bytes(b"qdbench", "big")], np.uint64)
        joints = self.model.nq - self.nq
        noise = 2 * np.random.Generator(np.random.Philox(key=key)).random(2 * joints) - 1
        self.data.qpos[self.nq :] += self.task.reset_noise * noise[:joints]
        self.data.qvel[self.nv :] += self.task.reset_noise * noise[joints:]
        mujoco.mj_forward(self.model, self.data)
        self.contacts = np.zeros(len(robot.feet))
        self.weights = {reward.name: reward.parameters for reward in self.task.rewards}

    @property
    def q(self) -> Array:
        return np.array(self.data.qpos[self.nq :])

    @property
    def qd(self) -> Array:
        return np.array(self.data.qvel[self.nv :])

    @property
    def time(self) -> float:
        return self.steps * self.task.robot.control_step

    @property
    def height(self) -> float:
        return float(self.data.qpos[1 if self.planar else 2])

    @property
    def com(self) -> Array:
        return np.array(self.data.subtree_com[1])

    def x(self) -> float:
        return float(self.com[0] if self.weights["forward"]["of"] == "com" else self.data.qpos[0])

    def foot_is_loaded(self, foot: str) -> bool:
        names = [self.model.geom(i).name for i in range(self.model.ngeom)]
        bodies = [self.model.body(i).name for i in self.model.geom_bodyid]
        of_foot = names if foot in names else bodies  # a foot is a geom, or else all geoms of a body
        normal, force = 0.0, np.zeros(6)
        for i, (one, other) in enumerate(self.data.contact.geom):
            if {"floor"} < {names[one], names[other]} and foot in (of_foot[one], of_foot[other]):
                mujoco.mj_contactForce(self.model, self.data, i, force)
                normal += force[0]
        return normal > 0

    def observation(self) -> NDArray[np.float32]:
        d = self.data
        parts: list[NDArray[np.float32]] = []
        if self.planar:
            half = d.qpos[2:3] / 2
            quaternion = np.array([np.cos(half)[0], 0, np.sin(half)[0], 0])
            position = np.array([d.qpos[0], 0, d.qpos[1]])
            velocity, spin = np.array([d.qvel[0], 0, d.qvel[1]]), np.array([0, d.qvel[2], 0])
        else:
            quaternion, position = np.array(d.qpos[3:7]), np.array(d.qpos[:3])
            velocity, spin = np.array(d.qvel[:3]), np.array(d.qvel[3:6])
        quaternion *= -1 if quaternion[0] < 0 else 1
        name = self.task.robot.name
        scale = {part: np.float32(factor) for part, factor in SCALES[name].items()}

        def add(part: str, values: Array) -> None:
            parts.append(values.ravel().astype(np.float32) * scale.get(part, np.float32(1)))

        add("position", position if name == "hexapod" else position[2:])
        add("orientation", quaternion)
        add("joint angles", self.q)
        add("velocity", velocity)
        if name not in ("hopper", "walker"):
            add("spin", spin)
        add("joint velocities", self.qd)
        if name == "halfcheetah":
            mujoco.mj_subtreeVel(self.model, d)
            add("centre of mass", np.array(d.subtree_linvel[1]))
        if name == "humanoid":
            for xx, yy, zz, xy, xz, yz in d.cinert[1:, :6]:
                add("inertia", np.array([xx, xy, xz, xy, yy, yz, xz, yz, zz]))
            add("body velocities", np.array(d.cvel[1:]))
            add("forces", np.array(d.actuator_force))
        if name in ("ant", "humanoid", "hexapod"):
            mujoco.mj_rnePostConstraint(self.model, d)
            weight = self.model.body_mass.sum() * np.linalg.norm(self.model.opt.gravity)
            torques = d.cfrc_ext[:, :3] * (1 / (weight * self.model.key_qpos[0, 2]))
            forces = d.cfrc_ext[:, 3:] * (1 / weight)
            add("wrenches", np.clip(np.concatenate([torques, forces], axis=1), -1, 1))
        return np.concatenate(parts)

    def live(self, action: NDArray[np.floating]) -> bool:
        """Do one control step; return whether the episode goes on."""
        task, weights = self.task, self.weights
        before = self.x() if "forward" in weights else 0.0
        self.data.ctrl[:] = action
        for _ in range(task.robot.physics_steps):
            mujoco.mj_step(self.model, self.data)
        self.steps += 1
        if "forward" in weights:
            self.forward += weights["forward"]["weight"] * (self.x() - before) / task.robot.control_step
        if "survive" in weights:
            self.survive += weights["survive"]["bonus"]
        self.torque -= weights["torque"]["weight"] * np.sum(np.asarray(action, np.float64) ** 2)
        self.contacts += [self.foot_is_loaded(foot) for foot in task.robot.feet]
        low, high = task.ending.parameters.get("low", -np.inf), task.ending.parameters.get("high", np.inf)
        upright = self.leaning <= task.ending.parameters.get("tilt", 180.0)
        return bool(low < self.height < high and upright and self.steps < task.episode_length)

    @property
    def leaning(self) -> float:
        """By how many degrees the root's z axis leans."""
        if self.planar:
            return abs(math.degrees(math.remainder(self.data.qpos[2], 2 * math.pi)))
        axis = np.zeros(3)
        mujoco.mju_rotVecQuat(axis, np.array([0.0, 0.0, 1.0]), self.data.qpos[3:7])
        return math.degrees(math.acos(min(1.0, axis[2] / np.linalg.norm(axis))))

    @property
    def fitness(self) -> float:
        return self.forward + self.survive + self.torque

    @property
    def descriptor(self) -> Array:
        if self.task.descriptor.name == "feet contacts":
            return self.contacts / self.task.episode_length
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        return self.com[:2]


def critically_damped(solref: Array, step: float) -> tuple[float, float]:
    """Stiffness and damping (negative, as MJCF has them) with which a depth decays as in continuous time."""
    time_constant, damping_ratio = solref
    assert damping_ratio == 1
    b = 2 / time_constant
    over_one_step, root = math.exp(-b * step), math.exp(-b * step / 2)
    return -(1 + over_one_step - 2 * root) / step**2, -(1 - over_one_step) / step


def perceptron(task: RobotTask, solution: NDArray[np.float32]) -> Controller:
    """The 64-64 network as the docs define it: per layer weights (inputs, outputs), then biases."""
    layers, rest = [], solution
    for n_in, n_out in pairwise(task.policy.sizes):
        weights, biases, rest = np.split(rest, [n_in * n_out, (n_in + 1) * n_out])
        layers.append((np.ascontiguousarray(weights.reshape(n_in, n_out)), biases))

    def act(robot: Plain) -> NDArray[np.float32]:
        x = robot.observation()[None]
        for weights, biases in layers[:-1]:
            x = np.maximum(x @ weights + biases, 0)
        weights, biases = layers[-1]
        return np.asarray(np.tanh(x @ weights + biases)[0])

    return act


def live_episode(task: RobotTask, controller: Controller, seed: int) -> Plain:
    """Return the robot at the end of its episode."""
    robot = Plain(task, seed)
    with threadpool_limits(1, user_api="blas"):
        while robot.live(controller(robot)):
            pass
    return robot
