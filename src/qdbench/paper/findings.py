"""The paper's findings, each with a criterion that was fixed before any run: docs/reproduction.md.

A verdict is `holds`, `does not hold` or `undecided`. It is undecided if the interval contains the threshold,
or with too few replications. Intervals are 95 % percentile bootstraps over replications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.analysis.measured import MeasuredTask
from qdbench.metrics.metric import METRICS
from qdbench.reports.page import Finding
from qdbench.seeds import stream

Verdict = Literal["holds", "does not hold", "undecided"]
Values = NDArray[np.float64]  #: (replications,)
Replications = Mapping[str, Mapping[str, Values]]
"""Values of all replications, by variant and metric."""

RESAMPLES = 10_000
FEWEST_TO_JUDGE = 5
"""With fewer replications of a variant, everything is undecided."""
ALIKE = 0.05
MORE_TIME = 0.05
HIGH_LOSS = 0.6
"""The paper says about 80 %. "High" must mean clearly more than a half."""
CAVEAT = (
    "With few replications the intervals are too narrow: a 95 % percentile bootstrap interval of the mean of "
    "5 normal values contains the true value in about 84 % of cases, of 10 in about 90 %. A verdict from few "
    "replications, close to its threshold, is less certain than it looks."
)
"""Shown once, above all findings."""
STANDING_STILL = (
    "on ant_omni, standing still without torque reaches the highest fitness. So corrected max fitness is "
    "close to its maximum, and its coefficient of variation is small by construction"
)
PERCENT = "+.1%"
QD, CVT, RANDOM = "map_elites", "cvt_map_elites", ("random_search", "random_search-uniform")


@dataclass(frozen=True)
class _Confidence:
    low: float
    high: float
    missing: str = ""
    """Why there is no interval; then its ends are NaN."""

    def words(self, numbers: str) -> str:
        """Return both ends, formatted by `numbers`, or why there is no interval."""
        return self.missing or f"{self.low:{numbers}} to {self.high:{numbers}}"


def replications(measured: MeasuredTask) -> Replications:
    """Return the final metrics of all runs of a task, by variant and metric."""
    return {
        variant.label: {
            name: np.array([one.values[name] for one in variant.runs]) for name in variant.runs[0].values
        }
        for variant in measured.variants
    }


def findings(measured: Replications, why_no_times: str = "") -> list[Finding]:
    """Judge the paper's findings from the final metrics of all replications."""
    return [
        _alike(measured),
        _beat_random(measured),
        _more_time(measured, why_no_times),
        _high_losses(measured),
        _random_loses_less(measured),
        _varies_most(measured),
    ]


def _alike(measured: Replications) -> Finding:
    parts = {}
    for metric in ("coverage", "qd_score"):
        interval = _interval(_relative_difference, measured, (CVT, QD), metric)
        parts[f"{METRICS[metric].title}, CVT-MAP-Elites against MAP-Elites: {interval.words(PERCENT)}"] = (
            _inside(interval, -ALIKE, ALIKE)
        )
    return Finding(
        "MAP-Elites and CVT-MAP-Elites perform alike.",
        f"The intervals of the relative differences of mean coverage and QD score lie within ±{ALIKE:.0%}.",
        _all(parts.values()),
        tuple(parts),
    )


