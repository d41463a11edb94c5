"""Batches of one run on all nodes of a cluster: one worker process per node, with threads as at home."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray
from numpy.typing import ArrayLike, NDArray
from ray import cloudpickle

from qdbench.checks import checked_seeds, checked_solutions
from qdbench.errors import BrokenTask, InvalidInput, QdbenchError
from qdbench.experiments.cluster.chunks import Chunk, Chunks
from qdbench.experiments.cluster.connection import Cluster
from qdbench.experiments.cluster.nodes import (
    About,
    Node,
    about_this_process,
    alive_nodes,
    in_short,
    on_node,
    pickled,
    recorded,
    unlike,
)
from qdbench.experiments.evaluators import Evaluator, Threads
from qdbench.policy import Parameters
from qdbench.store.record import NodeRecord
from qdbench.tasks.contract import Evaluations, Progress, Task

IN_FLIGHT = 2
"""Chunks that a worker has: one that it evaluates, and one that waits."""
MOST_STARTS = 3
"""A worker that ends so often before it could do anything is not started again."""
START_SECONDS = 120.0
LOOK_SECONDS = 5.0  # between two looks for new nodes
POLL_SECONDS = 0.2  # how often progress is reported and Ctrl-C is noticed


@dataclass(frozen=True, eq=False)
class Answer:
    """What a worker returns for a chunk."""

    found: Evaluations | None
    seconds: float
    cpu_seconds: float
    """Of the whole process, while the chunk was evaluated."""
    error: BaseException | None = None


class NodeWorker:
    """The process on a node: it holds the task, compiled once, and evaluates chunks of solutions."""

    def __init__(self, task: bytes, cpus: int) -> None:
        self._task, self._cpus = task, cpus
        self._evaluate: Evaluator | None = None

    def about(self) -> About:
        """Return versions and host, when the task has been made."""
        self._evaluate = Threads(self._cpus)(cloudpickle.loads(self._task))
        return about_this_process()

    def evaluate(
        self, solutions: Parameters, repeats: NDArray[np.int64], seeds: NDArray[np.uint64]
    ) -> Answer:
        """Evaluate solutions, each as often as `repeats` says; what a user's code raises is returned."""
        assert self._evaluate is not None
        start, used = time.perf_counter(), time.process_time()
        found, problem = None, None
        try:
            found = self._evaluate(np.repeat(solutions, repeats, axis=0), seeds)
        except (Exception, SystemExit) as error:
            problem = travelling(error)
        return Answer(found, time.perf_counter() - start, time.process_time() - used, problem)


def travelling(error: BaseException) -> BaseException:
    """Return an error that arrives on another machine, with its traceback as a note."""
    where = "".join(traceback.format_exception(error))
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        cloudpickle.loads(pickled(error))
    except Exception:  # whatever a user raised may not travel
        words = " ".join(str(error).split())
        error = RuntimeError(f"{type(error).__name__}: {words}")
    error.add_note(f"On the node:\n{where}")
    return error


@dataclass(eq=False)
class Worker:
    """The driver's view of a worker."""

    node: Node
    cpus: int
    actor: Any
    starting: Any
    """The answer that it is ready; None when it has come."""
    since: float
    record: NodeRecord | None = None
    flying: dict[Any, Chunk] = field(default_factory=dict)
    """Its chunks, in the order in which they were sent."""

    @property
    def concurrency(self) -> int:
        """How many chunks it evaluates at once: with several threads, the next one fills the gaps."""
        return 1 if self.cpus == 1 else IN_FLIGHT

    @property
    def may_take(self) -> bool:
        """Whether it can be sent another chunk."""
        is_suspect = any(chunk.alone for chunk in self.flying.values())
        return self.starting is None and len(self.flying) < IN_FLIGHT and not is_suspect


@dataclass
class Work:
    """What a node has done for a task."""

    chunks: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    """In which it evaluated; with several chunks at once, the sum."""
    cpu_seconds: float = 0.0


