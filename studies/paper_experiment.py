"""The paper's experiment at laptop scale, from runs of several machines: its findings, judged.

    python -m studies.paper_experiment run --out results/paper_experiment
    python -m studies.paper_experiment keep --runs results/paper_experiment --kept digests
    python -m studies.paper_experiment table --runs results/paper_experiment --kept digests

`qdbench reproduce --scale laptop` makes all runs in one place, with figures, and judges times, too. Here the
runs that are shipped as reference results (seeds 0-4) are not made again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import qdbench
from qdbench.metrics.metric import METRICS
from qdbench.paper.findings import findings
from qdbench.paper.intervals import Replications
from qdbench.paper.protocol import CONTENDERS, REPRODUCED_TASK, SCALES, Contender
from studies.campaign import (
    Planned,
    Values,
    carry_out,
    command,
    interval,
    markdown,
    options_of_keep,
    options_of_run,
    sized,
)
from studies.kept import gathered, keep

SCALE = SCALES["laptop"]
SHOWN = (
    "coverage", "qd_score", "max_fitness", "corrected_coverage", "corrected_qd_score",
    "corrected_max_fitness", "coverage_loss", "qd_score_loss", "return_rate", "displacement",
)  # fmt: skip
NO_TIMES = "the runs were made on several machines"


def shipped(contender: Contender) -> dict[int, dict[str, float]]:
    """Return the metrics of the reference runs of a contender by seed."""
    wanted = ("standard", REPRODUCED_TASK, contender.label)
    every = (one for one in qdbench.references() if (one.scale.name, one.task.name, one.variant) == wanted)
    return {run.seed: dict(one.values_of(run)) for one in every for run in one.runs}


def replications(runs: Path, kept: Path | None = None) -> Replications:
    """Return the final metrics of all runs that are known, by variant and metric."""
    made = gathered(runs, kept).get(REPRODUCED_TASK, {})
    found: dict[str, dict[str, Values]] = {}
    for contender in CONTENDERS:
        here = {int(seed): run for seed, run in made.get(contender.label, {}).items()}
        by_seed = here | shipped(contender)
        some = [by_seed[seed] for seed in sorted(by_seed) if seed in SCALE.seeds(contender)]
        if some:
            found[contender.label] = {
                name: np.array([one[name] for one in some], np.float64) for name in SHOWN
            }
    return found


def as_tables(found: Replications) -> str:
    """Return the metrics of all contenders, the verdicts, and what is missing, as Markdown."""
    rows = [
        [METRICS[name].title, *(interval(columns[name]).words(_form(name)) for columns in found.values())]
        for name in SHOWN
    ]
    counts = {label: len(columns[SHOWN[0]]) for label, columns in found.items()}
    metrics = markdown(["metric", *(f"{label}, {n} seeds" for label, n in counts.items())], rows)
    judged = [[one.claim, f"**{one.verdict}**", "; ".join(one.numbers)] for one in findings(found, NO_TIMES)]
    missing = [
        f"{one.label}: {len(SCALE.seeds(one)) - counts.get(one.label, 0)}"
        for one in CONTENDERS
        if counts.get(one.label, 0) < len(SCALE.seeds(one))
    ]
    parts = [metrics, markdown(["the paper says", "verdict", "the numbers"], judged)]
    return "\n\n".join([*parts, *([f"Seeds to be made: {', '.join(missing)}"] if missing else [])])


def _form(metric: str) -> str:
    return ".1%" if metric.endswith(("_loss", "_rate")) else ",.4g"


def run(chosen: argparse.Namespace) -> int:
    """Make the runs that are not shipped, seed by seed."""
    scale = sized(SCALE, chosen)
    task = qdbench.make(REPRODUCED_TASK, episode_length=scale.episode_length)
    planned = [
        Planned(chosen.out, task, contender, seed, scale)
        for seed in chosen.seeds
        for contender in CONTENDERS
        if seed in SCALE.seeds(contender) and seed not in shipped(contender)
    ]
    return carry_out(planned, chosen.workers)


def parser() -> argparse.ArgumentParser:
    """Return the command line of this study."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    running, reading = commands.add_parser("run"), commands.add_parser("table")
    options_of_run(running, "0-19")
    running.set_defaults(action=run)
    reading.add_argument("--runs", type=Path, required=True, metavar="DIR")
    reading.set_defaults(action=lambda chosen: print(as_tables(replications(chosen.runs, chosen.kept))))
    options_of_keep(commands, reading, keep)
    return found


if __name__ == "__main__":
    sys.exit(command(parser()))
