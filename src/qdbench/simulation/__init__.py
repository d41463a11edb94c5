"""Closed-loop simulation of many policies on `mujoco.batch`, spread over worker threads.

`evaluate` and `rollout` are what tasks call. A worker owns a thread, a Batch and a fixed number of
slots; workers draw solutions from one queue. Nothing an episode computes depends on its neighbours.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from qdbench.policy import Parameters
from qdbench.seeds import Seeds
from qdbench.simulation.native import quiet_and_single_threaded
from qdbench.simulation.slots import FORWARD, SURVIVE, TERMS, TORQUE, Slots
from qdbench.tasks.contract import Evaluation, Progress
from qdbench.tasks.robot_task import RobotTask

DEFAULT_SLOTS = 128
"""Enough to hide Python's overhead, few enough for the policies to stay in the cache."""

_POLL_SECONDS = 0.1  # how often progress is reported and Ctrl-C is seen


def evaluate(
    task: RobotTask,
    solutions: Parameters,
    seeds: Seeds,
    *,
    workers: int,
    slots: int | None = None,
    progress: Progress | None = None,
    record_controls: NDArray[np.float32] | None = None,
) -> Evaluation:
    """Evaluate checked solutions; see `RobotTask.evaluate`.

    `record_controls`, (n, episode_length, actions), receives every action, for the benchmark's replay.
    """
    job = _Job(task, solutions, seeds, record_controls)
    with quiet_and_single_threaded(), ThreadPoolExecutor(workers) as pool:
        try:
            shares = _share(len(solutions), workers, slots or DEFAULT_SLOTS)
            futures = [pool.submit(job.work, n) for n in shares]
            waiting = True
            while waiting:
                done, pending = wait(futures, timeout=_POLL_SECONDS, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                waiting = bool(pending)
                if progress is not None:
                    progress(job.n_done, len(solutions))
        finally:
            job.stop.set()
    return job.evaluation


def _share(n: int, workers: int, slots: int) -> list[int]:
    """Return each worker's number of slots: equal rounds, so that no worker is left with the rest."""
    if n == 0:
        return []
    rounds = -(-n // (workers * slots))
    busy = min(workers, n)
    return [-(-n // (busy * rounds))] * busy


class _Job:
    """One call of `evaluate`: the queue its workers draw from and the arrays they fill."""

    def __init__(
        self,
        task: RobotTask,
        solutions: Parameters,
        seeds: Seeds,
        record_controls: NDArray[np.float32] | None,
    ) -> None:
        n = len(solutions)
        self.task, self.solutions, self.seeds = task, solutions, seeds
        self.controls = record_controls
        self.stop = threading.Event()
        self.queue = deque(range(n))  # popleft is atomic
        self.terms = np.full((n, len(TERMS)), np.nan)
        self.evaluation = Evaluation(
            fitness=np.full(n, np.nan),
            descriptors=np.full((n, len(task.cells)), np.nan),
            steps=np.zeros(n, np.int64),
            valid=np.zeros(n, np.bool_),
            terms={name: self.terms[:, i] for i, name in enumerate(TERMS)},
        )

    @property
    def n_done(self) -> int:
        return int(np.count_nonzero(self.evaluation.steps))

    def work(self, n_slots: int) -> None:
        """Keep the slots busy until the queue is empty and the last episode has ended."""
        slots = Slots(self.task, n_slots)
        fresh = self.draw(n_slots)
        slots.n_active = len(fresh)
        self.load(slots, list(range(len(fresh))), fresh)
        while slots.n_active and not self.stop.is_set():
            ended = slots.step()
            if self.controls is not None:
                busy = slice(slots.n_active)
                self.controls[slots.solution[busy], slots.steps[busy] - 1] = slots.actions[busy]
            if len(ended):
                self.collect(slots, ended)
                fresh = self.draw(len(ended))
                self.load(slots, list(ended[: len(fresh)]), fresh)
                for slot in reversed(ended[len(fresh) :]):
                    slots.release(int(slot))

    def draw(self, n: int) -> list[int]:
        drawn: list[int] = []
        try:
            while len(drawn) < n:
                drawn.append(self.queue.popleft())
        except IndexError:
            pass
        return drawn

    def load(self, slots: Slots, where: list[int], drawn: list[int]) -> None:
        if drawn:
            slots.load(where, drawn, self.solutions[drawn], [int(seed) for seed in self.seeds[drawn]])

    def collect(self, slots: Slots, ended: NDArray[np.intp]) -> None:
        """Write the results of episodes that ended; a diverged one keeps its NaN."""
        self.evaluation.steps[slots.solution[ended]] = slots.steps[ended]
        ended = ended[~slots.diverged()[ended]]
        if len(ended):
            rows, terms = slots.solution[ended], slots.terms[ended]
            self.terms[rows] = terms
            self.evaluation.fitness[rows] = terms[:, FORWARD] + terms[:, SURVIVE] - terms[:, TORQUE]
            self.evaluation.descriptors[rows] = slots.descriptors(ended)
            self.evaluation.valid[rows] = True


@dataclass(frozen=True, eq=False)
class Episode:
    """One episode, step by step: what a plot or a viewer needs.

    Arrays of `steps` + 1 rows begin with the start; arrays of `steps` rows have one row per action.
    """

    fitness: float
    descriptor: NDArray[np.float64]  #: (dimensions,)
    steps: int
    valid: bool
    time: NDArray[np.float64]  #: (steps + 1,) seconds
    qpos: NDArray[np.float64]  #: (steps + 1, nq)
    qvel: NDArray[np.float64]  #: (steps + 1, nv)
    body_names: tuple[str, ...]  #: without the world
    body_positions: NDArray[np.float64]  #: (steps + 1, bodies, 3) metres
    body_orientations: NDArray[np.float64]  #: (steps + 1, bodies, 4) unit quaternions, w first
    centre_of_mass: NDArray[np.float64]  #: (steps + 1, 3)
    observations: NDArray[np.float32]  #: (steps, observations)
    actions: NDArray[np.float32]  #: (steps, actions)
    contacts: NDArray[np.bool_]  #: (steps, feet)
    terms: Mapping[str, NDArray[np.float64]]
    """The parts of each step's reward, (steps,); summed in order they give those of `evaluate`.

    Where the simulation diverged, the last row is NaN, here and in the state and the bodies."""


def rollout(task: RobotTask, solution: Parameters, seeds: Seeds) -> Episode:
    """Record the episode of one checked solution, (1, parameters); see `RobotTask.rollout`."""
    with quiet_and_single_threaded():
        slots = Slots(task, 1)
        slots.load([0], [0], solution, [int(seeds[0])])
        slots.n_active = 1
        starts, steps = [_copies(slots.state.qpos, slots.state.qvel)], []
        ended = False
        while not ended:
            seen = slots.observations[0].copy()
            ended = bool(len(slots.step()))
            steps.append((seen, *_copies(slots.actions, task.contacts(slots.state), slots.rewards)))
            starts.append(_copies(slots.state.qpos, slots.state.qvel))
        valid = not slots.diverged()[0]
        descriptor = slots.descriptors(np.array([0]))[0] if valid else np.full(len(task.cells), np.nan)
        qpos, qvel = (np.stack(column) for column in zip(*starts, strict=True))
        observations, actions, contacts, rewards = (np.stack(column) for column in zip(*steps, strict=True))
        positions, orientations, centre_of_mass = _kinematics(task, qpos)
    if not valid:  # what MuJoCo left behind after its reset is not an outcome
        for rows in (qpos, qvel, rewards, positions, orientations, centre_of_mass):
            rows[-1] = np.nan
    forward, survive, torque = slots.terms[0]
    return Episode(
        fitness=float(forward + survive - torque) if valid else np.nan,
        descriptor=descriptor,
        steps=len(actions),
        valid=valid,
        time=np.arange(len(qpos), dtype=np.float64) * task.robot.control_step,
        qpos=qpos,
        qvel=qvel,
        body_names=tuple(slots.robot.model.body(i + 1).name for i in range(slots.robot.n_bodies)),
        body_positions=positions,
        body_orientations=orientations,
        centre_of_mass=centre_of_mass,
        observations=observations,
        actions=actions.astype(np.float32),
        contacts=contacts,
        terms={name: rewards[:, i] for i, name in enumerate(TERMS)},
    )


def _copies(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return copies of the first slot's rows: the arrays themselves change with the next step."""
    return tuple(array[0].copy() for array in arrays)


def _kinematics(task: RobotTask, qpos: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return where bodies and centre of mass were at every recorded configuration."""
    anatomy = task.robot.anatomy
    data = mujoco.MjData(anatomy.model)
    frames = []
    for data.qpos[:] in qpos:
        mujoco.mj_kinematics(anatomy.model, data)
        mujoco.mj_comPos(anatomy.model, data)
        frames.append(
            (data.xpos[1:].copy(), data.xquat[1:].copy(), data.subtree_com[anatomy.root_body].copy())
        )
    return tuple(np.stack(column) for column in zip(*frames, strict=True))
