"""Reference results: finished runs as small files, that anyone can compare with.

A file has the replications of one variant on one task at one scale: final metrics, thinned curves, and where
they come from. It lies in FOLDER/SCALE-vVERSION/TASK/VARIANT.json. Whatever is in a file is checked before it
is used, and nothing of it is ever run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qdbench.checks import LARGEST
from qdbench.errors import InvalidInput, QdbenchError
from qdbench.metrics.metric import CURVES, METRICS, corrected
from qdbench.store.files import damage_named, open_to_read, read_json, write_json
from qdbench.store.plain import as_json, from_json
from qdbench.store.record import (
    AlgorithmRecord,
    Environment,
    RunRecord,
    Target,
    TaskFacts,
    TaskRecord,
    Totals,
    file_name,
    variant_label,
)
from qdbench.store.sound import require_sound

REFERENCE_FORMAT = 1
"""The version of reference files."""
SHIPPED = Path(__file__).parents[1] / "references"
"""The reference results of this package."""
ALONG = ("evaluations", "seconds", *CURVES)
"""The columns of a thinned curve; those of correction points have no seconds."""
AT_POINTS = ("evaluations", *CURVES)
MOST_POINTS, MOST_RUNS, MOST_TEXT, MOST_BYTES, MOST_FILES = 64, 100, 4_000, 2**20, 10_000
SAME = 1e-9
"""Finals are computed from archives, curves iteration by iteration: they agree but for rounding."""


@dataclass(frozen=True, kw_only=True)
class ScaleRecord:
    """The scale that runs belong to."""

    name: str
    version: int
    protocol: int
    """The version of the protocol of official results."""

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name} scale (version {self.version})"


@dataclass(frozen=True, kw_only=True)
class ReferenceRun:
    """One replication."""

    seed: int
    ran_on: tuple[int, ...]
    """Where it was made: places in the file's `environments`."""
    begun: str
    updated: str
    totals: Totals
    reevaluation_steps: int
    """Control steps of all re-evaluations."""
    archive: str
    """The kind of the archive it is measured on: `grid` or `cvt`, with the task's number of cells."""
    n_cells: int | None
    values: tuple[float, ...]
    """The final metrics, in the order of the file's `metrics`; null if undefined."""
    along: dict[str, tuple[float, ...]]
    """The metrics along the run, thinned; the last is the end."""
    corrected: dict[str, tuple[float, ...]]
    """The corrected metrics at the correction points."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The replications of one variant on one task, and where they come from."""

    scale: ScaleRecord
    task: TaskRecord
    facts: TaskFacts
    algorithm: AlgorithmRecord
    name: str
    """Tells apart variants of one algorithm."""
    own_archive: bool
    target: Target
    metrics: tuple[str, ...]
    command: str
    """What makes these runs."""
    times_comparable: bool
    """Whether the machine did nothing else while these runs were made."""
    environments: tuple[Environment, ...]
    runs: tuple[ReferenceRun, ...]

    @property
    def variant(self) -> str:
        """The name of the variant."""
        return variant_label(self.algorithm.name, self.name)

    @property
    def date(self) -> str:
        """The day of the newest run."""
        return max(run.updated for run in self.runs)[:10]

    @property
    def last_environment(self) -> Environment:
        """Where the newest run was made."""
        newest = max(self.runs, key=lambda run: run.updated)
        return self.environments[newest.ran_on[-1]]

    @property
    def where(self) -> str:
        """The path of its file within a folder of references."""
        folder = f"{file_name(self.scale.name)}-v{self.scale.version}"
        return f"{folder}/{file_name(self.task.name)}/{file_name(self.variant)}.json"

    def values_of(self, run: ReferenceRun) -> dict[str, float]:
        """Return all final metrics of a replication; NaN for those that the file does not have."""
        found = dict(zip(self.metrics, run.values, strict=True))
        return dict.fromkeys(METRICS, math.nan) | found

    def record_of(self, run: ReferenceRun) -> RunRecord:
        """Return the record of a replication, as its run.json had it."""
        return RunRecord(
            task=self.task,
            algorithm=self.algorithm,
            seed=run.seed,
            name=self.name,
            facts=self.facts,
            own_archive=self.own_archive,
            environments=tuple(self.environments[place] for place in run.ran_on),
            begun=run.begun,
            updated=run.updated,
            status="finished",
            target=self.target,
            totals=run.totals,
        )


def with_seeds_of(one: Reference, other: Reference) -> Reference:
    """Return the first results with the seeds that only the second have; times of two places differ."""
    places: list[Environment] = []

    def place_of(where: Environment) -> int:
        if where not in places:
            places.append(where)
        return places.index(where)

    by_seed = {run.seed: (run, source.environments) for source in (other, one) for run in source.runs}
    runs = [
        replace(run, ran_on=tuple(place_of(known[place]) for place in run.ran_on))
        for run, known in (by_seed[seed] for seed in sorted(by_seed))
    ]
    return replace(one, times_comparable=False, environments=tuple(places), runs=tuple(runs))


