"""Algorithms that know about noise, side by side: equal budgets, true and corrected QD scores.

    python -m studies.noise run --out results/noise
    python -m studies.noise table --runs results/noise --png docs/images/noise.png --json results/noise.json

The tasks are noisy arms, whose truth is known. Each is run on its own grid of 100 × 100 cells, and on one of
25 × 25: the first has 10 evaluations per cell, the second 164. On robots, corrected (docs/noise.md):

    python -m studies.noise run --out results/noise-robots --tasks walker_uni --seeds 0-4
    python -m studies.noise run --out results/noise-robots --tasks ant_omni --seeds 0-4 --k 8

If they cannot all be made in one place, `keep` writes what the table needs of the finished runs:

    python -m studies.noise keep --runs results/noise-robots --kept metrics
    python -m studies.noise table --runs results/noise-robots --kept metrics
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import qdbench
from qdbench.algorithms.registry import find, options
from qdbench.paper.protocol import Contender, Scale
from qdbench.tasks.contract import Task
from studies.campaign import (
    Interval,
    Planned,
    Values,
    carry_out,
    command,
    interval,
    markdown,
    options_of_keep,
    options_of_run,
    sized,
    without_nan,
)
from studies.kept import Runs, gathered, keep

SCALE = Scale(evaluations=102_400, episode_length=250, replications=10, corrections=1, reevaluations=32)
ALGORITHMS = (
    "map_elites", "me_random", "me_sampling", "me_weighted", "me_delta", "deep_grid", "adaptive_sampling",
    "archive_sampling", "parallel_adaptive_sampling", "extract_me",
)  # fmt: skip
BASE = "map_elites"
ARMS = ("arm_noisy_fitness", "arm_noisy_descriptor_3")
GRIDS = (100, 25)
SAMPLED, DEEP = ("me_sampling", "me_weighted", "me_delta"), ("deep_grid", "extract_me", "adaptive_sampling")


def contenders(names: list[str], k: int | None) -> list[Contender]:
    """Return the algorithms; `k` is another number of samples or another depth, of those with many."""
    found = []
    for name in names:
        option = "samples" if name in SAMPLED else "depth" if name in DEEP else ""
        changed = k and option and k != options(find(name))[option].default
        settings = ((option, str(k)),) if changed else ()
        found.append(Contender(name, f"{option}-{k}" if settings else "", settings))
    return found


def variants(names: list[str], episode_length: int) -> list[tuple[str, Task]]:
    """Return the tasks with the folder of each: arms on two grids, robots with shorter episodes."""
    found: list[tuple[str, Task]] = []
    for name in names:
        if name in qdbench.TASKS:
            found.append((name, qdbench.make(name, episode_length=episode_length)))
        else:
            found += [(f"{name}-{n}", qdbench.make(name, cells=(n, n))) for n in GRIDS]
    return found


def run(chosen: argparse.Namespace) -> int:
    """Make all runs, seed by seed: whenever it is stopped, all algorithms have the same seeds."""
    scale = sized(SCALE, chosen)
    planned = [
        Planned(chosen.out / folder, task, _typed(contender), seed, scale)
        for seed in chosen.seeds
        for folder, task in variants(chosen.tasks, scale.episode_length)
        for contender in contenders(chosen.algorithms, chosen.k)
    ]
    return carry_out(planned, chosen.workers)


def _typed(contender: Contender) -> Contender:
    numbers: Any = tuple((name, int(value)) for name, value in contender.settings)  # `run` takes numbers
    return replace(contender, settings=numbers)


METRICS = (
    "coverage", "qd_score", "corrected_coverage", "corrected_qd_score", "qd_score_loss", "true_qd_score",
    "true_coverage", "seconds",
)  # fmt: skip


def read(runs: Path, kept: Path | None = None) -> dict[str, dict[str, dict[str, Interval]]]:
    """Return the metrics of every algorithm, by task: means over seeds with their 95 % intervals."""
    return {name: summary(columns(found)) for name, found in gathered(runs, kept).items()}


def columns(runs: Runs) -> dict[str, dict[str, Values]]:
    """Return the metrics of every algorithm over its seeds; also steps and time relative to MAP-Elites'."""
    found = {}
    for label, by_seed in runs.items():
        found[label] = {
            name: np.array([run[name] for run in by_seed.values()], np.float64) for name in METRICS
        }
        base = runs.get(BASE, {})
        pairs = [(run, base.get(seed)) for seed, run in by_seed.items()]
        found[label]["relative_steps"] = np.array([_steps(*pair) for pair in pairs], np.float64)
        found[label]["relative_time"] = np.array([_time(*pair) for pair in pairs], np.float64)
    return found


def _steps(run: dict[str, Any], base: dict[str, Any] | None) -> float:
    """Return the control steps of a run relative to another's."""
    return float(run["steps"] / base["steps"]) if base and base["steps"] else np.nan


def _time(run: dict[str, Any], base: dict[str, Any] | None) -> float:
    """Return the time of a run relative to another's; NaN if they were not made in the same place."""
    if base is None or _place(run) != _place(base) or "continued_elsewhere" in run["made"]:
        return np.nan
    return float(run["seconds"] / base["seconds"])


def _place(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run["made"].items() if name != "date"}


