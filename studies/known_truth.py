"""How far corrected metrics are from the truth, by noise, cell size and number of re-evaluations.

    python -m studies.known_truth --json results/known_truth.json --png docs/images/known-truth.png

MAP-Elites fills grids of the arm under Gaussian noise on the descriptor, with and without noise on the
fitness. The expected fitness and descriptor of every elite are known, so the archive of all elites at their
expected values is the truth. Re-evaluations are drawn from the noise itself, which has the same distribution
as evaluating the elites again. An error is (estimate - truth) / truth.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench import Evaluated, FunctionTask, Grid, Problem, stream
from qdbench.algorithms.map_elites import MapElites
from qdbench.metrics.robustness import Reevaluations, corrected_archive, extrapolated, placed
from qdbench.metrics.scores import scores
from qdbench.seeds import numbered_seeds
from qdbench.tasks.known_truth import ARM_FITNESS, UNIT_SQUARE, Noise, Noisy, arm
from studies.campaign import interval, markdown, without_nan

EVALUATIONS, BATCH = 51_200, 256
DESCRIPTOR = (0.003, 0.01, 0.03, 0.1)
FITNESS = (0.0, 0.1)
CELLS = (25, 50, 100)
COUNTS = (8, 16, 50, 512)
WIDTH = ARM_FITNESS[1] - ARM_FITNESS[0]
TIMES = " \N{MULTIPLICATION SIGN} "
Row = dict[str, float]


def task(noise: Noise, cells: int) -> FunctionTask:
    """Return the arm with this noise."""
    function = Noisy(arm, ARM_FITNESS, UNIT_SQUARE, noise)
    return FunctionTask(
        name="arm", version=1, function=function, truth=function.truth, noisy=True, n_parameters=8,
        descriptor_bounds=UNIT_SQUARE, cells=(cells, cells), fitness_bounds=ARM_FITNESS,
        initial_bounds=(0.0, 1.0), solution_bounds=(0.0, 1.0),
    )  # fmt: skip


def elites(problem: FunctionTask, seed: int, evaluations: int) -> Evaluated:
    """Return what MAP-Elites finds."""
    algorithm = MapElites(
        Problem(
            n_parameters=8,
            descriptor_bounds=problem.descriptor_bounds,
            cells=problem.cells,
            fitness_bounds=problem.fitness_bounds,
            random_solutions=problem.random_solutions,
        ),
        seed,
        batch_size=BATCH,
    )
    for first in range(0, evaluations, BATCH):
        solutions, seeds = algorithm.ask(), numbered_seeds(seed, "evaluations", first=first, n=BATCH)
        found = problem.evaluate(solutions, seeds)
        numbers = np.arange(first, first + BATCH)[:, None]
        algorithm.tell(Evaluated(solutions, found.fitness, found.descriptors, numbers, seeds[:, None]))
    return algorithm.collection()


def errors(noise: Noise, cells: int, seed: int, evaluations: int) -> list[Row]:
    """Return the errors of one archive, for every number of re-evaluations."""
    problem = task(noise, cells)
    found, grid = elites(problem, seed, evaluations), Grid(UNIT_SQUARE, (cells, cells))
    fitness, descriptors = problem.expected(found.solutions)
    truth = scores(placed(grid, fitness, descriptors).elites.fitness, ARM_FITNESS)
    again = _again(fitness, descriptors, noise, seed)
    stored = scores(found.fitness, ARM_FITNESS)
    rows: list[Row] = []
    for n in COUNTS:
        some = again[:n]
        after = scores(corrected_archive(grid, some).elites.fitness, ARM_FITNESS)
        limit = extrapolated(grid, some, ARM_FITNESS)
        rows.append(
            {
                "descriptor": noise.descriptor, "fitness": noise.fitness, "cells": cells, "seed": seed,
                "n": n,
                "stored": stored.qd_score / truth.qd_score - 1,
                "stored_coverage": stored.coverage / truth.coverage - 1,
                "corrected": after.qd_score / truth.qd_score - 1,
                "corrected_coverage": after.coverage / truth.coverage - 1,
                "extrapolated": limit.qd_score / truth.qd_score - 1,
                "extrapolated_coverage": limit.coverage / truth.coverage - 1,
            }
        )  # fmt: skip
    return rows


def _again(
    fitness: NDArray[np.float64], descriptors: NDArray[np.float64], noise: Noise, seed: int
) -> Reevaluations:
    """Draw as many re-evaluations as the largest count, of every elite."""
    rng, most, n = stream(seed, "again"), max(COUNTS), len(fitness)
    drawn = rng.standard_normal((n, most, 2), np.float32).astype(np.float64)
    luck = rng.standard_normal((n, most), np.float32).astype(np.float64)
    return Reevaluations(
        fitness[:, None] + noise.fitness * WIDTH * luck, descriptors[:, None] + noise.descriptor * drawn
    )


def printed(rows: list[Row]) -> str:
    """Return the table: errors of the QD score, means over seeds with 95 % intervals."""
    lines = []
    for of_fitness in FITNESS:
        for cells in CELLS:
            for of_descriptor in DESCRIPTOR:
                same = _some(rows, fitness=of_fitness, cells=cells, descriptor=of_descriptor)
                if not same:
                    continue
                line = [
                    f"{of_fitness:g}",
                    f"{cells}{TIMES}{cells}",
                    f"{of_descriptor:g}",
                    f"{of_descriptor * cells:.2g}",
                ]
                line.append(_words([r["stored"] for r in same]))
                line += [_words([r["corrected"] for r in _some(same, n=n)]) for n in COUNTS]
                line += [_words([r["extrapolated"] for r in _some(same, n=n)]) for n in (16, 50)]
                lines.append(line)
    header = ["fitness noise", "cells", "descriptor noise", "in cells", "stored"]
    header += [f"N = {n}" for n in COUNTS] + ["extrapolated, N = 16", "extrapolated, N = 50"]
    return markdown(header, lines)


def _some(rows: list[Row], **wanted: float) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _words(values: list[float]) -> str:
    return f"{interval(np.array(values)).mean:+.1%}"


def draw(rows: list[Row], path: Path) -> None:
    """Draw the errors: of the finest grid by N, of all by the remaining noise, and extrapolated ones."""
    from matplotlib.figure import Figure

    from qdbench.reports.style import style

    colours = dict(zip(DESCRIPTOR, ("#0072b2", "#009e73", "#e69f00", "#d55e00"), strict=True))
    markers = dict(zip(CELLS, ("o", "s", "D"), strict=True))
    finest = int(max(row["cells"] for row in rows))
    with style():
        figure: Any = Figure(figsize=(7.2, 5.0), layout="constrained")
        (first, second), (third, fourth) = figure.subplots(2, 2)
        for panel, name, title in (
            (first, "corrected", f"a  corrected QD score, {finest}{TIMES}{finest} cells"),
            (second, "extrapolated", "b  extrapolated from N and N/2"),
        ):
            for sigma in DESCRIPTOR:
                for of_fitness, line in zip(FITNESS, ("-", "--"), strict=True):
                    same = _some(rows, cells=finest, descriptor=sigma, fitness=of_fitness)
                    if not same:
                        continue
                    found = [interval(np.array([r[name] for r in _some(same, n=n)])) for n in COUNTS]
                    means = [100 * one.mean for one in found]
                    label = f"{sigma * finest:.2g} cells" if line == "-" else None
                    panel.plot(COUNTS, means, line, marker="o", ms=3, color=colours[sigma], label=label)
                    low, high = ([100 * getattr(one, end) for one in found] for end in ("low", "high"))
                    panel.fill_between(COUNTS, low, high, color=colours[sigma], alpha=0.15, linewidth=0)
            panel.axhline(0, color="black", linewidth=0.7)
            panel.set(xscale="log", xlabel="re-evaluations N", ylabel="error of the QD score (%)")
            panel.set_xticks(COUNTS, map(str, COUNTS))
            panel.minorticks_off()
            panel.set_title(title, loc="left")
        second.set_ylim(first.get_ylim())
        first.legend(title="descriptor noise\n(dashed: and 0.1\non fitness)", fontsize="small")
        for panel, name, title in (
            (third, "corrected", "c  corrected coverage, all grids"),
            (fourth, "extrapolated", "d  extrapolated coverage, all grids"),
        ):
            for row in _some(rows, fitness=0.0):
                left = row["descriptor"] * row["cells"] / np.sqrt(row["n"])
                panel.plot(
                    [left], [100 * row[f"{name}_coverage"]], markers[int(row["cells"])], ms=3, alpha=0.7,
                    color=colours[row["descriptor"]], markerfacecolor="none",
                )  # fmt: skip
            panel.axhline(0, color="black", linewidth=0.7)
            panel.set(xscale="log", xlabel="noise of the mean descriptor (cells): noise / √N")
            panel.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
            panel.set(ylabel="error of the coverage (%)")
            panel.set_title(title, loc="left")
        for cells, marker in markers.items():
            third.plot([], [], marker, color="grey", markerfacecolor="none", label=f"{cells}{TIMES}{cells}")
        third.legend(fontsize="small")
        fourth.set_ylim(third.get_ylim())
        figure.savefig(path, dpi=200)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--cells", type=int, nargs="+", default=CELLS, choices=CELLS)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep all numbers; read them if they are there"
    )
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw the figure")
    chosen = parser.parse_args(arguments)
    if chosen.json and chosen.json.exists():
        rows: list[Row] = json.loads(chosen.json.read_text())
    else:
        rows = [
            row
            for seed in range(chosen.seeds)
            for of_fitness in FITNESS
            for sigma in DESCRIPTOR
            for cells in chosen.cells
            for row in errors(Noise(fitness=of_fitness, descriptor=sigma), cells, seed, chosen.evaluations)
        ]
        if chosen.json:
            chosen.json.write_text(json.dumps(without_nan(rows)))
    print(printed(rows))
    if chosen.png:
        draw(rows, chosen.png)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
