"""Make a run of some reference results again, and say where it differs from them."""

from __future__ import annotations

from math import isclose, isnan
from pathlib import Path

import numpy as np

import qdbench
from qdbench.analysis.measures import final, fixed_interval
from qdbench.experiments.environment import versions
from qdbench.experiments.plan import plan_from
from qdbench.metrics.metric import METRICS
from qdbench.store.reference_file import Reference, ReferenceRun

STATISTICAL = ("coverage", "qd_score", "corrected_coverage", "corrected_qd_score")
"""What is compared where results cannot be exactly the same."""
DEVIATIONS, SHARE = 4.0, 0.05
"""How far a value may then be from the mean of the references: standard deviations, plus a share of it."""


def remade(reference: Reference, run: ReferenceRun, out: Path) -> dict[str, float]:
    """Return the final metrics of one run of some reference results, made again."""
    plan = plan_from(reference.record_of(run).determinants)
    target = reference.target
    made = qdbench.run(
        plan.task,
        plan.algorithm,
        seed=run.seed,
        evaluations=target.evaluations,
        corrections=target.corrections.points,
        reevaluations=target.corrections.reevaluations,
        out=out,
        **plan.options,
    )
    return final(made, fixed_interval(made))


def is_same_class(reference: Reference, run: ReferenceRun) -> bool:
    """Return whether results must be exactly the same here."""
    return {where.versions for where in reference.record_of(run).environments} == {versions()}


def apart(
    reference: Reference, run: ReferenceRun, found: dict[str, float], *, exactly: bool
) -> dict[str, tuple[float, float]]:
    """Return which metrics differ: the shipped value (or the mean of all seeds), and the new one."""
    shipped = reference.values_of(run)
    if exactly:
        return {
            name: (shipped[name], found[name])
            for name in METRICS
            if name != "seconds" and not _same(shipped[name], found[name])
        }
    wrong = {}
    for name in STATISTICAL:
        values = np.array([reference.values_of(one)[name] for one in reference.runs])
        spread = values.std(ddof=1) if len(values) > 1 else 0.0
        if abs(found[name] - values.mean()) > DEVIATIONS * spread + SHARE * abs(values.mean()):
            wrong[name] = float(values.mean()), found[name]
    return wrong


def _same(a: float, b: float) -> bool:
    return (isnan(a) and isnan(b)) or isclose(a, b, rel_tol=0, abs_tol=0)
