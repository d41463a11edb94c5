"""One record for every metric of a final archive, in the order of all tables. Add a metric here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Literal

from qdbench.metrics.numbers import count, percent, significant
from qdbench.metrics.rarefied import RAREFIED_TO

Values = Mapping[str, float]
"""All metrics of one run by name; NaN if undefined."""

NOT_CORRECTED = "Undefined: the elites of the final archive were not re-evaluated; use qdbench correct."
NOTHING_TO_LOSE = "Loss is undefined if the uncorrected value is ≤ 0."
ONE_SAMPLE = "Undefined with one re-evaluation per elite; use at least two."
NONE_LEFT = "Undefined: the corrected archive is empty."
EMPTY = "Undefined: the archive is empty."
NO_EPISODE = "Undefined: the task has no episode_length, so no elite lives to the end of an episode."
TOO_FEW = f"Undefined: the archive has fewer than {RAREFIED_TO} elites."
NO_INTERIOR = "Undefined: no elite is in a cell of a grid that is not at its border."
NO_TRUTH = "Undefined: the expected values are known only for the tasks with known truth; see qdbench tasks."
NO_RANGE = "Undefined: all elites have the same fitness."


def _no_maximum_to_lose(values: Values) -> str:
    return NONE_LEFT if values["max_fitness"] > 0 else NOTHING_TO_LOSE


def _one_sample(values: Values) -> str:
    return ONE_SAMPLE if values["corrected_coverage"] else NONE_LEFT


def _no_range(values: Values) -> str:
    return NO_RANGE if values["coverage"] else EMPTY


def _no_lives(values: Values) -> str:
    return NO_EPISODE if isnan(values["alive_coverage"]) else EMPTY


def _not_rarefied(values: Values) -> str:
    return TOO_FEW if values["coverage"] < RAREFIED_TO else NOTHING_TO_LOSE


@dataclass(frozen=True)
class Metric:
    """One number that measures a final archive."""

    name: str
    title: str
    reason: str | Callable[[Values], str] = EMPTY
    """Why the metric may be undefined for a run (for a corrected run, if it needs a correction)."""
    better: Literal["higher", "lower", "neither"] = "higher"
    format: Callable[[float], str] = significant
    needs_correction: bool = False
    role: Literal["tested", "shown"] = "tested"
    """Whether pairs of algorithms are tested by it. Some metrics are only shown: shares repeat their counts,
    lives, luck, deviations, reproducibility and lost elites describe, losses depend on how full an archive
    is, extrapolated scores check the corrected ones, true ones are known for few tasks, and a self-normalised
    score cannot compare two archives."""

    def why_undefined(self, values: Values) -> str:
        """Return why the metric is undefined for a run with these values."""
        if self.needs_correction and isnan(values["lost_elites"]):
            return NOT_CORRECTED
        return self.reason if isinstance(self.reason, str) else self.reason(values)


_corrected = partial(Metric, reason=NONE_LEFT, needs_correction=True)
_ALL = (
    Metric("coverage", "coverage", format=count),
    Metric("coverage_share", "coverage, share of cells", format=percent, role="shown"),
    Metric("qd_score", "QD score"),
    Metric("mean_fitness", "mean normalised fitness"),
    Metric("max_fitness", "max fitness"),
    Metric("alive_share", "elites that lived to the end", reason=_no_lives, format=percent, role="shown"),
    Metric("alive_coverage", "coverage of elites that lived", reason=_no_lives, format=count, role="shown"),
    Metric("alive_qd_score", "QD score of elites that lived", reason=_no_lives, role="shown"),
    Metric("true_coverage", "true coverage", reason=NO_TRUTH, format=count, role="shown"),
    Metric("true_qd_score", "true QD score", reason=NO_TRUTH, role="shown"),
    _corrected("corrected_coverage", "corrected coverage", format=count),
    _corrected("corrected_coverage_share", "corrected coverage, share of cells",
               format=percent, role="shown"),
    _corrected("corrected_qd_score", "corrected QD score"),
    _corrected("corrected_mean_fitness", "corrected mean normalised fitness"),
    _corrected("corrected_max_fitness", "corrected max fitness"),
    _corrected("corrected_alive_share", "re-evaluations that lived to the end",
               reason=_no_lives, format=percent, role="shown"),
    _corrected("corrected_alive_qd_score", "corrected QD score of elites that lived",
               reason=_no_lives, role="shown"),
    _corrected("coverage_loss", "coverage loss",
               reason=NOTHING_TO_LOSE, better="lower", format=percent, role="shown"),
    _corrected("qd_score_loss", "QD score loss",
               reason=NOTHING_TO_LOSE, better="lower", format=percent, role="shown"),
    _corrected("max_fitness_loss", "max fitness loss",
               reason=_no_maximum_to_lose, better="lower", format=percent, role="shown"),
    _corrected("rarefied_coverage_loss", f"coverage loss of {RAREFIED_TO} random elites",
               reason=_not_rarefied, better="lower", format=percent, role="shown"),
    _corrected("rarefied_qd_score_loss", f"QD score loss of {RAREFIED_TO} random elites",
               reason=_not_rarefied, better="lower", format=percent, role="shown"),
    _corrected("return_rate", "return rate", reason=EMPTY, format=percent),
    _corrected("interior_return_rate", "return rate, inner cells",
               reason=NO_INTERIOR, format=percent, role="shown"),
    _corrected("displacement", "displacement (cells)", better="lower"),
    _corrected("fitness_luck", "fitness luck (share of the interval)", better="neither", role="shown"),
    _corrected("descriptor_luck", "descriptor luck (cells)", better="neither", role="shown"),
    _corrected("lucky_share", "elites above their own mean fitness",
               better="neither", format=percent, role="shown"),
    _corrected("lost_elites", "elites lost to an invalid re-evaluation", better="lower", role="shown"),
    _corrected("extrapolated_coverage", "corrected coverage, extrapolated",
               reason=ONE_SAMPLE, format=count, role="shown"),
    _corrected("extrapolated_qd_score", "corrected QD score, extrapolated", reason=ONE_SAMPLE, role="shown"),
    _corrected("fitness_corrected_qd_score", "QD score, only fitness corrected", role="shown"),
    _corrected("descriptor_corrected_qd_score", "QD score, only descriptors corrected", role="shown"),
    _corrected("fitness_reproducibility", "fitness reproducibility",
               reason=_one_sample, format=percent, role="shown"),
    _corrected("descriptor_reproducibility", "descriptor reproducibility",
               reason=_one_sample, format=percent, role="shown"),
    _corrected("reproducibility_score", "reproducibility score", reason=_one_sample, role="shown"),
    _corrected("fitness_deviation", "deviation of re-evaluated fitness",
               reason=_one_sample, better="neither", role="shown"),
    _corrected("descriptor_deviation", "deviation of re-evaluated descriptor",
               reason=_one_sample, better="neither", role="shown"),
    Metric("self_normalised_qd_score", "self-normalised QD score", reason=_no_range, role="shown"),
    Metric("seconds", "seconds", better="lower"),
)  # fmt: skip
METRICS = {metric.name: metric for metric in _ALL}
"""All metrics by name, in the order of tables."""
PRIMARY, FALLBACK = METRICS["corrected_qd_score"], METRICS["qd_score"]
"""The metric of the primary endpoint, and the one used if no final archive was corrected."""
CURVES = ("coverage", "qd_score", "max_fitness")
"""The metrics that are drawn along runs. Each has a corrected version and a loss."""
SELF_NORMALISED = "self_normalised_qd_score"


def corrected(name: str) -> str:
    """Return the name of the corrected version of a metric."""
    return f"corrected_{name}"


def loss(name: str) -> str:
    """Return the name of the loss of a metric."""
    return f"{name}_loss"


def per_cell(name: str) -> str:
    """Return the name of a metric divided by the number of cells."""
    return f"{name}_share"
