"""The evaluation loop: solutions are evaluated by several worker threads.

Each worker has a thread, an engine and a fixed number of slots. All workers take solutions from one queue. An
episode that ends gives its slot to the next solution immediately. If the queue is empty, the episode in the
last busy slot moves there. An episode does not depend on its neighbours.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray

from qdbench.checks import usable
from qdbench.policy import Parameters
from qdbench.robots.anatomy import Anatomy
from qdbench.seeds import Seeds
from qdbench.simulation.bodies import Bodies, Minds, Step
from qdbench.simulation.engine import Engine, MujocoEngine, Slots
from qdbench.simulation.native import quiet_and_single_threaded
from qdbench.simulation.recorders import Recorder
from qdbench.tasks.contract import Evaluations, Progress
from qdbench.tasks.robot_task import RobotTask

DEFAULT_SLOTS = 128
"""Enough to hide Python's overhead, few enough to keep the policies in the cache."""

_POLL_SECONDS = 0.1  # how often progress is reported and Ctrl-C is noticed

MakeEngine = Callable[[Anatomy, Collection[str], int], Engine]


def evaluate(
    task: RobotTask,
    solutions: Parameters,
    seeds: Seeds,
    *,
    workers: int,
    slots: int | None = None,
    progress: Progress | None = None,
    recorder: Recorder | None = None,
    engine: MakeEngine = MujocoEngine,
) -> Evaluations:
    """Evaluate checked solutions; see `RobotTask.evaluate`.

    `engine` makes an engine from the compiled robot, the fields of the state that are read, and the number of
    slots.
    """
    job = _Job(task, solutions, seeds, recorder, engine)
    if recorder is not None:
        recorder.begin(task, len(solutions))
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
    """Return the number of slots of each worker: equal rounds, so that no worker has to wait."""
    if n == 0:
        return []
    rounds = -(-n // (workers * slots))
    busy = min(workers, n)
    return [-(-n // (busy * rounds))] * busy


class _Job:
    """One call of `evaluate`: the queue of solutions and the arrays of results."""

    def __init__(
        self,
        task: RobotTask,
        solutions: Parameters,
        seeds: Seeds,
        recorder: Recorder | None,
        engine: MakeEngine,
    ) -> None:
        n = len(solutions)
        self.task, self.solutions, self.seeds, self.recorder = task, solutions, seeds, recorder
        self.engine = engine
        self.stop = threading.Event()
        self.queue = deque(range(n))  # popleft is atomic
        self.terms = np.full((n, len(task.rewards)), np.nan)
        self.evaluation = Evaluations(
            fitness=np.full(n, np.nan),
            descriptors=np.full((n, len(task.cells)), np.nan),
            steps=np.zeros(n, np.int64),
            valid=np.zeros(n, np.bool_),
            terms={reward.name: self.terms[:, i] for i, reward in enumerate(task.rewards)},
        )

    @property
    def n_done(self) -> int:
        return int(np.count_nonzero(self.evaluation.steps))

    def work(self, n_slots: int) -> None:
        worker = _Worker(self, n_slots)
        worker.begin(n_slots)
        while worker.n_busy and not self.stop.is_set():
            worker.step()

    def draw(self, n: int) -> NDArray[np.intp]:
        drawn: list[int] = []
        try:
            while len(drawn) < n:
                drawn.append(self.queue.popleft())
        except IndexError:
            pass
        return np.array(drawn, np.intp)


class _Worker:
    """The slots of one thread, and the solution in each."""

    def __init__(self, job: _Job, n_slots: int) -> None:
        task = job.task
        self.job, self.n_busy = job, 0
        self.bodies = Bodies(task, job.engine(task.anatomy, task.fields, n_slots), n_slots)
        self.minds = Minds(task.policy, n_slots)
        self.solution = np.zeros(n_slots, np.intp)

    def begin(self, n_slots: int) -> None:
        drawn = self.job.draw(n_slots)
        self.n_busy = len(drawn)
        self.load(np.arange(len(drawn)), drawn)

    def load(self, slots: Slots, drawn: NDArray[np.intp]) -> None:
        """Start the episodes of these solutions in these slots."""
        if not len(drawn):
            return
        job = self.job
        self.solution[slots] = drawn
        self.minds.load(slots, job.solutions[drawn])
        state = self.bodies.load(slots, job.seeds[drawn].tolist())
        if job.recorder is not None:
            job.recorder.start(drawn, state, self.bodies.observations[slots])

    def step(self) -> None:
        """Do one control step in all busy slots; episodes that end free their slots for the next."""
        n, recorder = self.n_busy, self.job.recorder
        step = self.bodies.step(self.minds.act(self.bodies.observations[:n]))
        if recorder is not None:
            recorder.step(self.solution[:n], step)
        over = step.over
        if len(over):
            self.collect(over, step)
            drawn = self.job.draw(len(over))
            self.load(over[: len(drawn)], drawn)
            for slot in reversed(over[len(drawn) :]):
                self.release(int(slot))

    def collect(self, over: Slots, step: Step) -> None:
        """Store the results of episodes that are over; those of diverged ones stay NaN."""
        into, terms = self.job.evaluation, self.job.terms
        into.steps[self.solution[over]] = step.numbers[over]
        over = over[~step.diverged[over]]
        if len(over):
            fitness, descriptors = self.bodies.fitness(over), self.bodies.descriptors(over, step.state)
            finite = usable(fitness, descriptors)  # a user's term may return NaN
            rows = self.solution[over[finite]]
            terms[rows] = self.bodies.terms[over[finite]]
            into.fitness[rows], into.descriptors[rows] = fitness[finite], descriptors[finite]
            into.valid[rows] = True

    def release(self, slot: int) -> None:
        """Free a slot: the episode in the last busy slot moves into it."""
        self.n_busy -= 1
        self.bodies.move(self.n_busy, slot)
        self.minds.move(self.n_busy, slot)
        self.solution[slot] = self.solution[self.n_busy]
