"""How often do intervals of few seeds contain the truth, and how often do tests err? Simulated normal values.

    python studies/few_seeds.py --repeats 4000

All intervals, anchors, bounds and tests are those of the package. Every trial has a random stream of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import norm

from qdbench import stream
from qdbench.analysis.aggregate import Anchor
from qdbench.analysis.statistics import (
    RESAMPLES,
    SIGNIFICANT,
    Bounds,
    Values,
    difference_interval,
    estimate,
    improvement_interval,
    mean_interval,
    stratified_test,
)
from qdbench.paper.findings import ALIKE
from qdbench.paper.intervals import inside, interval, mean, ratio

SEEDS = 5
VARIATION = 0.15
"""The coefficient of variation of coverage and QD score over seeds: about what we saw."""
SCORE, DEVIATION = 1.5, 0.3
"""The true normalised score on every task, and the deviation of its seeds; random search 0, MAP-Elites 1."""
X = ("x",)
Rng = np.random.Generator


def holds(truth: float, ends: Bounds) -> bool:
    return ends[0] <= truth <= ends[1]


def tasks(rng: Rng, n_tasks: int, centre: float = 0.0, deviation: float = 1.0) -> list[Values]:
    """Return the values of five seeds on every task."""
    return list(rng.normal(centre, deviation, (n_tasks, SEEDS)))


def mean_held(n: int, rng: Rng) -> bool:
    """The 95 % interval of the mean of `n` seeds contains the true mean."""
    found = interval(mean, {"a": {"x": rng.normal(size=n)}}, ("a", X), fewest=2)
    return holds(0.0, (found.low, found.high))


def iqm_held(n: int, rng: Rng) -> bool:
    """The 95 % interval of the interquartile mean of `n` seeds contains the true mean."""
    found = estimate(rng.normal(size=n), rng)
    return holds(0.0, (found.low, found.high))


def improvement_held(n_tasks: int, apart: float, rng: Rng) -> bool:
    """The interval of P(A > B) over tasks contains it; A is `apart` standard deviations above B."""
    ends = improvement_interval(tasks(rng, n_tasks, apart), tasks(rng, n_tasks), rng)
    return holds(float(norm.cdf(apart / 2**0.5)), ends)


def score_held(n_tasks: int, exact: bool, rng: Rng) -> bool:
    """The interval of the normalised score contains it; anchors are exact, or means of five seeds each."""
    strata = []
    for values in tasks(rng, n_tasks, SCORE, DEVIATION):
        zero, one = (tasks(rng, 1, centre, DEVIATION)[0].mean() for centre in (0, 1))
        anchor = Anchor(0.0, 1.0, np.nan, np.nan) if exact else Anchor(zero, one, np.nan, np.nan)
        strata.append(anchor.normalised(values))
    return holds(SCORE, mean_interval(strata, rng))


def alike(n: int, apart: float, rng: Rng) -> bool:
    """The first finding holds for one metric; the true ratio of its means is `apart`."""
    measured = {"a": {"x": apart * rng.normal(1, VARIATION, n)}, "b": {"x": rng.normal(1, VARIATION, n)}}
    found = interval(ratio, measured, ("a", X), ("b", X), confidence=0.9, fewest=n)
    return inside(found, *ALIKE) == "holds"


def improvement_significant(n_tasks: int, rng: Rng) -> bool:
    """The primary test finds a difference where there is none."""
    return stratified_test(tasks(rng, n_tasks), tasks(rng, n_tasks), rng) <= SIGNIFICANT


def scores_significant(n_tasks: int, rng: Rng) -> bool:
    """So does a permutation test of normalised scores, if the compared runs are the anchors, too."""
    observed, drawn = [], []
    for one, zero in zip(tasks(rng, n_tasks), tasks(rng, n_tasks), strict=True):
        anchor = Anchor(zero.mean(), one.mean(), *difference_interval([one], [zero], rng))
        if not anchor.problem:  # else the task is not aggregated
            both = anchor.normalised(np.concatenate([one, zero]))
            mixed = rng.permuted(np.tile(both, (RESAMPLES, 1)), axis=1)
            observed.append(both[:SEEDS].mean() - both[SEEDS:].mean())
            drawn.append(mixed[:, :SEEDS].mean(axis=1) - mixed[:, SEEDS:].mean(axis=1))
    if not observed:
        return False
    extreme = np.abs(np.mean(drawn, axis=0)) >= abs(np.mean(observed)) - 1e-9  # equal ones differ by rounding
    return bool((extreme.sum() + 1) / (RESAMPLES + 1) <= SIGNIFICANT)


TRIALS: dict[str, Callable[[Rng], bool]] = {
    **{f"interval of the mean, {n} seeds": partial(mean_held, n) for n in (2, 3, 5, 10)},
    **{f"interval of the IQM, {n} seeds": partial(iqm_held, n) for n in (3, 5, 10, 30)},
    **{
        f"interval of P(A > B), tasks: {n}, A above B by {apart:g} deviations": partial(
            improvement_held, n, apart
        )
        for n in (1, 4, 9)
        for apart in (0.0, 1.0, 2.0)
    },
    **{
        f"interval of the normalised score, {n} tasks, {words}": partial(score_held, n, exact)
        for n in (4, 9)
        for words, exact in (("exact anchors", True), ("anchors of five seeds", False))
    },
    **{
        f"called alike, {n} seeds, ratio {apart:g}": partial(alike, n, apart)
        for n in (10, 20)
        for apart in (1.0, 1.15)
    },
    "p ≤ 0.05 without a difference, P(A > B), 9 tasks": partial(improvement_significant, 9),
    "p ≤ 0.05 without a difference, normalised scores, 9 tasks": partial(scores_significant, 9),
}


def share(name: str, repeats: int) -> float:
    """Return in which share of so many trials it happened."""
    return float(np.mean([TRIALS[name](stream(0, "few seeds", name, i)) for i in range(repeats)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4000)
    repeats = parser.parse_args().repeats
    print("| what | share of trials | standard error |\n|---|---|---|")
    for name in TRIALS:
        found = share(name, repeats)
        print(f"| {name} | {found:.1%} | {(found * (1 - found) / repeats) ** 0.5:.1%} |", flush=True)


if __name__ == "__main__":
    main()
