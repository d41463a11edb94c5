"""What determines a run, and where it lies."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qdbench.algorithms.contract import Algorithm, BoundsMemory, Problem
from qdbench.algorithms.registry import Factory, build, checked_options, find, name_of, options
from qdbench.checks import checked_text, is_whole, shown
from qdbench.errors import InvalidInput
from qdbench.seeds import Seeds, derived_seed, numbered_seeds
from qdbench.sources import source_digest
from qdbench.store.folder import run_path
from qdbench.store.plain import as_json
from qdbench.store.record import AlgorithmRecord, Determinants, TaskFacts, TaskRecord, variant_label
from qdbench.tasks.contract import (
    Task,
    counts_steps,
    descriptor_names,
    remark_on_max_fitness,
    score_interval,
    task_options,
)
from qdbench.tasks.options import changed_options, made_by_name, remade


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run: a task, an algorithm with its options, a seed."""

    task: Task
    task_source: str
    """What `qdbench.make` takes: a name or module:attribute."""
    algorithm: str
    options: Mapping[str, Any]
    seed: int
    name: str = ""
    """Tells apart runs of one algorithm with other options; part of the folder only."""
    factory: Factory | None = None
    """The algorithm's class, where its name alone does not lead to it."""

    def __post_init__(self) -> None:
        if not is_whole(self.seed) or not 0 <= self.seed < 2**63:
            raise InvalidInput(f"the seed is {shown(self.seed)}; give a whole number from 0 to 2**63 - 1")
        checked_text("name", self.name)
        object.__setattr__(self, "seed", int(self.seed))
        for name, value in self.options.items():
            if not _survives_json(value):
                raise InvalidInput(
                    f"the option {name} is {shown(value)}, which run.json cannot hold; give numbers or text"
                )

    @property
    def variant(self) -> str:
        """What the run is a replication of."""
        return variant_label(self.algorithm, self.name)

    @property
    def label(self) -> str:
        """The run among others of its task."""
        return f"{self.variant}/seed-{self.seed}"

    @property
    def source(self) -> str:
        """A digest of the file that defines the algorithm; nothing for our own."""
        factory = self.factory or find(self.algorithm)
        module = getattr(factory, "__module__", None) or ""
        return "" if module.startswith("qdbench.") else source_digest(factory)

    def folder(self, out: Path) -> Path:
        """Return where the run's files are."""
        return run_path(out, self.task.name, self.variant, self.seed)

    def determinants(self) -> Determinants:
        """Return everything that determines the run's results."""
        task = self.task
        return Determinants(
            task=TaskRecord(
                name=task.name,
                source=self.task_source,
                version=task.version,
                fingerprint=task.fingerprint,
                options=as_json(task_options(task)),
                n_parameters=task.n_parameters,
                descriptor_bounds=task.descriptor_bounds,
                cells=task.cells,
                fitness_bounds=task.fitness_bounds,
            ),
            algorithm=AlgorithmRecord(self.algorithm, as_json(self.options)),
            seed=self.seed,
        )

    def facts(self) -> TaskFacts:
        """Return what readers of the results want to know of the task."""
        task = self.task
        return TaskFacts(
            score_interval=score_interval(task),
            descriptor_names=descriptor_names(task),
            counts_steps=counts_steps(task),
            remark_on_max_fitness=remark_on_max_fitness(task),
            changed_options=as_json(changed_options(task, self.task_source)),
            made_by_name=made_by_name(task, self.task_source),
        )

    def problem(self) -> Problem:
        """Return what the algorithm may know of the task."""
        task = self.task
        return Problem(
            n_parameters=task.n_parameters,
            descriptor_bounds=task.descriptor_bounds,
            cells=task.cells,
            fitness_bounds=task.fitness_bounds,
            random_solutions=task.random_solutions,
        )

    def build(self) -> Algorithm:
        """Return the algorithm at its start."""
        return self._build(self.problem(), derived_seed(self.seed, "algorithm", self.algorithm))

    def small(self) -> Algorithm:
        """Return the algorithm on a tiny grid: whatever it dislikes about its options is said now."""
        problem = self.problem()
        return self._build(replace(problem, cells=(2,) * len(problem.cells)), 0)

    def check(self) -> None:
        """Let the algorithm say, before any work is done, what it dislikes about its options or the task."""
        algorithm = self.small()
        if isinstance(algorithm, BoundsMemory):
            algorithm.require_memory(math.prod(self.task.cells))

    def _build(self, problem: Problem, seed: int) -> Algorithm:
        return build(self.factory or self.algorithm, problem, seed, self.options)

    def seeds(self, first: int, n: int) -> Seeds:
        """Return the seeds of evaluations `first` to `first + n - 1`."""
        return numbered_seeds(self.seed, "run", self.algorithm, first=first, n=n)

    def reevaluation_seeds(self, evaluation: int, n: int) -> Seeds:
        """Return the seeds of the re-evaluations of the elite that this evaluation gave."""
        return reevaluation_seeds(self.seed, self.algorithm, evaluation, n)


def reevaluation_seeds(seed: int, algorithm: str, evaluation: int, n: int) -> Seeds:
    """Return the seeds of the re-evaluations of an elite, by the number of the evaluation that gave it."""
    return numbered_seeds(seed, "reevaluations", algorithm, evaluation, first=0, n=n)


def plan_for(
    task: Task,
    task_source: str,
    algorithm: str | Factory,
    chosen: Mapping[str, Any],
    *,
    seed: int,
    name: str = "",
) -> Plan:
    """Return the plan of a run with these options, and the algorithm's defaults for the others."""
    known = name_of(algorithm)
    factory = find(algorithm) if isinstance(algorithm, str) else algorithm
    defaults = {key: option.default for key, option in options(factory).items()}
    return Plan(
        task=task,
        task_source=task_source,
        algorithm=known,
        options=defaults | checked_options(factory, chosen, known),
        seed=seed,
        name=name,
        factory=None if isinstance(algorithm, str) else algorithm,
    )


def plan_from(determinants: Determinants, name: str = "", *, trust: bool = False) -> Plan:
    """Return the plan of a recorded run; `trust` allows to import the modules that its record names."""
    task, algorithm = determinants.task, determinants.algorithm
    find(algorithm.name, trust=trust)
    return Plan(
        task=remade(task.source, task.options, trust=trust),
        task_source=task.source,
        algorithm=algorithm.name,
        options=_as_given(algorithm),
        seed=determinants.seed,
        name=name,
    )


def _as_given(algorithm: AlgorithmRecord) -> dict[str, Any]:
    """Return options as the constructor knows them: a default that JSON changed (a tuple) is taken anew."""
    known = options(find(algorithm.name))
    return {
        key: known[key].default if key in known and as_json(known[key].default) == value else value
        for key, value in algorithm.options.items()
    }


def _survives_json(value: Any) -> bool:
    plain = as_json(value)
    try:
        return bool(json.loads(json.dumps(plain, allow_nan=False)) == plain)
    except (TypeError, ValueError, RecursionError):
        return False
