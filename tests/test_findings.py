"""Verdicts on the paper's findings: each can hold, fail and stay undecided."""

from __future__ import annotations

import numpy as np
import pytest

from qdbench.paper.findings import CAVEAT, Values, findings
from qdbench.reports.page import Finding

Replications = dict[str, dict[str, Values]]


def measured(
    changes: dict[str, dict[str, float]] | None = None, n: int = 10, spread: float = 0.01
) -> Replications:
    """Replications as the paper saw them, with some means changed."""
    usual: dict[str, dict[str, float]] = {
        "map_elites": {"coverage": 1000, "qd_score": 900, "seconds": 100, "loss": 0.8, "corrected": 200},
        "cvt_map_elites": {"coverage": 1000, "qd_score": 900, "seconds": 120, "loss": 0.8, "corrected": 200},
        "random_search": {"coverage": 200, "qd_score": 180, "seconds": 90, "loss": 0.4, "corrected": 100},
    }
    usual["random_search-uniform"] = usual["random_search"]
    found: Replications = {}
    for name, means in usual.items():
        mean = means | (changes or {}).get(name, {})
        noise = 1 + spread * np.linspace(-1, 1, n)
        found[name] = {
            "coverage": mean["coverage"] * noise,
            "qd_score": mean["qd_score"] * noise[::-1],
            "seconds": mean["seconds"] * noise,
            "evaluations": np.full(n, 1e4),
            "coverage_loss": mean["loss"] * noise,
            "qd_score_loss": mean["loss"] * noise[::-1],
            "corrected_coverage": mean["corrected"] * noise,
            "corrected_qd_score": mean["corrected"] * noise,
            "corrected_max_fitness": 100 * (1 + mean.get("variation", 10) * spread * np.linspace(-1, 1, n)),
        }
    return found


def verdicts(found: list[Finding]) -> list[str]:
    return [finding.verdict for finding in found]


def test_what_the_paper_saw_holds() -> None:
    assert verdicts(findings(measured())) == ["holds"] * 6


@pytest.mark.parametrize(
    ("which", "changes"),
    [
        (0, {"cvt_map_elites": {"qd_score": 800.0}}),
        (1, {"random_search-uniform": {"qd_score": 950.0}}),
        (2, {"cvt_map_elites": {"seconds": 101.0}}),
        (3, {"cvt_map_elites": {"loss": 0.5}}),
        (4, {"random_search": {"loss": 0.9}}),
        (5, {"map_elites": {"variation": 0.5}}),
    ],
)
def test_each_finding_can_fail_by_itself(which: int, changes: dict[str, dict[str, float]]) -> None:
    found = verdicts(findings(measured(changes)))
    assert found[which] == "does not hold"
    assert [v for i, v in enumerate(found) if i != which] == ["holds"] * 5


def test_too_little_or_too_noisy_data_is_undecided() -> None:
    assert verdicts(findings(measured(n=4))) == ["undecided"] * 6
    assert findings(measured(spread=0.4))[0].verdict == "undecided"
    missing = measured()
    del missing["cvt_map_elites"]
    assert findings(missing)[0].verdict == "undecided"
    few = "too few replications of cvt_map_elites (0, at least 5 are needed)"
    assert findings(missing)[0].numbers[0].endswith(few)
    undefined = measured()
    undefined["map_elites"]["coverage_loss"][3] = np.nan
    assert findings(undefined)[3].verdict == "undecided"
    said = "coverage loss of map_elites: undefined in 1 of 10 replications of map_elites"
    assert findings(undefined)[3].numbers[0] == said
    assert findings(measured(), "the machines differ")[2].verdict == "undecided"


def test_what_cannot_be_divided_by_is_named_and_no_warning_leaks() -> None:
    nothing = measured({"random_search": {"qd_score": 0.0}})
    found = findings(nothing)[1]
    assert found.verdict == "undecided"
    assert "random_search: the mean of random_search is 0, in the data" in found.numbers[0]
    seldom = measured()
    seldom["random_search"]["qd_score"][1:] = 0.0  # every third resample has a mean of 0: infinitely worse
    found = findings(seldom)[1]
    assert found.verdict == "holds"
    assert found.numbers[0].endswith("to +inf%")
    steady = measured()
    steady["map_elites"]["corrected_coverage"][:] = 7.0
    found = findings(steady)[5]
    assert found.verdict == "undecided"
    assert "corrected coverage, map_elites: the divisor is 0" in found.numbers[0]


def test_the_ceiling_of_omni_tasks_and_small_samples_are_mentioned() -> None:
    assert "standing still without torque" in findings(measured())[5].numbers[-1]
    assert "5 normal values contains the true value in about 84 %" in CAVEAT
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(500):
        values = generator.normal(size=5)
        low, high = np.quantile(values[generator.integers(5, size=(1000, 5))].mean(axis=1), (0.025, 0.975))
        held += low <= 0 <= high
    assert held / 500 == pytest.approx(0.84, abs=0.05)


def test_the_numbers_are_told_and_always_the_same() -> None:
    first, second = findings(measured()), findings(measured())
    assert first == second
    assert first[2].numbers == (
        "seconds per evaluation, CVT-MAP-Elites against MAP-Elites: +19.3% to +20.7%",
    )
