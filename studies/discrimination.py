"""Does a task tell algorithms apart? Six contenders on every task, at the same small scale.

    python -m studies.discrimination pilot --out results/pilot        # seed 100, without re-evaluations
    python -m studies.discrimination calibrate --runs results/pilot   # proposed score intervals
    python -m studies.discrimination run --out results/standard       # seeds 0-4; about 15 hours of two cores
    python -m studies.discrimination table --runs results/standard --json discrimination.json

If it cannot all be made in one place, keep what the study needs of the finished runs, and go on elsewhere:

    python -m studies.discrimination keep --runs results/standard --kept digests
    python -m studies.discrimination table --runs results/standard --kept digests

A task passes if all three hold for MAP-Elites:
(a) its corrected QD score is above that of random search: the interval of the difference lies above 0;
(b) its archive still grows: in the last quarter of the budget, mean coverage or mean QD score grows by 2 % or
    more, and the interval of this growth lies above 0;
(c) on the cells that it and novelty search both fill, its mean normalised fitness is higher by 0.1 or more,
    and the interval of the difference (paired by seed) lies above 0.
Intervals are 95 % percentile bootstraps over seeds; with 5 seeds they are too narrow (docs/reproduction.md).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import qdbench
from qdbench.errors import QdbenchError
from qdbench.metrics.metric import METRICS
from qdbench.metrics.numbers import percent, significant
from qdbench.metrics.scores import scores
from studies.campaign import (
    CONTENDERS,
    STANDARD,
    Interval,
    Planned,
    Values,
    carry_out,
    command,
    interval,
    markdown,
    measured,
    options_of_keep,
    options_of_run,
    seed_list,
    sized,
    standard,
    without_nan,
)
from studies.digests import GROWN, SHOWN, Digest, Digests, Elites, digest, digests
from studies.kept import keep, together

TASKS = (
    "hexapod_omni", "humanoid_omni", "hexapod_uni", "walker_uni", "ant_omni", "humanoid_uni",
    "halfcheetah_uni", "hopper_uni", "ant_uni",
)  # fmt: skip
"""The most telling first."""
PILOT = ("map_elites", "cvt_map_elites", "random_search")
GROWING = 0.02
FITTER = 0.1
FITTER_THAN = ("map_elites", "novelty_search")
Pair = Sequence[dict[int, Elites]]
"""Elites by seed, of MAP-Elites and of novelty search."""


# What is computed: everything that the tables show, ready for JSON


def summary(
    runs: Path, tasks: Sequence[str], seeds: Sequence[int], kept: Path | None = None
) -> dict[str, Any]:
    """Return all numbers of the study, by task; of a task without runs only what is missing."""
    found: dict[str, Any] = {}
    for name in tasks:
        try:
            known = together(runs, kept, name, digest)
        except QdbenchError as error:  # the other tasks are shown
            found[name] = {"missing": [str(error)]}
            continue
        some = digests(known).chosen(seeds) if known else None
        found[name] = {"missing": missing(some, seeds)}
        found[name] |= of_task(some) if some is not None and some.runs else {}
    return found


def missing(known: Digests | None, seeds: Sequence[int]) -> list[str]:
    """Return which runs of one task are not finished, in words."""
    done = set() if known is None else {run.key for run in known.runs}
    found = []
    for name in CONTENDERS:
        left = [str(seed) for seed in seeds if (name, seed) not in done]
        if left:
            found.append(f"{name}: seed{'s' * (len(left) > 1)} {', '.join(left)}")
    return found


def of_task(task: Digests) -> dict[str, Any]:
    """Return the numbers and verdicts of one task."""
    by_name = {name: runs for name in CONTENDERS if (runs := task.of(name))}
    rows = {name: [run.row() for run in runs] for name, runs in by_name.items()}
    columns = {name: {key: [row[key] for row in some] for key in some[0]} for name, some in rows.items()}
    reached = np.unique(np.concatenate([run.stored.cells for run in task.runs]))
    judged_pair = [task.of(name) for name in FITTER_THAN]
    stored = [{run.seed: run.stored for run in runs} for runs in judged_pair]
    after = [{run.seed: run.corrected for run in runs} for runs in judged_pair]
    n_cells = prod(task.shape)
    return {
        "interval": list(task.interval),
        "cells": n_cells,
        "contenders": columns,
        "correlation": {name: correlations(runs) for name, runs in by_name.items()},
        "grid_reached": len(reached) / n_cells,
        "border": border_share(task),
        "verdicts": {
            "a": above_random(columns),
            "b": still_growing(columns),
            "c": fitter_than_novel(stored, after, task.interval),
        },
    }


def correlations(runs: Sequence[Digest]) -> dict[str, float]:
    """Return how QD score and coverage go together: over all iterations of all runs, and over their ends."""
    return {
        "iterations": correlation(np.concatenate([run.curves for run in runs], axis=1)),
        "runs": correlation(np.stack([run.curves[:, -1] for run in runs], axis=1)),
    }


def correlation(pairs: Values) -> float:
    """Return Pearson's correlation of two rows; NaN with fewer than three columns or a constant row."""
    if pairs.shape[1] < 3 or not pairs.std(axis=1).all():
        return np.nan
    return float(np.asarray(np.corrcoef(pairs))[0, 1])


