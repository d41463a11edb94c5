"""What the studies share: runs made one after the other, bootstrap intervals, and Markdown tables.

Studies made of runs have the sub-commands `run` and `table`. Start them from the project's folder, so that
`examples` and `studies` can be imported:

    python -m studies.discrimination run --out results/standard

Interrupted, the same command continues. Finished runs are skipped. Several processes with the same command
share the runs. Give every study a folder of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qdbench
from qdbench.analysis.collect import collect
from qdbench.analysis.measured import MeasuredTask
from qdbench.errors import QdbenchError
from qdbench.experiments.job import ELSEWHERE
from qdbench.paper.protocol import REPRODUCED_TASK, SCALES, Contender, Scale
from qdbench.store.folder import RunFolder, run_path
from qdbench.store.locks import InUse
from qdbench.tasks.contract import Task

STANDARD = Scale(evaluations=10_240, episode_length=250, replications=5, corrections=1, reevaluations=16)
"""Elites are re-evaluated at the end only: once more at half the budget would cost as much as the run."""

CONTENDERS = {
    "random_search": Contender("random_search"),
    "random_search-uniform": Contender("random_search", "uniform", (("init", "uniform"),)),
    "map_elites": Contender("map_elites"),
    "cvt_map_elites": Contender("cvt_map_elites"),
    "fitness_search": Contender("examples.fitness_search:FitnessSearch"),
    "novelty_search": Contender("examples.novelty_search:NoveltySearch"),
}
RESAMPLES = 10_000
Values = NDArray[np.float64]


# Runs


@dataclass(frozen=True)
class Planned:
    """One run of a campaign."""

    out: Path
    task: Task
    contender: Contender
    seed: int
    scale: Scale

    @property
    def path(self) -> Path:
        return run_path(self.out, self.task.name, self.contender.label, self.seed)

    def carry_out(self, workers: int | None) -> None:
        """Make the run, or what is left of it."""
        options: dict[str, Any] = dict(self.contender.settings)
        qdbench.run(
            self.task,
            self.contender.algorithm,
            seed=self.seed,
            evaluations=self.scale.evaluations,
            corrections=self.scale.corrections,
            reevaluations=self.scale.reevaluations,
            out=self.out,
            name=self.contender.name,
            workers=workers,
            batch_size=self.scale.batch_size,
            **options,
        )


def carry_out(planned: Sequence[Planned], workers: int | None = None) -> int:
    """Make all runs, one after the other, with one line about each; return how many failed."""
    n_failed = 0
    for i, one in enumerate(planned, 1):
        start = time.perf_counter()
        try:
            record = RunFolder(one.path).read_record()
            before = "was finished, " if record is not None and record.status == "finished" else ""
            one.carry_out(workers)
            told = f"{before}{time.perf_counter() - start:.0f} s"
        except QdbenchError as error:  # the others go on
            elsewhere = isinstance(error.__cause__, InUse)
            n_failed += not elsewhere
            told = ELSEWHERE if elsewhere else f"FAILED: {error}"
        print(f"{i}/{len(planned)} {one.path}: {told}", flush=True)
    return n_failed


def sized(scale: Scale, chosen: argparse.Namespace) -> Scale:
    """Return the scale with the sizes that the command line changed."""
    names = ("evaluations", "episode_length", "reevaluations")
    return replace(scale, **{name: getattr(chosen, name) for name in names if getattr(chosen, name, None)})


def standard(task: str, scale: Scale) -> Scale:
    """Return the scale of a task with its own options.

    Of one task, `qdbench reproduce --scale laptop` goes on with the runs: it has more correction points.
    """
    more = scale.corrections and task == REPRODUCED_TASK
    return replace(scale, corrections=SCALES["laptop"].corrections) if more else scale


def measured(folder: Path) -> MeasuredTask | None:
    """Return the measurements of the only task in a folder; None if it has no finished run."""
    collected = collect([folder]) if folder.is_dir() else None
    if collected is None or not collected.variants:
        return None
    found = qdbench.measure([run.path for variant in collected.variants for run in variant.runs])
    for one in (*collected.skipped, *found.skipped):  # the others count
        print(f"not used: {one.path}: {one.reason}", file=sys.stderr)
    (task,) = found.tasks
    return task


# Numbers


@dataclass(frozen=True)
class Interval:
    """A mean over replications and its 95 % bootstrap interval, which is NaN with fewer than two."""

    mean: float
    low: float
    high: float

    def words(self, form: str = ".3g") -> str:
        if np.isnan(self.mean):
            return "-"
        ends = "" if np.isnan(self.low) else f" ({self.low:{form}} … {self.high:{form}})"
        return f"{self.mean:{form}}{ends}"


def interval(*groups: Values) -> Interval:
    """Return the mean of the first group, minus that of the second if there is one, with its interval."""
    defined = [group[~np.isnan(group)] for group in groups]
    sign = (1, -1)
    if not all(len(group) for group in defined):
        return Interval(np.nan, np.nan, np.nan)
    mean = sum(s * float(group.mean()) for s, group in zip(sign, defined, strict=False))
    if min(map(len, defined)) < 2:
        return Interval(mean, np.nan, np.nan)
    rng = qdbench.stream(0, "study", len(groups))
    drawn = [group[rng.integers(len(group), size=(RESAMPLES, len(group)))].mean(axis=1) for group in defined]
    spread = sum(s * values for s, values in zip(sign, drawn, strict=False))
    low, high = np.quantile(spread, (0.025, 0.975)).tolist()
    return Interval(mean, low, high)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def without_nan(value: Any) -> Any:
    """Return numbers, lists and dictionaries as strict JSON knows them: what is undefined is null."""
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


# The command line


def seed_list(text: str) -> list[int]:
    """Return the seeds that 0-4 or 0,3,5-7 means."""
    parts = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in parts for seed in range(int(first), int(last or first) + 1)]


Action = Callable[[argparse.Namespace], int | None]
"""Carries out a sub-command; returns how many runs failed, if it makes runs."""


def options_of_run(parser: argparse.ArgumentParser, seeds: str) -> None:
    """Add the options that every `run` has."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of all runs")
    parser.add_argument("--seeds", type=seed_list, default=seed_list(seeds), metavar="0-4")
    parser.add_argument("--workers", type=int, metavar="N", help="threads; all cores unless told")
    for name in ("evaluations", "episode-length", "reevaluations"):
        parser.add_argument(f"--{name}", type=int, metavar="N", help="another size, to try it out")