def _beat_random(measured: Replications) -> Finding:
    parts = {}
    for algorithm in (QD, CVT):
        for random in RANDOM:
            interval = _interval(_relative_difference, measured, (algorithm, random), "qd_score")
            what = f"QD score, {algorithm} against {random}"
            parts[f"{what}: {interval.words(PERCENT)}"] = _above(interval, 0.0)
    return Finding(
        "Both beat random search.",
        "The intervals of the relative differences of mean QD scores to random search, with either "
        "initialisation, lie above 0.",
        _all(parts.values()),
        tuple(parts),
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
    interval = _interval(_relative_difference, times, (CVT, QD), "time")
    number = f"seconds per evaluation, CVT-MAP-Elites against MAP-Elites: {interval.words(PERCENT)}"
    return Finding(claim, criterion, _above(interval, MORE_TIME), (number,))


def _high_losses(measured: Replications) -> Finding:
    parts = {}
    for algorithm in (QD, CVT):
        for metric in ("coverage_loss", "qd_score_loss"):
            interval = _interval(_mean, measured, (algorithm,), metric)
            parts[f"{METRICS[metric].title} of {algorithm}: {interval.words(PERCENT)}"] = _above(
                interval, HIGH_LOSS
            )
    return Finding(
        "Coverage and QD-score losses of both are high (the paper: about 80 %).",
        f"The intervals of the mean losses lie above {HIGH_LOSS:.0%}.",
        _all(parts.values()),
        tuple(parts),
    )


def _random_loses_less(measured: Replications) -> Finding:
    parts = {}
    for random in RANDOM:
        for metric in ("coverage_loss", "qd_score_loss"):
            interval = _interval(_difference, measured, (QD, random), metric)
            what = f"{METRICS[metric].title}, map_elites minus {random}"
            parts[f"{what}: {interval.words(PERCENT)}"] = _above(interval, 0.0)
    return Finding(
        "Random search loses less.",
        "The intervals of the differences of mean losses between MAP-Elites and random search, with either "
        "initialisation, lie above 0.",
        _all(parts.values()),
        tuple(parts),
    )


def _varies_most(measured: Replications) -> Finding:
    parts = {}
    for algorithm in (QD, CVT):
        for metric in ("corrected_coverage", "corrected_qd_score"):
            columns = {algorithm: {"pair": _stacked(measured, algorithm, "corrected_max_fitness", metric)}}
            interval = _interval(_ratio_of_variation, columns, (algorithm,), "pair")
            what = f"variation of corrected max fitness over that of {METRICS[metric].title}, {algorithm}"
            parts[f"{what}: {interval.words('.2f')}"] = _above(interval, 1.0)
    return Finding(
        "The corrected max fitness varies most across replications.",
        "The intervals of the ratios of coefficients of variation, corrected max fitness over corrected "
        "coverage and over corrected QD score, lie above 1.",
        _all(parts.values()),
        (*parts, STANDING_STILL),
    )


# Intervals


def _interval(
    statistic: Callable[..., Values], measured: Replications, variants: tuple[str, ...], metric: str
) -> _Confidence:
    """Return the bootstrap interval of a statistic over replications, or why there is none."""
    groups = [measured[variant][metric] if variant in measured else np.empty(0) for variant in variants]
    missing = next(filter(None, map(_missing, variants, groups)), "")
    if missing:
        return _Confidence(np.nan, np.nan, missing)
    rng = stream(0, "findings", *variants, metric)
    drawn = [group[rng.integers(len(group), size=(RESAMPLES, len(group)))] for group in groups]
    with np.errstate(divide="ignore", invalid="ignore"):  # a divisor may be 0
        low, high = np.quantile(statistic(*drawn), (0.025, 0.975)).tolist()
    if np.isnan(low) and np.isnan(high):
        zero = "the divisor is 0" if statistic is _ratio_of_variation else f"the mean of {variants[-1]} is 0"
        return _Confidence(np.nan, np.nan, f"{zero}, in the data or in a resample")
    # NumPy interpolates NaN between two infinite values
    return _Confidence(-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)


def _missing(variant: str, values: Values) -> str:
    """Return why there is no interval for a variant's replications; empty if there is one."""
    n = len(values)
    if n < FEWEST_TO_JUDGE:
        return f"too few replications of {variant} ({n}, at least {FEWEST_TO_JUDGE} are needed)"
    n_undefined = int(np.isnan(values).reshape(n, -1).any(axis=1).sum())
    return f"undefined in {n_undefined} of {n} replications of {variant}" if n_undefined else ""


def _mean(a: Values) -> Values:
    mean: Values = a.mean(axis=1)
    return mean


def _difference(a: Values, b: Values) -> Values:
    return _mean(a) - _mean(b)


def _relative_difference(a: Values, b: Values) -> Values:
    return _mean(a) / _mean(b) - 1


def _ratio_of_variation(pairs: Values) -> Values:
    """Return the ratio of coefficients of variation of two columns, (resamples, replications, 2)."""
    spread, level = pairs.std(axis=1, ddof=1), np.abs(pairs.mean(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        variation = spread / level
        ratio: Values = np.nan_to_num(variation[:, 0] / variation[:, 1], nan=1.0, posinf=np.inf)
    return ratio


def _stacked(measured: Replications, variant: str, *metrics: str) -> Values:
    if variant not in measured:
        return np.empty((0, len(metrics)))
    return np.stack([measured[variant][metric] for metric in metrics], axis=1)


# Verdicts


def _inside(interval: _Confidence, low: float, high: float) -> Verdict:
    if low <= interval.low and interval.high <= high:
        return "holds"
    return "does not hold" if interval.high < low or interval.low > high else "undecided"


def _above(interval: _Confidence, threshold: float) -> Verdict:
    if interval.low > threshold:
        return "holds"
    return "does not hold" if interval.high <= threshold else "undecided"


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return `holds` if all parts hold, and `does not hold` if any part does not."""
    found = list(verdicts)
    if "does not hold" in found:
        return "does not hold"
    return "undecided" if "undecided" in found else "holds"


def markdown(found: Iterable[Finding]) -> str:
    """Return a Markdown page with all findings."""
    lines = ["# The paper's findings", "", CAVEAT, ""]
    for finding in found:
        lines += [f"**{finding.verdict}**: {finding.claim}", "", f"Criterion: {finding.criterion}", ""]
        lines += [*(f"- {number}" for number in finding.numbers), ""]
    return "\n".join(lines)