def border_share(task: Digests) -> float:
    """Return the share of MAP-Elites' elites in border cells; NaN where no descriptor lies outside."""
    ours = task.of("map_elites")
    if not task.has_border or not ours:
        return np.nan
    along = np.stack(np.unravel_index(np.concatenate([run.stored.cells for run in ours]), task.shape))
    last = np.array(task.shape)[:, None] - 1
    return float(((along == 0) | (along == last)).any(axis=0).mean())


# The three verdicts


def above_random(columns: dict[str, Any]) -> dict[str, Any]:
    """(a) The corrected QD score of MAP-Elites minus that of random search."""
    groups = [_column(columns, name, "corrected_qd_score") for name in ("map_elites", "random_search")]
    return judged(interval(*groups), 0.0)


def still_growing(columns: dict[str, Any]) -> dict[str, Any]:
    """(b) The growth of MAP-Elites' archive in the last quarter: coverage or QD score, whichever is more."""
    grown = {
        name: interval(_column(columns, "map_elites", f"{name}_growth_since_three_quarters"))
        for name in GROWN
    }
    found = {name: judged(one, GROWING) for name, one in grown.items()}
    best = max(GROWN, key=lambda name: (found[name]["passes"] or False, np.nan_to_num(grown[name].mean)))
    return {"metric": best, **found[best]}


def fitter_than_novel(stored: Pair, after: Pair, bounds: tuple[float, float]) -> dict[str, Any]:
    """(c) Mean normalised fitness of MAP-Elites minus novelty search's, on the cells that both fill.

    Beside it, and not judged, the same for corrected archives.
    """
    return {
        **judged(on_common_cells(stored, bounds), FITTER),
        "corrected": asdict(on_common_cells(after, bounds)),
    }


def on_common_cells(pair: Pair, bounds: tuple[float, float]) -> Interval:
    """Return the difference of mean normalised fitness on the cells that both fill, over common seeds."""
    found = []
    for seed in sorted(pair[0].keys() & pair[1].keys()):
        a, b = (one[seed] for one in pair)
        both, in_a, in_b = np.intersect1d(a.cells, b.cells, return_indices=True)
        more, less = (scores(one, bounds).qd_score for one in (a.fitness[in_a], b.fitness[in_b]))
        found.append((more - less) / len(both) if len(both) else np.nan)
    return interval(np.array(found, np.float64))


def judged(found: Interval, least: float) -> dict[str, Any]:
    """Return an interval with its verdict: the mean is at least `least` and the interval lies above 0."""
    undecided = np.isnan(found.low)
    return {**asdict(found), "passes": None if undecided else bool(found.mean >= least and found.low > 0)}


def _column(columns: dict[str, Any], contender: str, name: str) -> Values:
    return np.array(columns.get(contender, {}).get(name, []), np.float64)


# How it is shown


def tables(found: dict[str, Any]) -> str:
    """Return the Markdown tables of a summary, and what is missing."""
    parts = [contenders_table(found), verdicts_table(found)]
    gaps = [f"- {task}: {'; '.join(one['missing'])}" for task, one in found.items() if one["missing"]]
    return "\n\n".join([*parts, *(["Not finished:\n\n" + "\n".join(gaps)] if gaps else [])])


def contenders_table(found: dict[str, Any]) -> str:
    """Means over seeds, a row per task and contender."""
    header = ["task", "algorithm", "seeds", *(METRICS[n].title if n in METRICS else n for n in SHOWN)]
    header += ["coverage since half the budget", "QD score since half the budget"]
    rows = []
    for task, numbers in found.items():
        for name, columns in numbers.get("contenders", {}).items():
            means = {key: _mean(values) for key, values in columns.items()}
            shares = ("alive_share", "return_rate")
            shown = [percent(means[n], 0) if n in shares else significant(means[n]) for n in SHOWN]
            grown = [percent(means[f"{n}_growth_since_half"], 0) for n in GROWN]
            rows.append([task, name, str(len(columns["seed"])), *shown, *grown])
    return markdown(header, rows)


def verdicts_table(found: dict[str, Any]) -> str:
    """A row per task: reach, correlations, verdicts."""
    header = [
        "task", "grid reached", "elites in border cells", "correlation of QD score and coverage: iterations",
        "runs", "(a) above random search", "(b) still grows", "(c) fitter than novelty search", "passes",
    ]  # fmt: skip
    rows = []
    for task, numbers in found.items():
        if "verdicts" not in numbers:
            continue
        a, b, c = (numbers["verdicts"][key] for key in "abc")
        together = numbers["correlation"].get("map_elites", {"iterations": np.nan, "runs": np.nan})
        verdicts = [one["passes"] for one in (a, b, c)]
        passes = None if None in verdicts and False not in verdicts else all(verdicts)
        rows.append(
            [
                task,
                percent(numbers["grid_reached"], 1),
                percent(numbers["border"], 1),
                *("-" if np.isnan(together[key]) else f"{together[key]:.3f}" for key in together),
                _words(a, ",.4g"),
                f"{METRICS[b['metric']].title} {_words(b, '+.1%')}",
                f"{_words(c, '+.2f')}; corrected {Interval(**c['corrected']).words('+.2f')}",
                _yes(passes),
            ]
        )
    return markdown(header, rows)


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


