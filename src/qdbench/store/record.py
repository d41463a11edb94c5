"""run.json as a typed record: what determined a run, where it ran, and how far it came."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from qdbench.checks import checked_count, checked_number, is_whole, shown
from qdbench.errors import InvalidInput

Status = Literal["running", "finished", "stopped", "failed"]
"""`running` is also what a killed run says of itself."""


@dataclass(frozen=True, kw_only=True)
class TaskRecord:
    """The task of a run, as far as it determines results."""

    name: str
    source: str
    """What `qdbench.make` takes: a name, or module:attribute."""
    version: int
    fingerprint: str
    options: dict[str, Any]
    """What a user may change, with the values used."""
    n_parameters: int
    descriptor_bounds: tuple[tuple[float, float], ...]
    cells: tuple[int, ...]
    fitness_bounds: tuple[float, float]
    """The possible fitness, which algorithms know."""

    @property
    def episode_length(self) -> int | None:
        """The control steps of an episode that nothing ends early; None if the task has no episodes."""
        length: int | None = self.options.get("episode_length")
        return length


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What readers of results want to know of a task; none of it changes what a run finds."""

    score_interval: tuple[float, float]
    """The task's fixed interval of the QD score, as in metrics.csv."""
    descriptor_names: tuple[str, ...]
    """What the axes of a picture are called."""
    counts_steps: bool
    """Whether a descriptor is a share of an episode's steps."""
    remark_on_max_fitness: str
    """Why max fitness says little, or nothing."""
    changed_options: dict[str, Any]
    """The options that differ from the task's own, with its own values."""
    made_by_name: bool
    """Whether the task's source and options make it again; else it was made in Python."""


@dataclass(frozen=True)
class AlgorithmRecord:
    """The algorithm of a run."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Determinants:
    """Everything that determines a run's results."""

    task: TaskRecord
    algorithm: AlgorithmRecord
    seed: int


@dataclass(frozen=True, kw_only=True)
class Versions:
    """What results are exactly reproducible on: these versions on this CPU."""

    qdbench: str
    mujoco: str
    numpy: str
    scipy: str
    python: str
    system: str
    cpu: str
    blas: str
    """The linear algebra in use, its version, and the kind of processor it computes for."""
    simd: str
    """What NumPy may use of the processor; virtual machines of one name can differ."""
    mujoco_build: str
    """The platforms MuJoCo's library was built for."""


@dataclass(frozen=True)
class NodeRecord:
    """A machine of a cluster that evaluated solutions of a run."""

    host: str
    cpus: int
    """Those that the run used."""
    differs: dict[str, str]
    """Versions and CPU, where they are not those of the machine that made the run."""


@dataclass(frozen=True, kw_only=True)
class Environment(Versions):
    """Where a run, or a part of it, was carried out."""

    packages: dict[str, str]
    """Versions of the libraries an adapter needs."""
    host: str
    workers: int
    jobs: int
    """Runs that shared the machine."""
    source: str
    """Digest of the file that defines the algorithm; empty for our own."""
    nodes: tuple[NodeRecord, ...] = ()
    """Where solutions were evaluated, if on a cluster; else here."""

    @property
    def versions(self) -> Versions:
        """The part that can change results."""
        return Versions(**{name: getattr(self, name) for name in Versions.__dataclass_fields__})


@dataclass(frozen=True)
class CorrectionPlan:
    """At how many points of a run its elites are re-evaluated, and how often each."""

    points: int = 0
    """Evenly spaced in evaluations; the last is the end. An iteration that passes several makes one."""
    reevaluations: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", checked_count("corrections", self.points, 0))
        object.__setattr__(self, "reevaluations", checked_count("reevaluations", self.reevaluations))


@dataclass(frozen=True)
class Target:
    """When a run ends: with the iteration that reaches either of these; and what is corrected until then."""

    evaluations: int | None = None
    seconds: float | None = None
    corrections: CorrectionPlan = CorrectionPlan()

    def __post_init__(self) -> None:
        if self.evaluations is not None:
            if not is_whole(self.evaluations) or not 1 <= self.evaluations < 2**63:
                raise InvalidInput(
                    f"evaluations is {shown(self.evaluations)}; give a whole number of 1 or more"
                )
            object.__setattr__(self, "evaluations", int(self.evaluations))
        if self.seconds is not None:
            object.__setattr__(self, "seconds", checked_number("seconds", self.seconds, 0.0))
        if not isinstance(self.corrections, CorrectionPlan):
            raise InvalidInput(f"corrections is {shown(self.corrections)}; give a CorrectionPlan")

    def reached(self, totals: Totals) -> bool:
        """Return whether the run has come far enough."""
        return (self.evaluations is not None and totals.evaluations >= self.evaluations) or (
            self.seconds is not None and totals.seconds >= self.seconds
        )

    @property
    def in_words(self) -> str:
        """The budget as a reader would say it."""
        ends = [f"{self.evaluations:,} evaluations"] if self.evaluations else []
        return " or ".join([*ends, *([f"{self.seconds:,g} s"] if self.seconds else [])])


@dataclass
class Totals:
    """How far a run has come, and where its time went; kept in every checkpoint."""

    iteration: int = 0
    evaluations: int = 0
    previous_evaluations: int = 0
    """Before the last iteration."""
    steps: int = 0
    invalid: int = 0
    lowest_fitness: float = np.nan
    """Of all valid evaluations so far, as `highest_fitness`; NaN while there is none."""
    highest_fitness: float = np.nan
    seconds: float = 0.0
    """Asking, evaluating, telling and what holds them together; nothing of what follows below."""
    simulation_seconds: float = 0.0
    algorithm_seconds: float = 0.0
    metrics_seconds: float = 0.0
    checkpoint_seconds: float = 0.0
    setup_seconds: float = 0.0
    warm_up_seconds: float = 0.0
    """Compiling what an algorithm compiles when it is first used; no part of `setup_seconds`."""
    correction_seconds: float = 0.0

    @property
    def rest_seconds(self) -> float:
        """What holds simulation and algorithm together."""
        return self.seconds - self.simulation_seconds - self.algorithm_seconds


@dataclass(frozen=True)
class MetricsExtent:
    """How much of metrics.csv is final, and its checksum."""

    n_bytes: int = 0
    crc32: int = 0


@dataclass(frozen=True, kw_only=True)
class RunRecord(Determinants):
    """run.json."""

    name: str
    """Tells apart runs of one algorithm with other options; part of the folder only."""
    facts: TaskFacts
    own_archive: bool
    """Whether the algorithm has an archive of its own; else its elites are put into the task's grid."""
    environments: tuple[Environment, ...]
    """More than one if the run was continued elsewhere."""
    begun: str
    updated: str
    status: Status
    reason: str = ""
    """Why it failed."""
    target: Target
    totals: Totals
    metrics: MetricsExtent = field(default_factory=MetricsExtent)

    @property
    def determinants(self) -> Determinants:
        """The part that determines the results."""
        return Determinants(task=self.task, algorithm=self.algorithm, seed=self.seed)

    @property
    def variant(self) -> str:
        """What the run is a replication of."""
        return variant_label(self.algorithm.name, self.name)


def variant_label(algorithm: str, name: str = "") -> str:
    """Return how an algorithm with one set of options is called, in tables and folders."""
    plain = algorithm.replace(":", ".")
    return f"{plain}-{name}" if name else plain


def file_name(text: str) -> str:
    """Return the text if a folder can be called so."""
    if not re.fullmatch(r"[\w@.+-]+", text) or text.startswith("."):
        raise InvalidInput(f"{text!r} cannot name a folder; use letters, digits and _ . + - @")
    return text