class Crew:
    """The workers on all nodes for one task: an evaluator."""

    asks = True
    """Whether there was a signal: it is not raised in the middle of Ray's code."""

    def __init__(self, cluster: Cluster, task: Task, most: int | None) -> None:
        self._cluster, self._task, self._most = cluster, task, most
        self._pickled = pickled(task)
        self._workers: list[Worker] = []
        self._failures: dict[str, int] = {}  # starts in a row that failed, by node
        self._refused: dict[str, str] = {}  # why a node is not used, by its id
        self._share: dict[str, int] = {}  # CPUs that its worker has or had, by node
        self._looked, self._had_workers = -np.inf, time.monotonic()
        self.done: dict[str, Work] = {}
        """By the name of the node."""
        self.put_seconds = self.wait_seconds = 0.0

    # As an evaluator

    def __call__(
        self, solutions: Parameters, seeds: ArrayLike, *, progress: Progress | None = None
    ) -> Evaluations:
        """Evaluate each solution once under its own seed, on all nodes."""
        self._had_workers = time.monotonic()
        solutions = checked_solutions(self._task.name, solutions, self._task.n_parameters)
        seeds = checked_seeds(seeds, len(solutions))
        if not len(solutions):
            return self._task.evaluate(solutions, seeds, workers=1)
        chunks = Chunks(len(solutions), solutions.itemsize * solutions.shape[1])
        found: dict[int, Evaluations] = {}
        try:
            while sum(len(part.fitness) for part in found.values()) < len(solutions):
                self._look_around()
                self._send(chunks, solutions, seeds)
                for chunk, part in self._received(chunks):
                    found[chunk.start] = part
                if progress is not None:
                    progress(sum(len(part.fitness) for part in found.values()), len(solutions))
        except BaseException:
            self.dismiss()  # what they are doing is of no use any more
            raise
        return _joined([found[start] for start in sorted(found)])

    @property
    def records(self) -> tuple[NodeRecord, ...]:
        """The nodes that evaluate now."""
        return tuple(worker.record for worker in self._workers if worker.record is not None)

    @property
    def where(self) -> str:
        """The nodes and what each has done, for a progress display."""
        each = [
            f"{name} {work.evaluations / work.seconds:,.0f}/s"
            for name, work in self.done.items()
            if work.seconds
        ]
        ready = sum(worker.starting is None for worker in self._workers)
        return f"{ready} node{'s' * (ready != 1)}{': ' if each else ''}{', '.join(each)}"

    def dismiss(self) -> None:
        """End all workers."""
        for worker in self._workers:
            ray.kill(worker.actor)
        self._workers, self._looked = [], -np.inf

    # Workers

    def _look_around(self) -> None:
        """Start a worker on every node that has none and may have one."""
        now = time.monotonic()
        if self._workers:
            self._had_workers = now
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        busy = {worker.node.id for worker in self._workers}
        room = np.inf if self._most is None else self._most - sum(worker.cpus for worker in self._workers)
        for node in alive_nodes():
            cpus = int(min(max(node.free, self._share.get(node.id, 0)), room))  # Ray frees them with delay
            if node.id not in busy | set(self._refused) and cpus > 0:
                self._workers.append(self._start(node, cpus))
                self._share[node.id] = cpus
                room -= cpus
        if not self._workers and (self._refused or now - self._had_workers > START_SECONDS):
            why = "; ".join(self._refused.values()) or "its nodes have died, or have no free CPU"
            raise QdbenchError(f"no node of the cluster is left to evaluate on: {why}")

    def _start(self, node: Node, cpus: int) -> Worker:
        at_once = 1 if cpus == 1 else IN_FLIGHT
        actor = on_node(node, NodeWorker, num_cpus=cpus, max_concurrency=at_once)(self._pickled, cpus)
        return Worker(node, cpus, actor, actor.about.remote(), time.monotonic())

    def _ready(self, worker: Worker) -> None:
        """Take in a worker that has started, unless its results may be others than here."""
        about: About = ray.get(worker.starting)
        problem = "" if self._cluster.elsewhere else unlike(worker.node.name, about.versions)
        if problem:  # it has joined since the connection was made, so the run goes on without it
            self._refused[worker.node.id] = problem
            self._drop(worker)
            return
        worker.starting = None
        worker.record = recorded(worker.node, worker.cpus, about.versions)
        self._failures.pop(worker.node.id, None)

    def _drop(self, worker: Worker) -> None:
        ray.kill(worker.actor)
        self._workers.remove(worker)

    def _lost(self, worker: Worker, chunks: Chunks, why: str) -> None:
        """Give the chunks of a worker that died to others."""
        if worker.starting is not None:
            self._failures[worker.node.id] = self._failures.get(worker.node.id, 0) + 1
            if self._failures[worker.node.id] >= MOST_STARTS:
                self._refused[worker.node.id] = f"node {worker.node.name}: {why}"
        self._drop(worker)
        self._looked = -np.inf
        for i, chunk in enumerate(worker.flying.values()):
            chunks.give_back(chunk, began=i < worker.concurrency)

    # Chunks

    def _send(self, chunks: Chunks, solutions: Parameters, seeds: NDArray[np.uint64]) -> None:
        total = sum(worker.cpus for worker in self._workers)
        for _ in range(IN_FLIGHT):  # one for everybody, then a second
            for worker in self._workers:
                if not worker.may_take:
                    continue
                chunk = chunks.take(worker.cpus, total, idle=not worker.flying)
                if chunk is None:
                    continue
                start = time.perf_counter()
                unique, repeats = _without_repeats(solutions[chunk.start : chunk.stop])
                try:
                    held = ray.put(unique)
                except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
                    if chunks.smaller(chunk):
                        return
                    if any(one.flying for one in self._workers):  # what they have will be free again
                        chunks.give_back(chunk, began=False)
                        return
                    raise QdbenchError(
                        "Ray's object store and the disk it spills to are full: not one solution fits. Give "
                        "it more memory (`ray start --object-store-memory`), or end what fills it"
                    ) from None
                finally:
                    self.put_seconds += time.perf_counter() - start
                ref = worker.actor.evaluate.remote(held, repeats, seeds[chunk.start : chunk.stop])
                worker.flying[ref] = chunk

    def _received(self, chunks: Chunks) -> Iterable[tuple[Chunk, Evaluations]]:
        """Wait a moment; yield what has come back."""
        awaited = {ref: worker for worker in self._workers for ref in worker.flying}
        awaited |= {worker.starting: worker for worker in self._workers if worker.starting is not None}
        begun = time.perf_counter()
        if not awaited:
            time.sleep(POLL_SECONDS)
        ready, _ = ray.wait(list(awaited), timeout=POLL_SECONDS) if awaited else ([], [])
        self.wait_seconds += time.perf_counter() - begun
        for ref in ready:
            worker = awaited[ref]
            try:
                if ref is worker.starting:
                    self._ready(worker)
                    continue
                answer: Answer = ray.get(ref)
            except ray.exceptions.RayTaskError as error:
                raise QdbenchError(
                    f"node {worker.node.name} cannot evaluate {self._task.name}: {in_short(error)}"
                ) from error
            except ray.exceptions.RayError as error:  # its process or its node died, or cannot be reached
                if worker in self._workers:
                    self._lost(worker, chunks, in_short(error))
                continue
            yield self._accepted(worker, ref, answer)
        for worker in [one for one in self._workers if one.starting is not None]:
            if time.monotonic() - worker.since > START_SECONDS:
                self._lost(worker, chunks, f"no process could be started within {START_SECONDS:.0f} s")

    def _accepted(self, worker: Worker, ref: Any, answer: Answer) -> tuple[Chunk, Evaluations]:
        chunk = worker.flying.pop(ref)
        if answer.error is not None:
            raise answer.error
        assert answer.found is not None
        n = len(answer.found.fitness)
        if n != len(chunk):
            raise BrokenTask(f"{self._task.name} returned {n} evaluations of {len(chunk)} solutions")
        work = self.done.setdefault(worker.node.name, Work())
        work.chunks += 1
        work.evaluations += len(chunk)
        work.seconds += answer.seconds
        work.cpu_seconds += answer.cpu_seconds
        return chunk, answer.found


