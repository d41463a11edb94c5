"""The paper's findings, each with a criterion that was fixed before any run: docs/reproduction.md.

A verdict is `holds`, `does not hold` or `undecided`. It is undecided if the interval contains the threshold,
or with too few replications. Intervals are 95 % percentile bootstraps over replications, unless told. Random
search is the default one; the second initialisation is shown and never decides.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from qdbench.analysis.measured import MeasuredTask
from qdbench.paper.intervals import (
    FEWEST_TO_JUDGE,
    Confidence,
    Replications,
    Verdict,
    above,
    all_of,
    difference,
    inside,
    interval,
    mean,
    ratio,
    ratio_of_variation,
    reaches,
    relative_difference,
)
from qdbench.reports.claims import Finding

ALIKE = (0.87, 1.15)
FEWEST_TO_BE_ALIKE = 20
"""Ten replications would find two equal algorithms alike in less than half of the cases."""
MORE_TIME = 0.05
HIGH_LOSS = 0.5
PAPERS_LOSS = 0.8
NOT_FAR_BELOW = 0.7
"""A loss is as high as the paper's if its interval reaches the paper's value and lies above this one."""
CAVEAT = (
    "With few replications the intervals are too narrow: a 95 % percentile bootstrap interval of the mean of "
    "5 normal values contains the true value in about 84 % of cases, of 10 in about 90 %. A verdict from few "
    "replications, close to its threshold, is less certain than it looks."
)
"""Shown once, above all findings."""
STANDING_STILL = (
    "on ant_omni, standing still without torque reaches the highest fitness. So corrected max fitness is "
    "close to its maximum, and cannot vary much"
)
PERCENT = "+.1%"
QD, CVT, RANDOM, OTHER_RANDOM = "map_elites", "cvt_map_elites", "random_search", "random_search-uniform"
LOSSES = ("coverage_loss", "qd_score_loss")
Parts = dict[str, Verdict]
"""What decides a finding: its numbers in words, each with a verdict."""


def replications(measured: MeasuredTask) -> Replications:
    """Return the final metrics of all runs of a task, by variant and metric."""
    return {
        variant.label: {
            name: np.array([one.values[name] for one in variant.runs]) for name in variant.runs[0].values
        }
        for variant in measured.variants
    }


def too_few(measured: Replications) -> str:
    """Return why nothing can be judged; empty if something can."""
    most = max((len(next(iter(columns.values()))) for columns in measured.values()), default=0)
    if most >= FEWEST_TO_JUDGE:
        return ""
    return (
        f"The paper's findings need {FEWEST_TO_JUDGE} replications ({FEWEST_TO_BE_ALIKE} for one of them); "
        f"with {most} nothing is judged. Use --scale laptop."
    )


def to_decide(found: Iterable[Finding]) -> str:
    """Return in one line what undecided findings need; empty if there are none."""
    undecided = [one.verdict for one in found].count("undecided")
    if not undecided:
        return ""
    return (
        f"To decide the {undecided} undecided: more replications narrow the intervals; the first needs "
        f"{FEWEST_TO_BE_ALIKE} of each algorithm. `qdbench reproduce --scale laptop` makes them."
    )


def findings(measured: Replications, why_no_times: str = "") -> list[Finding]:
    """Judge the paper's findings from the final metrics of all replications; none if there are too few."""
    if too_few(measured):
        return []
    return [
        _alike(measured),
        _beat_random(measured),
        _more_time(measured, why_no_times),
        _high_losses(measured),
        _as_high_as_the_paper_s(measured),
        _random_loses_less(measured),
        _random_is_more_robust(measured),
        _varies_most(measured),
    ]


def _alike(measured: Replications) -> Finding:
    parts: Parts = {}
    for metric in ("coverage", "qd_score"):
        found = interval(
            ratio, measured, (CVT, (metric,)), (QD, (metric,)), confidence=0.9, fewest=FEWEST_TO_BE_ALIKE
        )
        parts[f"{_title(metric)}, cvt_map_elites over map_elites: {found.words('.3f')}"] = inside(
            found, *ALIKE
        )
    return _finding(
        "MAP-Elites and CVT-MAP-Elites perform alike.",
        f"The 90 % intervals of the ratios of mean coverage and of mean QD score lie within {ALIKE[0]} to "
        f"{ALIKE[1]} (two one-sided tests at 5 %), with {FEWEST_TO_BE_ALIKE} replications of each.",
        parts,
    )


def _beat_random(measured: Replications) -> Finding:
    def compared(random: str) -> dict[str, Confidence]:
        return {
            f"QD score, {algorithm} against {random}": interval(
                relative_difference, measured, (algorithm, ("qd_score",)), (random, ("qd_score",))
            )
            for algorithm in (QD, CVT)
        }

    return _against_random(
        "Both beat random search.",
        "The intervals of the relative differences of mean QD scores to random search lie above 0.",
        compared(RANDOM),
        compared(OTHER_RANDOM),
    )