@dataclass(frozen=True)
class References:
    """Reference results from some folders, and what could not be used."""

    found: tuple[Reference, ...]
    problems: tuple[str, ...]


def write_reference(folder: Path, reference: Reference) -> Path:
    """Write a file of reference results; one that could not be read again is refused."""
    require_sound_reference(reference)
    path = folder / reference.where
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, as_json(reference), version=REFERENCE_FORMAT, compact=True)
    return path


def read_reference(path: Path) -> Reference:
    """Return the content of a file, or say that it is damaged or of another format."""
    with damage_named(path), open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise ValueError(f"it has {size:,} bytes, more than {MOST_BYTES:,}")
    content = read_json(path, version=REFERENCE_FORMAT)
    with damage_named(path):
        reference = from_json(Reference, content, "the reference")
        require_sound_reference(reference)
        return reference


def read_references(folders: Iterable[Path]) -> References:
    """Read all reference files in some folders. What cannot be used is named; of two alike, the first counts.

    A folder that does not exist has none.
    """
    found: dict[str, Reference] = {}
    problems: list[str] = []
    for folder in folders:
        for path in sorted(folder.glob("*/*/*.json"))[:MOST_FILES]:
            try:
                one = read_reference(path)
                if path != folder / one.where:
                    raise InvalidInput(f"{path} was not used: what it holds belongs to {one.where}")
            except (QdbenchError, OSError) as error:
                problems.append(str(error))
                continue
            if one.where in found:
                problems.append(f"{path} was not used: there are results of that name; give it another")
            else:
                found[one.where] = one
    return References(tuple(found.values()), tuple(problems))


# What is checked beyond types


def require_sound_reference(one: Reference) -> None:
    """Raise InvalidInput where these cannot be the results of runs."""
    _require(one.scale.version >= 1 and one.scale.protocol >= 1, "its scale has no version")
    for text in (one.scale.name, one.task.name, one.variant):
        file_name(text)
        _require(len(text) <= 200, f"{text!r:.60} is too long for a name")
    _require(len(one.command) <= MOST_TEXT, "its command is too long")
    _require(len(set(one.metrics)) == len(one.metrics), "it names a metric twice")
    strange = [name for name in one.metrics if name not in METRICS]
    _require(not strange, f"it has a metric that this version does not know, {strange[:1]!r:.60}")
    missing = [name for name in (*CURVES, *map(corrected, CURVES)) if name not in one.metrics]
    _require(not missing, f"it has no {missing[:1]!r:.60}")
    _require(1 <= len(one.runs) <= MOST_RUNS, f"it has {len(one.runs)} runs")
    seeds = [run.seed for run in one.runs]
    _require(seeds == sorted(set(seeds)), "its seeds are not in ascending order, each once")
    for run in one.runs:
        known = len(one.environments)
        _require(bool(run.ran_on) and all(0 <= place < known for place in run.ran_on), "it ran nowhere")
        require_sound(one.record_of(run))
        _require_sound_run(one, run)


def _require_sound_run(one: Reference, run: ReferenceRun) -> None:
    fair = run.archive in ("grid", "cvt") and run.n_cells == math.prod(one.task.cells)
    _require(
        fair,
        f"it was measured on {run.archive!r:.60} ({run.n_cells!r:.60} cells), not on the task's cells",
    )
    _require(0 <= run.reevaluation_steps < 2**63, "its re-evaluations made no steps")
    _require(len(run.values) == len(one.metrics), "it has not one value for every metric")
    columns = (*run.along.values(), *run.corrected.values())
    numbers = [*run.values, *(value for column in columns for value in column)]
    _require(all(math.isnan(v) or abs(v) <= LARGEST for v in numbers), "it has a number that is too large")
    for curve, names in ((run.along, ALONG), (run.corrected, AT_POINTS)):
        _require(set(curve) == set(names), f"a curve has not the columns {', '.join(names)}")
        lengths = {len(column) for column in curve.values()}
        _require(len(lengths) == 1 and 1 <= max(lengths) <= MOST_POINTS, "a curve has no or too many points")
        places = curve["evaluations"]
        _require(list(places) == sorted(set(places)) and places[0] > 0, "a curve goes backwards")
        _require(places[-1] == run.totals.evaluations, "a curve does not end with the run")
    final = dict(zip(one.metrics, run.values, strict=True))
    for name in CURVES:
        _require_same(name, final[name], run.along[name])
        _require_same(corrected(name), final[corrected(name)], run.corrected[name])


def _require_same(name: str, final: float, curve: Sequence[float]) -> None:
    both = math.isnan(final) and math.isnan(curve[-1])
    same = both or math.isclose(final, curve[-1], rel_tol=SAME, abs_tol=SAME)
    _require(same, f"its final {name} is {final}, its curve ends with {curve[-1]}")


def _require(fits: bool, words: str) -> None:
    if not fits:
        raise InvalidInput(words)