def summary(values: dict[str, dict[str, Values]]) -> dict[str, dict[str, Interval]]:
    """Return means with intervals; also the difference to MAP-Elites, in the true score if it is known."""
    found: dict[str, dict[str, Interval]] = {}
    for label, columns in values.items():
        found[label] = {name: interval(column) for name, column in columns.items()}
        found[label]["n"] = Interval(len(columns["qd_score"]), np.nan, np.nan)
        if BASE in values:
            known = np.isfinite(columns["true_qd_score"]).all()
            score = "true_qd_score" if known else "corrected_qd_score"
            found[label]["over"] = interval(columns[score], values[BASE][score])
    return found


def table(chosen: argparse.Namespace) -> None:
    """Print one table per task, and draw the figure."""
    results = read(chosen.runs, chosen.kept)
    for name, found in results.items():
        print(f"\n{name}\n")
        order = sorted(found, key=lambda label: -_score(found[label]).mean)
        shown = columns_of(found)
        rows = [
            [
                label,
                *(found[label][metric].words(form) for metric, form in shown.values()),
                found[label]["over"].words("+,.4g") if label != BASE and "over" in found[label] else "-",
                *(found[label][f"relative_{what}"].words(".2f") for what in ("steps", "time")),
                f"{found[label]['n'].mean:.0f}",
            ]
            for label in order
        ]
        print(markdown(["algorithm", *shown, f"minus {BASE}", f"steps / {BASE}'s", "time", "seeds"], rows))
    if chosen.json:
        plain = {t: {a: {m: vars(i) for m, i in v.items()} for a, v in f.items()} for t, f in results.items()}
        chosen.json.write_text(json.dumps(without_nan(plain), indent=1))
    if chosen.png:
        draw(results, chosen.png)


def columns_of(found: dict[str, dict[str, Interval]]) -> dict[str, tuple[str, str]]:
    """Return the metrics of a table by their titles, each with its format; of robots no truth is known."""
    known = any(not np.isnan(one["true_qd_score"].mean) for one in found.values())
    truth = {"true": "true_qd_score", "true coverage": "true_coverage"}
    scores = {"QD score": "qd_score", "corrected": "corrected_qd_score"}
    scores |= truth if known else {"corrected coverage": "corrected_coverage"}
    return {title: (name, ",.4g") for title, name in scores.items()} | {"loss": ("qd_score_loss", ".1%")}


def _score(found: dict[str, Interval]) -> Interval:
    true = found["true_qd_score"]
    return found["corrected_qd_score"] if np.isnan(true.mean) else true


def draw(results: dict[str, dict[str, Interval]] | dict[str, Any], path: Path) -> None:
    """Draw what each algorithm claims, what re-evaluations leave of it, and the truth."""
    from matplotlib.figure import Figure

    from qdbench.reports.style import looks, style

    with style():
        n = len(results)
        figure: Any = Figure(figsize=(7.2, 0.6 + 2.6 * ((n + 1) // 2)), layout="constrained")
        panels = figure.subplots((n + 1) // 2, 2, squeeze=False).flat
        marks = {
            "qd_score": ("claimed (stored)", "o", "#bbbbbb", "none"),
            "corrected_qd_score": ("corrected", "s", "#0072b2", "none"),
            "true_qd_score": ("true", "D", "#d55e00", "#d55e00"),
        }
        for panel, (name, found) in zip(panels, sorted(results.items()), strict=False):
            order = sorted(found, key=lambda label: _score(found[label]).mean)
            for metric, (label, marker, colour, inside) in marks.items():
                values = [found[one][metric] for one in order]
                means = np.array([value.mean for value in values])
                if np.isnan(means).all():  # the truth of robots
                    continue
                ends = np.array([[v.mean - v.low, v.high - v.mean] for v in values]).T
                panel.errorbar(
                    means, np.arange(len(order)), xerr=np.nan_to_num(ends), fmt=marker, color=colour, ms=4,
                    markerfacecolor=inside, label=label, linewidth=1,
                )  # fmt: skip
            names = looks(order)
            panel.set_yticks(np.arange(len(order)), [names[label].name for label in order])
            panel.set(title=_title(name), xlabel="QD score")
            panel.set_xlim(left=0)
            panel.grid(axis="x")
        for panel in list(figure.axes)[n:]:
            panel.remove()
        drawn = [panel.get_legend_handles_labels() for panel in figure.axes]
        named = {label: handle for some in drawn for handle, label in zip(*some, strict=True)}
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))
        figure.savefig(path, dpi=200)


def _title(folder: str) -> str:
    task, _, cells = folder.rpartition("-")
    return f"{task}, {cells} \N{MULTIPLICATION SIGN} {cells} cells" if cells.isdigit() else folder


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    running, reading = commands.add_parser("run"), commands.add_parser("table")
    options_of_run(running, "0-9")
    running.add_argument("--tasks", nargs="+", default=list(ARMS), metavar="TASK")
    running.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    running.add_argument(
        "--k", type=int, metavar="N", help=f"samples of {', '.join(SAMPLED)}; depth of {', '.join(DEEP)}"
    )
    running.set_defaults(action=run)
    reading.add_argument("--png", type=Path, metavar="FILE")
    reading.add_argument("--json", type=Path, metavar="FILE")
    reading.set_defaults(action=table)
    reading.add_argument("--runs", type=Path, required=True, metavar="DIR")
    options_of_keep(commands, reading, keep)
    return found


if __name__ == "__main__":
    raise SystemExit(command(parser()))
