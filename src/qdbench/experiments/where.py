"""Where runs are carried out: on the cores of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from qdbench.checks import checked_count, checked_number, checked_workers
from qdbench.experiments.evaluators import Threads, evaluators_on
from qdbench.experiments.job import Settings
from qdbench.experiments.launchers import Launcher


@contextmanager
def settings_on(
    on: str | None,
    *,
    workers: int | None = None,
    jobs: int = 1,
    checkpoint_every: float = 30.0,
    elsewhere: bool = False,
    changed_code: bool = False,
) -> Iterator[Settings]:
    """Yield how runs are carried out; on a cluster, as long as this process is connected to it.

    `on` is None for this machine, `ray` or `ray://HOST:PORT`. One run at a time uses all CPUs, or as many as
    `workers`. Of several, each has its share of the CPUs, unless `workers` are given. Modules of the user
    must have been imported before: their code goes to the nodes.
    """
    jobs, cores = checked_count("jobs", jobs), checked_workers(workers)
    each = cores if workers is not None else max(1, cores // jobs)
    settings = Settings(
        evaluators=Threads(each),
        jobs=jobs,
        checkpoint_every=checked_number("checkpoint_every", checkpoint_every, 0.0),
        elsewhere=elsewhere,
        changed_code=changed_code,
    )
    if on is not None and jobs > 1:
        with _launcher_on(on, workers, jobs, elsewhere=elsewhere) as (launcher, cpus):
            yield replace(settings, evaluators=Threads(cpus), launcher=launcher)
        return
    if on is None:
        yield settings
        return
    with evaluators_on(on, workers=workers, elsewhere=elsewhere) as evaluators:
        yield replace(settings, evaluators=evaluators)


@contextmanager
def _launcher_on(
    on: str, workers: int | None, jobs: int, *, elsewhere: bool
) -> Iterator[tuple[Launcher, int]]:
    """Yield what makes several runs at a time on a cluster, and how many CPUs each has."""
    from qdbench.experiments.cluster.connection import connected

    needed = None if workers is None else max(checked_workers(None), workers * jobs)
    with connected(on, cpus=needed, elsewhere=elsewhere) as cluster:
        from qdbench.experiments.cluster.launching import OnEveryNode, cpus_per_run

        cpus = cpus_per_run(jobs, workers)
        yield OnEveryNode(cluster, jobs, cpus), cpus
