"""What determines a run, and where it lives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.algorithms.registry import build, find, options
from qdbench.errors import InvalidInput
from qdbench.seeds import Seeds, derived_seed, numbered_seeds
from qdbench.tasks.contract import Task
from qdbench.tasks.registry import OPTIONS, make


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

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not 0 <= self.seed < 2**63:
            raise InvalidInput(f"the seed is {self.seed!r}; give a whole number from 0 to 2**63 - 1")
        object.__setattr__(self, "seed", int(self.seed))
        for name, value in self.options.items():
            if not _survives_json(value):
                raise InvalidInput(
                    f"the option {name} is {value!r}, which run.json cannot hold; use numbers, text or lists"
                )

    @property
    def label(self) -> str:
        """The run among others of its task."""
        return f"{self._folder_of_algorithm}/seed-{self.seed}"

    @property
    def _folder_of_algorithm(self) -> str:
        plain = self.algorithm.replace(":", ".")
        return f"{plain}-{self.name}" if self.name else plain

    def folder(self, out: Path) -> Path:
        """Return where the run's files are."""
        return out / file_name(self.task.name) / file_name(self._folder_of_algorithm) / f"seed-{self.seed}"

    def determinants(self) -> dict[str, Any]:
        """Return everything that determines the run's results, as JSON holds it."""
        task = self.task
        options = {key: as_json(value) for key, value in self.options.items()}
        return {
            "task": {
                "name": task.name,
                "source": self.task_source,
                "version": task.version,
                "fingerprint": task.fingerprint,
                "options": {o: as_json(getattr(task, o)) for o in OPTIONS if hasattr(task, o)},
                "n_parameters": task.n_parameters,
                "fitness_bounds": as_json(task.fitness_bounds),
            },
            "algorithm": {"name": self.algorithm, "options": options},
            "seed": self.seed,
        }

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
        seed = derived_seed(self.seed, "algorithm", self.algorithm)
        return build(self.algorithm, self.problem(), seed, self.options)

    def try_out(self) -> None:
        """Build the algorithm on a tiny grid: whatever it dislikes about its options is said now."""
        problem = self.problem()
        build(self.algorithm, replace(problem, cells=(2,) * len(problem.cells)), 0, self.options)

    def seeds(self, first: int, n: int) -> Seeds:
        """Return the seeds of evaluations `first` to `first + n - 1`."""
        return numbered_seeds(self.seed, "run", self.algorithm, first=first, n=n)


def plan_from(determinants: Mapping[str, Any], name: str = "") -> Plan:
    """Return the plan of a recorded run."""
    task, algorithm = determinants["task"], determinants["algorithm"]
    changeable = {key: _tuples(value) for key, value in task["options"].items()}
    plain = make(task["source"])
    changed = {
        key: value for key, value in changeable.items() if _tuples(as_json(getattr(plain, key))) != value
    }
    return Plan(
        task=make(task["source"], **changed) if changed else plain,
        task_source=task["source"],
        algorithm=algorithm["name"],
        options=_as_given(algorithm["name"], algorithm["options"]),
        seed=determinants["seed"],
        name=name,
    )


def _as_given(name: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the constructor knows them: a default that JSON changed (a tuple) is taken anew."""
    known = options(find(name))
    return {
        key: known[key].default if key in known and as_json(known[key].default) == value else value
        for key, value in recorded.items()
    }


def _survives_json(value: Any) -> bool:
    plain = as_json(value)
    try:
        return bool(json.loads(json.dumps(plain, allow_nan=False)) == plain)
    except (TypeError, ValueError):
        return False


def differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return in words where two nested records differ."""
    found = []
    for key in sorted({*recorded, *wanted}):
        old, new = recorded.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{prefix}{key} ")
        elif old != new:
            found.append(f"{prefix}{key} {old!r}, here {new!r}")
    return found


def file_name(text: str) -> str:
    """Return the text if a folder can be called so."""
    if not re.fullmatch(r"[\w@.+-]+", text) or text.startswith("."):
        raise InvalidInput(f"{text!r} cannot name a folder; use letters, digits and _ . + - @")
    return text


def as_json(value: Any) -> Any:
    """Return tuples as the lists JSON makes of them."""
    return [as_json(item) for item in value] if isinstance(value, tuple | list) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, tuple | list) else value