def options_of_keep(commands: Any, reading: argparse.ArgumentParser, keep: Action) -> None:
    """Add the sub-command `keep`, and what it wrote to the options of `table`."""
    keeping = commands.add_parser("keep")
    keeping.add_argument("--runs", type=Path, required=True, metavar="DIR")
    keeping.add_argument("--kept", type=Path, required=True, metavar="DIR", help="folder of small files")
    keeping.set_defaults(action=keep)
    reading.add_argument("--kept", type=Path, metavar="DIR", help="what `keep` wrote of runs that are gone")


def run_and_table(
    about: str | None,
    run: Action,
    table: Action,
    keep: Action | None = None,
    *,
    seeds: str = "0-2",
    figure: bool = True,
) -> argparse.ArgumentParser:
    """Return the command line of a study with `run`, `table` and perhaps `keep`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running, reading = commands.add_parser("run"), commands.add_parser("table")
    options_of_run(running, seeds)
    running.set_defaults(action=run)
    reading.add_argument("--runs", type=Path, required=True, metavar="DIR")
    reading.set_defaults(action=table)
    if figure:
        reading.add_argument("--png", type=Path, metavar="FILE", help="draw a figure")
    if keep is not None:
        options_of_keep(commands, reading, keep)
    return parser


def command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line; return the exit code."""
    chosen = parser.parse_args(arguments)
    action: Action = chosen.action
    try:
        return 1 if action(chosen) else 0
    except QdbenchError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted. The same command continues.", file=sys.stderr)
        return 130