def _words(verdict: dict[str, Any], form: str) -> str:
    found = Interval(verdict["mean"], verdict["low"], verdict["high"])
    return f"{_yes(verdict['passes'])}: {found.words(form)}"


def _yes(passes: bool | None) -> str:
    return {True: "yes", False: "no", None: "undecided"}[passes]


# Calibration of the score intervals


def calibration(runs: Path, tasks: Sequence[str]) -> str:
    """Return the proposed `fitness_per_step` of every task, as a Markdown table, and what is missing."""
    header = [
        "task", "1st percentile of the elites' fitness", "best fitness", "both per step", "fitness_per_step",
    ]  # fmt: skip
    rows, gaps = [], []
    for name in tasks:
        task = measured(runs / name)
        pools = [] if task is None else [of for of in map(_pool, task.variants) if of is not None]
        if task is None or len(pools) < len(PILOT):
            gaps.append(name)
            continue
        steps = task.runs[0].record.task.options["episode_length"]
        low = first_percentile(pools)
        high = max(run.record.totals.highest_fitness for run in task.runs)
        per_step = f"{low / steps:.4g} … {high / steps:.4g}"
        proposed = f"({outwards(low / steps, up=False)}, {outwards(high / steps, up=True)})"
        rows.append([name, significant(low), significant(high), per_step, proposed])
    table = markdown(header, rows)
    return f"{table}\n\nNot finished: {', '.join(gaps)}" if gaps else table


def _pool(variant: Any) -> Values | None:
    """Return the fitness of all final elites of one of the pilot's algorithms; None for another one."""
    return np.concatenate([run.fitness for run in variant.runs]) if variant.label in PILOT else None


def first_percentile(pools: Sequence[Values]) -> float:
    """Return the 1st percentile of pooled values, where every pool has the same weight."""
    weights = np.concatenate([np.full(len(pool), 1 / len(pool)) for pool in pools])
    return float(np.quantile(np.concatenate(pools), 0.01, weights=weights, method="inverted_cdf"))


def outwards(value: float, *, up: bool) -> str:
    """Return a number with two significant digits, rounded up or down."""
    exact = Decimal(repr(float(value)))
    unit = Decimal(1).scaleb(exact.adjusted() - 1)
    return f"{float(exact.quantize(unit, rounding=ROUND_CEILING if up else ROUND_FLOOR)):g}"


# The command line


def run(chosen: argparse.Namespace) -> int:
    """Make the runs of the study or of its pilot."""
    scale = sized(replace(STANDARD, corrections=chosen.corrections), chosen)
    planned = [
        Planned(
            chosen.out,
            qdbench.make(task, episode_length=scale.episode_length),
            CONTENDERS[name],
            seed,
            standard(task, scale),
        )
        for task in chosen.tasks
        for seed in chosen.seeds
        for name in chosen.algorithms
    ]
    return carry_out(planned, chosen.workers)


def table(chosen: argparse.Namespace) -> None:
    """Print the tables; write all numbers as JSON."""
    found = summary(chosen.runs, chosen.tasks, chosen.seeds, chosen.kept)
    if chosen.json:
        chosen.json.write_text(json.dumps(without_nan(found), indent=1) + "\n")
    print(tables(found))


def parser() -> argparse.ArgumentParser:
    """Return the command line of this study."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    for name, names, seeds, corrections in (
        ("run", tuple(CONTENDERS), "0-4", STANDARD.corrections),
        ("pilot", PILOT, "100", 0),
    ):
        one = commands.add_parser(name)
        options_of_run(one, seeds)
        one.add_argument("--algorithms", nargs="+", default=names, choices=CONTENDERS, metavar="NAME")
        one.set_defaults(action=run, corrections=corrections)
    one = commands.add_parser("table")
    one.add_argument("--seeds", type=seed_list, default=seed_list("0-4"), metavar="0-4")
    one.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    one.set_defaults(action=table)
    options_of_keep(commands, one, lambda chosen: keep(chosen, digest))
    two = commands.add_parser("calibrate")
    two.set_defaults(action=lambda chosen: print(calibration(chosen.runs, chosen.tasks)))
    for reading in (one, two):
        reading.add_argument("--runs", type=Path, required=True, metavar="DIR")
    for sub in commands.choices.values():
        sub.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS, metavar="TASK")
    return found


if __name__ == "__main__":
    sys.exit(command(parser()))