def _without_repeats(solutions: Parameters) -> tuple[Parameters, NDArray[np.int64]]:
    """Return solutions once that come several times in a row, as in a correction, and how often each."""
    bits = np.ascontiguousarray(solutions).view(np.uint32)  # 0.0 and -0.0 are not the same
    starts = np.concatenate([[0], np.flatnonzero((bits[1:] != bits[:-1]).any(axis=1)) + 1])
    return np.ascontiguousarray(solutions[starts]), np.diff(starts, append=len(solutions))


def _joined(parts: list[Evaluations]) -> Evaluations:
    """Return the evaluations of all chunks as those of one batch."""
    return Evaluations(
        fitness=np.concatenate([part.fitness for part in parts]),
        descriptors=np.concatenate([part.descriptors for part in parts]),
        steps=np.concatenate([part.steps for part in parts]),
        valid=np.concatenate([part.valid for part in parts]),
        terms={name: np.concatenate([part.terms[name] for part in parts]) for name in parts[0].terms},
    )


class OnNodes:
    """Evaluate on all nodes of a cluster, on at most so many CPUs."""

    def __init__(self, cluster: Cluster, most: int | None = None) -> None:
        self._cluster, self._most = cluster, most
        self._crew: Crew | None = None
        self._of: Task | None = None
        free = sum(node.free for node in alive_nodes())
        self._workers = free if most is None else min(free, most)

    @property
    def workers(self) -> int:
        """The number of CPUs: those in use, or those there were at the start."""
        used = sum(node.cpus for node in self.nodes)
        return used or self._workers

    @property
    def nodes(self) -> tuple[NodeRecord, ...]:
        """The nodes that evaluate now."""
        return () if self._crew is None else self._crew.records

    def __call__(self, task: Task) -> Crew:
        """Return the evaluator of a task. The workers of another task end; those of the same one go on."""
        if self._crew is None or self._of is not task:
            self.dismiss()
            try:
                self._crew, self._of = Crew(self._cluster, task, self._most), task
            except Exception as error:
                raise InvalidInput(
                    f"the task {task.name} cannot be sent to other machines: {in_short(error)}; define it in "
                    "a module"
                ) from error
        return self._crew

    def dismiss(self) -> None:
        """End all workers."""
        if self._crew is not None:
            self._crew.dismiss()
            self._crew = None
