"""Run a policy that `qdbench export --to npz` wrote, with NumPy and MuJoCo alone: qdbench is not needed.

    python examples/exported_policy.py policy.npz

It repeats the episode in which the policy was found, and prints its fitness and descriptor beside the stored
ones. The nine tasks of the suite run with it; a task of your own needs its blocks and rewards added.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mujoco
import numpy as np


class Robot:
    """The robot of an exported policy in plain MuJoCo."""

    def __init__(self, file: Any) -> None:
        self.facts = json.loads(str(file["facts"]))
        self.model = mujoco.MjModel.from_xml_string(str(file["mjcf"]))
        self.data = mujoco.MjData(self.model)
        robot = self.facts["robot"]
        self.planar = robot["root"] == "planar"
        self.root_q, self.root_v = (3, 3) if self.planar else (7, 6)
        self.body = self.model.body(robot["root_body"]).id
        self.force_limits = np.array([actuator["force_limit"] for actuator in self.facts["actions"]])
        weight, height = robot["weight"], robot["standing_height"]
        self.wrench_scale = np.array([1 / (weight * height)] * 3 + [1 / weight] * 3)

    def reset(self, seed: int) -> None:
        """Start the episode of this seed: the keyframe, with noise on joint angles and velocities."""
        mujoco.mj_resetDataKeyframe(self.model, self.data, self.model.key(self.facts["robot"]["start"]).id)
        n = self.model.nq - self.root_q
        key = np.array([seed, int.from_bytes(b"qdbench", "big")], np.uint64)
        uniform = np.random.Generator(np.random.Philox(key=key)).random(2 * n)
        noise = self.facts["task"]["options"]["reset_noise"] * (2 * uniform - 1)
        self.data.qpos[self.root_q :] += noise[:n]
        self.data.qvel[self.root_v :] += noise[n:]
        mujoco.mj_forward(self.model, self.data)

    def observation(self) -> Any:
        """Return what the policy observes: every block's values times its factor, in float32."""
        parts = []
        for block in self.facts["observation"]:
            values = np.ravel(self.block(block["name"])).astype(np.float32)
            parts.append(values * np.float32(block["factor"]))
        return np.concatenate(parts)

    def block(self, name: str) -> Any:
        """Return the values of a block, in its unit."""
        d, q, v, planar = self.data, self.data.qpos, self.data.qvel, self.planar
        if name == "height":
            return q[1] if planar else q[2]
        if name == "position":
            return [q[0], 0, q[1]] if planar else q[:3]
        if name == "orientation":
            quaternion = [np.cos(q[2] / 2), 0, np.sin(q[2] / 2), 0] if planar else q[3:7]
            return np.array(quaternion) * (-1 if quaternion[0] < 0 else 1)
        if name == "joint angles":
            return q[self.root_q :]
        if name == "velocity":
            return [v[0], 0, v[1]] if planar else v[:3]
        if name == "angular velocity":
            return [0, v[2], 0] if planar else v[3:6]
        if name == "joint velocities":
            return v[self.root_v :]
        # the rest is of the state before the last mj_step: MuJoCo computed it when that step began
        if name == "velocity of the centre of mass":
            return d.subtree_linvel[self.body]
        if name == "contact wrenches":
            return np.clip(d.cfrc_ext * self.wrench_scale, -1, 1)
        if name == "body inertias":
            return d.cinert[1:][:, [0, 3, 4, 3, 1, 5, 4, 5, 2]]  # of xx yy zz xy xz yz
        if name == "body velocities":
            return d.cvel[1:]
        if name == "actuator forces":
            return d.actuator_force / self.force_limits
        raise SystemExit(f"no block {name!r}: add its formula here")

    def step(self, action: Any) -> dict[str, float]:
        """Do one control step; return what it earned, by reward."""
        before = {reward["name"]: self.x(reward) for reward in self.facts["rewards"]}
        self.data.ctrl[:] = action
        for _ in range(self.facts["robot"]["physics_steps"]):
            mujoco.mj_step(self.model, self.data)
        earned = {}
        for reward in self.facts["rewards"]:
            name, numbers = reward["name"], reward["parameters"]
            if name == "forward":
                speed = (self.x(reward) - before[name]) / self.facts["robot"]["control_step"]
                earned[name] = numbers["weight"] * speed
            elif name == "survive":
                earned[name] = numbers["bonus"]
            else:
                earned[name] = -numbers["weight"] * float(np.sum(np.square(action.astype(np.float64))))
        return earned

    def x(self, reward: dict[str, Any]) -> float:
        """Return the position along x that the forward reward is about."""
        of_root = reward["parameters"].get("of") == "root"
        return float(self.data.qpos[0] if of_root else self.data.subtree_com[self.body, 0])

    def is_over(self) -> bool:
        """Return whether the robot has fallen."""
        limits, q = self.facts["ending"]["parameters"], self.data.qpos
        if not limits:
            return False
        height, high = q[1] if self.planar else q[2], limits["high"]
        upright = np.cos(q[2]) if self.planar else 1 - 2 * (q[4] ** 2 + q[5] ** 2)
        leans = "tilt" in limits and upright < np.cos(np.radians(limits["tilt"]))
        return not (height > limits["low"] and (high is None or height < high)) or bool(leans)

    def loaded_feet(self) -> Any:
        """Return for every foot whether the floor pushes against it."""
        feet = self.facts["robot"]["feet"]
        return np.array([self.data.sensor(f"qdbench foot {foot}").data[2] > 0 for foot in feet])

    def position(self) -> Any:
        """Return x and y of the centre of mass, for the current state."""
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        return self.data.subtree_com[self.body, :2]


def act(file: Any, observation: Any, elite: int = 0) -> Any:
    """Return the actions: two hidden layers with ReLU, tanh at the end."""
    x, n_layers = observation[None], sum(name.startswith("weights_") for name in file.files)
    for i in range(n_layers):
        x = x @ file[f"weights_{i}"][elite] + file[f"biases_{i}"][elite]
        x = np.tanh(x) if i == n_layers - 1 else np.maximum(x, 0)
    return x[0]


def episode(file: Any, elite: int = 0) -> tuple[float, Any]:
    """Return fitness and descriptor of the episode in which the policy was found."""
    robot = Robot(file)
    robot.reset(int(file["seeds"][elite, 0]))
    length = robot.facts["task"]["options"]["episode_length"]
    sums = {reward["name"]: 0.0 for reward in robot.facts["rewards"]}
    contacts, steps = np.zeros(len(robot.facts["robot"]["feet"])), 0
    for _ in range(length):
        for name, earned in robot.step(act(file, robot.observation(), elite)).items():
            sums[name] += earned
        contacts += robot.loaded_feet()
        steps += 1
        if robot.is_over():
            break
    descriptor = robot.facts["descriptor"]
    if descriptor["name"] == "final position":
        return sum(sums.values()), robot.position()
    return sum(sums.values()), contacts / (length if descriptor["parameters"]["over"] == "episode" else steps)


if __name__ == "__main__":
    exported = np.load(sys.argv[1], allow_pickle=False)
    fitness, descriptor = episode(exported)
    print(f"fitness {fitness!r}, stored {float(exported['fitness'][0])!r}")
    print(f"descriptor {descriptor.tolist()}, stored {exported['descriptors'][0].tolist()}")
