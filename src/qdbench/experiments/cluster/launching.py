"""Whole runs on the nodes of a cluster: several at a time, each on CPUs of one node.

The results of every run are written into its folder by this process, while it goes on. If a node dies, the
run is continued on another one from what has arrived: as after a kill at home.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import ray

from qdbench.errors import InvalidInput, QdbenchError
from qdbench.experiments.cluster.connection import Cluster
from qdbench.experiments.cluster.courier import Courier, News
from qdbench.experiments.cluster.nodes import About, Node, alive_nodes, in_short, on_node, unlike
from qdbench.experiments.environment import blas_threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.job import ELSEWHERE, Job, Outcome, Settings, check_job, is_done
from qdbench.experiments.launchers import JobListener, Recipe, not_begun, settled
from qdbench.experiments.one_run import failure
from qdbench.store.copying import Inbox, Piece, all_pieces
from qdbench.store.folder import RunFolder
from qdbench.store.locks import InUse
from qdbench.store.record import Totals

MOST_DEATHS = 3
"""A run whose process or node dies so often without progress is not started again."""
DOUBT_SECONDS = 60.0
"""How long a node on which a run was lost gets no other one, if there are other nodes."""
PATIENCE_SECONDS = 120.0
"""How long a run waits for its process on a node, and all wait for a node with enough CPUs."""


@dataclass(eq=False)
class Running:
    """A run on a node, as this process sees it."""

    number: int
    job: Job
    lock: ExitStack
    node: Node
    actor: Any
    awaited: Any
    outgoing: Iterator[Piece]
    since: float
    stage: str = "starting"
    there: str = ""
    """Its folder on the node."""
    totals: Totals = field(default_factory=Totals)
    stopping: bool = False


class OnEveryNode:
    """Keep so many runs going at once, each with so many CPUs."""

    def __init__(self, cluster: Cluster, n: int, cpus: int) -> None:
        self._cluster, self._n, self._cpus = cluster, n, cpus
        self._others: dict[str, int] = {}  # CPUs that somebody else used when a node was first seen
        self._refused: dict[str, str] = {}
        self._deaths: dict[str, float] = {}  # when a run was lost on a node; Ray notices late that one died
        self._running: list[Running] = []
        self._lives: dict[int, int] = {}  # how often each run may still be lost before it makes progress

    def __call__(
        self, jobs: Sequence[Job], settings: Settings, interrupt: Interrupt, listener: JobListener
    ) -> list[Outcome]:
        """Carry out all runs."""
        self._settings = replace(settings, launcher=None)
        self._interrupt, self._listener = interrupt, listener
        self._outcomes: dict[int, Outcome] = {}
        self._waiting = waiting = list(enumerate(jobs))
        served = time.monotonic()
        try:
            while self._running or (waiting and interrupt.signal is None):
                while waiting and interrupt.signal is None and len(self._running) < self._n:
                    node = self._free_node()
                    if node is None:
                        break
                    self._begin(*waiting.pop(0), node)
                if self._running:
                    served = time.monotonic()
                elif waiting and time.monotonic() - served > PATIENCE_SECONDS:
                    self._give_up([waiting.pop(0)])
                self._listen()
        finally:
            for one in self._running:  # only if something unexpected was raised
                ray.kill(one.actor)
                one.lock.close()
            self._running = []
        ends = [self._outcomes.get(i) or not_begun(job) for i, job in enumerate(jobs)]
        return settled(jobs, ends, self._settings)

    # Where runs go

    def _free_node(self) -> Node | None:
        """Return the node with most CPUs free, if they are enough; not one that may have just died."""
        found = []
        nodes = alive_nodes()
        for node in nodes:
            ours = sum(self._cpus for one in self._running if one.node.id == node.id)
            others = self._others.setdefault(node.id, max(0, node.cpus - node.free - ours))
            free = node.cpus - others - ours
            lost_one = time.monotonic() - self._deaths.get(node.id, -DOUBT_SECONDS) < DOUBT_SECONDS
            if free >= self._cpus and node.id not in self._refused and not (lost_one and len(nodes) > 1):
                found.append((free, node.name, node))
        return max(found)[-1] if found else None

    def _give_up(self, jobs: Sequence[tuple[int, Job]]) -> None:
        why = "; ".join(self._refused.values()) or f"none has {self._cpus} free CPUs"
        for number, job in jobs:
            self._end(number, job, Outcome("failed", job.path, Totals(), f"no node is left to run on: {why}"))

    # The stages of a run: starting, sending its files, going

    def _begin(self, number: int, job: Job, node: Node) -> None:
        """Lock the folder of a run and start its courier, unless there is nothing to do."""
        lock, folder = ExitStack(), RunFolder(job.path)
        totals = Totals()
        try:
            lock.enter_context(folder.locked())
            record = check_job(job, self._settings)
            if record is not None:
                totals = record.totals
                if is_done(record, job):
                    lock.close()
                    self._end(number, job, Outcome("skipped", job.path, totals))
                    return
        except InUse as error:
            self._end(number, job, Outcome(ELSEWHERE, job.path, totals, str(error), error))
            return
        except (Exception, SystemExit) as error:  # of a user's task or algorithm too: the other runs go on
            lock.close()
            self._end(number, job, failure(error, folder, totals))
            return
        self._running.append(self._sent(number, job, lock, node, totals))

    def _sent(self, number: int, job: Job, lock: ExitStack, node: Node, totals: Totals) -> Running:
        actor = on_node(node, Courier, num_cpus=self._cpus)(blas_threads())
        return Running(
            number, job, lock, node, actor, actor.about.remote(), all_pieces(job.path), time.monotonic(),
            totals=totals,
        )  # fmt: skip

    def _listen(self) -> None:
        """Wait a moment for what the couriers say, and answer."""
        awaited = {one.awaited: one for one in self._running}
        if not awaited:
            time.sleep(0.2)
            return
        ready, _ = ray.wait(list(awaited), num_returns=1, timeout=0.2)
        for ref in ready:
            one = awaited[ref]
            try:
                self._answered(one, ray.get(ref))
            except ray.exceptions.RayTaskError as error:
                self._leave(
                    one, Outcome("failed", one.job.path, one.totals, f"{one.node.name}: {in_short(error)}")
                )
            except ray.exceptions.RayError as error:  # its process or its node died, or cannot be reached
                self._lost(one, in_short(error))
            except (QdbenchError, OSError) as error:  # of this machine's disk, or of a user's on_iteration
                self._leave(one, failure(error, RunFolder(one.job.path), one.totals))
        for one in list(self._running):
            if one.stage == "starting" and self._interrupt.signal is not None:
                self._leave(one, not_begun(one.job))
            elif one.stage == "starting" and time.monotonic() - one.since > PATIENCE_SECONDS:
                self._lost(one, f"no process could be started within {PATIENCE_SECONDS:.0f} s")

    def _answered(self, one: Running, answer: Any) -> None:
        """Go on to the next stage of a run."""
        if one.stage == "starting":
            about: About = answer
            problem = "" if self._cluster.elsewhere else unlike(one.node.name, about.versions)
            if problem:  # it joined after the connection was made
                self._refused[one.node.id] = problem
                self._again(one)
                return
            one.stage = "sending"
        elif one.stage == "started":
            one.there, one.stage = answer, "going"
        elif one.stage == "going":
            self._received(one, answer)
            return
        piece = next(one.outgoing, None) if one.stage == "sending" else None
        if piece is not None:
            one.awaited = one.actor.receive.remote(piece)
        elif one.stage == "sending":
            one.stage = "started"
            one.awaited = one.actor.start.remote(Recipe.of(one.job), self._settings)
        else:
            self._ask(one)

    def _ask(self, one: Running) -> None:
        one.awaited = one.actor.news.remote(self._interrupt.signal is not None)

    def _received(self, one: Running, news: News) -> None:
        """Write down what has come from a run."""
        inbox = Inbox(one.job.path)
        for piece in news.pieces:
            inbox.receive(piece)
        for progress in news.progress:
            if progress.row is not None and not progress.replaying:
                self._lives.pop(one.number, None)
            one.totals = progress.totals
            self._listener(one.job, replace(progress, where=one.node.name))
        if news.outcome is None:
            self._ask(one)
            return
        reason = news.outcome.reason.replace(one.there, str(one.job.path))
        self._name_folder(one, reason)
        self._leave(one, replace(news.outcome, folder=one.job.path, reason=reason))

    def _name_folder(self, one: Running, reason: str) -> None:
        """Let run.json name the folder where the results are, not the one on the node."""
        folder = RunFolder(one.job.path)
        record = folder.read_record()
        if record is not None and one.there in record.reason:
            folder.write_record(replace(record, reason=reason))

    # Ends

    def _lost(self, one: Running, why: str) -> None:
        """Continue a run that lost its node or its process, unless it was lost too often."""
        self._deaths[one.node.id] = time.monotonic()
        self._lives[one.number] = left = self._lives.get(one.number, MOST_DEATHS) - 1
        if left:
            self._again(one)
            return
        reason = f"its process or node died {MOST_DEATHS} times without progress ({one.node.name}: {why})"
        self._leave(one, Outcome("failed", one.job.path, one.totals, reason))

    def _again(self, one: Running) -> None:
        """Let a run wait for a free node, to be continued from the files that are here."""
        if self._interrupt.signal is not None:
            self._leave(one, Outcome("stopped", one.job.path, one.totals))
            return
        self._release(one)
        self._waiting.insert(0, (one.number, one.job))

    def _leave(self, one: Running, outcome: Outcome) -> None:
        self._release(one)
        self._end(one.number, one.job, outcome)

    def _release(self, one: Running) -> None:
        self._running.remove(one)
        ray.kill(one.actor)
        Inbox(one.job.path).forget()
        one.lock.close()

    def _end(self, number: int, job: Job, outcome: Outcome) -> None:
        self._outcomes[number] = outcome
        self._listener(job, outcome)


def cpus_per_run(jobs: int, wanted: int | None) -> int:
    """Return how many CPUs each of so many runs gets at once: as many as all nodes have for all of them."""
    free = [node.free for node in alive_nodes()]
    if wanted is not None:
        if max(free) < wanted:
            raise InvalidInput(
                f"no node of the cluster has {wanted} free CPUs, the most are {max(free)}; give fewer "
                "--workers"
            )
        return wanted
    fitting = [cpus for cpus in range(1, max(free) + 1) if sum(each // cpus for each in free) >= jobs]
    return max(fitting, default=1)