def _more_time(measured: Replications, why_not: str) -> Finding:
    claim = "CVT-MAP-Elites needs more time than MAP-Elites."
    criterion = (
        f"The interval of the relative difference of mean seconds per evaluation lies above {MORE_TIME:.0%}."
    )
    if why_not:
        return Finding(claim, criterion, "undecided", (f"times are not comparable: {why_not}",))
    times = {
        name: {"time": columns["seconds"] / columns["evaluations"]} for name, columns in measured.items()
    }
    found = interval(relative_difference, times, (CVT, ("time",)), (QD, ("time",)))
    number = f"seconds per evaluation, cvt_map_elites against map_elites: {found.words(PERCENT)}"
    return _finding(claim, criterion, {number: above(found, MORE_TIME)})


def _losses(measured: Replications) -> dict[str, Confidence]:
    return {
        f"{_title(metric)} of {algorithm}": interval(mean, measured, (algorithm, (metric,)))
        for algorithm in (QD, CVT)
        for metric in LOSSES
    }


def _high_losses(measured: Replications) -> Finding:
    return _finding(
        "Coverage and QD-score losses of both are high.",
        f"The intervals of the mean losses lie above {HIGH_LOSS:.0%}.",
        {f"{what}: {one.words(PERCENT)}": above(one, HIGH_LOSS) for what, one in _losses(measured).items()},
    )


def _as_high_as_the_paper_s(measured: Replications) -> Finding:
    return _finding(
        f"These losses are as high as the paper's, about {PAPERS_LOSS:.0%}.",
        f"The intervals of the mean losses reach {PAPERS_LOSS:.0%} and lie above {NOT_FAR_BELOW:.0%}. It "
        f"does not hold if one ends below {PAPERS_LOSS:.0%}.",
        {
            f"{what}: {one.words(PERCENT)}": reaches(one, PAPERS_LOSS, NOT_FAR_BELOW)
            for what, one in _losses(measured).items()
        },
    )


def _random_loses_less(measured: Replications) -> Finding:
    def compared(random: str) -> dict[str, Confidence]:
        return {
            f"{_title(metric)}, {algorithm} minus {random}": interval(
                difference, measured, (algorithm, (metric,)), (random, (metric,))
            )
            for algorithm in (QD, CVT)
            for metric in LOSSES
        }

    return _against_random(
        "Random search loses less.",
        "The intervals of the differences of mean losses, MAP-Elites and CVT-MAP-Elites minus random search, "
        "lie above 0. Fuller archives lose more, so this does not compare robustness.",
        compared(RANDOM),
        compared(OTHER_RANDOM),
        "+.3f",
    )


def _random_is_more_robust(measured: Replications) -> Finding:
    def compared(random: str) -> dict[str, Confidence]:
        found = {}
        for algorithm in (QD, CVT):
            found[f"return rate, {random} minus {algorithm}"] = interval(
                difference, measured, (random, ("return_rate",)), (algorithm, ("return_rate",))
            )
        for algorithm in (QD, CVT):
            found[f"displacement in cells, {algorithm} minus {random}"] = interval(
                difference, measured, (algorithm, ("displacement",)), (random, ("displacement",))
            )
        return found

    return _against_random(
        "The few solutions of random search are more robust.",
        "The intervals of the differences of means lie above 0: return rate of random search minus that of "
        "MAP-Elites and CVT-MAP-Elites, and their displacement minus that of random search.",
        compared(RANDOM),
        compared(OTHER_RANDOM),
        ".3f",
    )


def _varies_most(measured: Replications) -> Finding:
    parts: Parts = {}
    for algorithm in (QD, CVT):
        for metric in ("corrected_coverage", "corrected_qd_score"):
            metrics = ("corrected_max_fitness", metric)
            found = interval(ratio_of_variation, measured, (algorithm, metrics), (RANDOM, metrics))
            what = f"variation of corrected max fitness over that of {_title(metric)}, {algorithm}"
            parts[f"{what}: {found.words('.2f')}"] = above(found, 1.0)
    return _finding(
        "The corrected max fitness varies most across replications.",
        "The intervals of the ratios of variation, corrected max fitness over corrected coverage and over "
        "corrected QD score, lie above 1. Variation is the standard deviation over replications, divided by "
        "the distance of the mean to random search's.",
        parts,
        STANDING_STILL,
    )


def _against_random(
    claim: str,
    criterion: str,
    decides: dict[str, Confidence],
    shown: dict[str, Confidence],
    numbers: str = PERCENT,
) -> Finding:
    """Return a finding that all of these differences decide; `shown` are those to the other random search."""
    parts = {f"{what}: {one.words(numbers)}": above(one, 0.0) for what, one in decides.items()}
    others = (f"does not decide: {what}: {one.words(numbers)}" for what, one in shown.items())
    return _finding(claim, criterion, parts, *others)


def _finding(claim: str, criterion: str, parts: Parts, *remarks: str) -> Finding:
    return Finding(claim, criterion, all_of(parts.values()), (*parts, *remarks))


def _title(metric: str) -> str:
    return metric.replace("_", " ").replace("qd", "QD")


def markdown(found: Iterable[Finding], why_none: str = "") -> str:
    """Return a Markdown page with all findings, or why there are none."""
    lines = ["# The paper's findings", "", why_none or CAVEAT, ""]
    for finding in found:
        lines += [f"**{finding.verdict}**: {finding.claim}", "", f"Criterion: {finding.criterion}", ""]
        lines += [*(f"- {number}" for number in finding.numbers), ""]
    return "\n".join(lines)
