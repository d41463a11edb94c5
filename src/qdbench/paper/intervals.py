"""Bootstrap intervals over replications, and the verdicts they lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qdbench.seeds import stream

Verdict = Literal["holds", "does not hold", "undecided"]
Values = NDArray[np.float64]  #: (replications,)
Replications = Mapping[str, Mapping[str, Values]]
"""Values of all replications, by variant and metric."""
Group = tuple[str, tuple[str, ...]]
"""A variant, and those of its metrics that a statistic needs."""

RESAMPLES = 10_000
FEWEST_TO_JUDGE = 5
"""With fewer replications of a variant, everything is undecided."""


@dataclass(frozen=True)
class Confidence:
    """A confidence interval, or why there is none."""

    low: float
    high: float
    missing: str = ""
    """Why there is no interval; then its ends are NaN."""

    def words(self, numbers: str) -> str:
        """Return both ends, formatted by `numbers`, or why there is no interval."""
        return self.missing or f"{self.low:{numbers}} to {self.high:{numbers}}"


def interval(
    statistic: Callable[..., Values],
    measured: Replications,
    *groups: Group,
    confidence: float = 0.95,
    fewest: int = FEWEST_TO_JUDGE,
) -> Confidence:
    """Return the percentile bootstrap interval of a statistic over replications.

    The statistic gets the resampled values of every group, (resamples, replications, metrics).
    """
    values = [_stacked(measured, *group) for group in groups]
    missing = next(
        filter(None, (_missing(name, v, fewest) for (name, _), v in zip(groups, values, strict=True))), ""
    )
    if missing:
        return Confidence(np.nan, np.nan, missing)
    rng = stream(0, "findings", *(word for variant, metrics in groups for word in (variant, *metrics)))
    drawn = [group[rng.integers(len(group), size=(RESAMPLES, len(group)))] for group in values]
    tail = (1 - confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):  # a divisor may be 0
        low, high = np.quantile(statistic(*drawn), (tail, 1 - tail)).tolist()
    if np.isnan(low) and np.isnan(high):
        return Confidence(np.nan, np.nan, "a divisor is 0, in the data or in a resample")
    # NumPy interpolates NaN between two infinite values
    return Confidence(-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)


def _stacked(measured: Replications, variant: str, metrics: tuple[str, ...]) -> Values:
    """Return the metrics of a variant's replications, (replications, metrics); NaN if there is none."""
    found = measured.get(variant, {})
    n = len(next(iter(found.values()), ()))
    nothing = np.full(n, np.nan)
    return np.stack([found.get(metric, nothing) for metric in metrics], axis=1)


def _missing(variant: str, values: Values, fewest: int) -> str:
    """Return why there is no interval for a variant's replications; empty if there is one."""
    n = len(values)
    if n < fewest:
        return f"too few replications of {variant} ({n}, at least {fewest} are needed)"
    n_undefined = int(np.isnan(values).any(axis=1).sum())
    return f"undefined in {n_undefined} of {n} replications of {variant}" if n_undefined else ""


# Statistics of resampled groups, (resamples,) each


def mean(a: Values) -> Values:
    """Return the means of one metric."""
    means: Values = a[..., 0].mean(axis=1)
    return means


def difference(a: Values, b: Values) -> Values:
    """Return the differences of means."""
    return mean(a) - mean(b)


def ratio(a: Values, b: Values) -> Values:
    """Return the ratios of means."""
    return mean(a) / mean(b)


def relative_difference(a: Values, b: Values) -> Values:
    """Return how much larger the first mean is, relative to the second."""
    return ratio(a, b) - 1


def ratio_of_variation(a: Values, b: Values) -> Values:
    """Return how much more the first metric of `a` varies than its second.

    A metric's variation is its standard deviation over replications, divided by the distance of its mean to
    that of `b`. If neither metric varies in a resample, its ratio counts as 1; if so in all, it is undefined.
    """
    variation = a.std(axis=1, ddof=1) / np.abs(a.mean(axis=1) - b.mean(axis=1))
    ratios: Values = variation[:, 0] / variation[:, 1]
    undefined = np.isnan(ratios)
    return ratios if undefined.all() else np.where(undefined, 1.0, ratios)


# Verdicts


def inside(found: Confidence, low: float, high: float) -> Verdict:
    """Return whether an interval lies within two bounds."""
    if low <= found.low and found.high <= high:
        return "holds"
    return "does not hold" if found.high < low or found.low > high else "undecided"


def above(found: Confidence, threshold: float) -> Verdict:
    """Return whether an interval lies above a threshold."""
    if found.low > threshold:
        return "holds"
    return "does not hold" if found.high <= threshold else "undecided"


def reaches(found: Confidence, level: float, least: float) -> Verdict:
    """Return whether an interval contains or exceeds a level, and lies above `least`."""
    if found.high < level:
        return "does not hold"
    return "holds" if found.low > least else "undecided"


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return `holds` if all parts hold, and `does not hold` if any part does not."""
    found = list(verdicts)
    if "does not hold" in found:
        return "does not hold"
    return "undecided" if "undecided" in found else "holds"
