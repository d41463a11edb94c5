"""The paper's experiment at laptop scale, from runs of several machines: its findings, judged.

    python -m studies.paper_experiment run --out results/paper_experiment
    python -m studies.paper_experiment keep --runs results/paper_experiment --kept metrics
    python -m studies.paper_experiment table --runs results/paper_experiment --kept metrics

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
from qdbench.paper.protocol import CONTENDERS, REPRODUCED_TASK, SCALES
from studies.campaign import (
    Planned,
    Values,
    carry_out,
    command,
    interval,
    markdown,
    run_and_table,
    sized,
)
from studies.kept import joined, keep, shipped, together

SCALE = SCALES["laptop"]
SHOWN = (
    "coverage", "qd_score", "max_fitness", "corrected_coverage", "corrected_qd_score",
    "corrected_max_fitness", "coverage_loss", "qd_score_loss", "return_rate", "displacement",
)  # fmt: skip
NO_TIMES = "other work ran beside these runs"


def replications(runs: Path, kept: Path | None = None) -> Replications:
    """Return the final metrics of all runs that are known, by variant and metric."""
    known = joined(shipped(REPRODUCED_TASK), together(runs, kept, REPRODUCED_TASK)).get("runs", {})
    found: dict[str, dict[str, Values]] = {}
    for contender in CONTENDERS:
        by_seed = known.get(contender.label, {})
        some = [by_seed[str(seed)] for seed in SCALE.seeds(contender) if str(seed) in by_seed]
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
    scale, done = sized(SCALE, chosen), shipped(REPRODUCED_TASK).get("runs", {})
    task = qdbench.make(REPRODUCED_TASK, episode_length=scale.episode_length)
    planned = [
        Planned(chosen.out, task, contender, seed, scale)
        for seed in chosen.seeds
        for contender in CONTENDERS
        if seed in SCALE.seeds(contender) and str(seed) not in done.get(contender.label, {})
    ]
    return carry_out(planned, chosen.workers)


def table(chosen: argparse.Namespace) -> None:
    """Print the tables."""
    print(as_tables(replications(chosen.runs, chosen.kept)))


if __name__ == "__main__":
    sys.exit(command(run_and_table(__doc__, run, table, keep, seeds="0-19", figure=False)))
