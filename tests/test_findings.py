"""Verdicts on the paper's findings: each can hold, fail and stay undecided."""

from __future__ import annotations

import numpy as np
import pytest

from qdbench.paper.findings import CAVEAT, findings, markdown, too_few
from qdbench.paper.intervals import Confidence, Values, above, inside, ratio_of_variation, reaches
from qdbench.reports.claims import Finding

Replications = dict[str, dict[str, Values]]
ALIKE, BEAT, TIME, HIGH, AS_PRINTED, LESS, ROBUST, VARIES = range(8)


def measured(
    changes: dict[str, dict[str, float]] | None = None, n: int = 20, spread: float = 0.01
) -> Replications:
    """Replications as the paper saw them, with some means changed."""
    full = {"coverage": 1000, "qd_score": 900, "loss": 0.81, "corrected": 200, "top": 100, "back": 0.03,
            "cells": 4.0}  # fmt: skip
    few = {"coverage": 200, "qd_score": 180, "loss": 0.4, "corrected": 100, "top": 50, "back": 0.08,
           "cells": 2.0}  # fmt: skip
    usual: dict[str, dict[str, float]] = {
        "map_elites": full | {"seconds": 100},
        "cvt_map_elites": full | {"seconds": 120},
        "random_search": few | {"seconds": 90},
        "random_search-uniform": few | {"seconds": 30},
    }
    found: Replications = {}
    for name, means in usual.items():
        of = means | (changes or {}).get(name, {})
        noise = 1 + spread * np.linspace(-1, 1, n)
        found[name] = {
            "coverage": of["coverage"] * noise,
            "qd_score": of["qd_score"] * noise[::-1],
            "seconds": of["seconds"] * noise,
            "evaluations": np.full(n, 1e4),
            "coverage_loss": of["loss"] * noise,
            "qd_score_loss": of["loss"] * noise[::-1],
            "corrected_coverage": of["corrected"] * noise,
            "corrected_qd_score": of["corrected"] * noise,
            "corrected_max_fitness": of["top"]
            * (1 + of.get("variation", 10) * spread * np.linspace(-1, 1, n)),
            "return_rate": of["back"] * noise,
            "displacement": of["cells"] * noise,
        }
    return found


def verdicts(found: list[Finding]) -> list[str]:
    return [finding.verdict for finding in found]


def test_what_the_paper_saw_holds() -> None:
    assert verdicts(findings(measured())) == ["holds"] * 8


@pytest.mark.parametrize(
    ("which", "changes"),
    [
        ([ALIKE], {"cvt_map_elites": {"qd_score": 700.0}}),
        ([ALIKE], {"cvt_map_elites": {"coverage": 1200.0}}),
        ([BEAT], {"random_search": {"qd_score": 950.0}}),
        ([TIME], {"cvt_map_elites": {"seconds": 101.0}}),
        ([HIGH, AS_PRINTED], {"cvt_map_elites": {"loss": 0.45}}),
        ([AS_PRINTED], {"map_elites": {"loss": 0.6}}),
        ([LESS], {"random_search": {"loss": 0.9}}),
        ([ROBUST], {"random_search": {"back": 0.02}}),
        ([ROBUST], {"cvt_map_elites": {"cells": 1.0}}),
        ([VARIES], {"map_elites": {"variation": 0.5}}),
    ],
)
def test_each_finding_can_fail_by_itself(which: list[int], changes: dict[str, dict[str, float]]) -> None:
    found = verdicts(findings(measured(changes)))
    assert found == ["does not hold" if i in which else "holds" for i in range(8)]


def test_the_other_initialisation_is_shown_and_never_decides() -> None:
    other = {"qd_score": 9e9, "loss": 0.99, "back": 0.0, "cells": 50.0, "corrected": 9e9, "top": -9e9}
    found = findings(measured({"random_search-uniform": other}))
    assert verdicts(found) == ["holds"] * 8
    for which in (BEAT, LESS, ROBUST):
        apart = [line for line in found[which].numbers if line.startswith("does not decide: ")]
        assert apart
        assert all("random_search-uniform" in line for line in apart)
        assert not any("uniform" in line for line in set(found[which].numbers) - set(apart))
    without = measured()
    del without["random_search-uniform"]
    assert verdicts(findings(without)) == ["holds"] * 8


def test_alike_needs_twenty_replications_and_a_narrow_interval() -> None:
    found = findings(measured(n=19))
    assert verdicts(found) == ["undecided"] + ["holds"] * 7
    assert (
        found[ALIKE]
        .numbers[0]
        .endswith("too few replications of cvt_map_elites (19, at least 20 are needed)")
    )
    assert findings(measured(spread=0.8))[ALIKE].verdict == "undecided"
    near = findings(measured({"cvt_map_elites": {"coverage": 1120.0, "qd_score": 1000.0}}))
    assert near[ALIKE].verdict == "holds"  # ratios 1.12 and 1.11
    assert near[ALIKE].numbers[0].startswith("coverage, cvt_map_elites over map_elites: 1.1")


def test_alike_is_said_of_equal_algorithms_and_seldom_of_others() -> None:
    """As docs/reproduction.md says: power 0.8, error 6 %, at a coefficient of variation of 15 %."""
    rng = np.random.default_rng(1)
    said = {}
    for ratio in (1.0, 1.15):
        held = 0
        for _ in range(60):
            values = measured()
            for metric in ("coverage", "qd_score"):
                noise = rng.normal(1, 0.15, (2, 20))
                values["map_elites"][metric], values["cvt_map_elites"][metric] = noise[0], ratio * noise[1]
            held += findings_alike(values) == "holds"
        said[ratio] = held / 60
    assert said[1.0] > 0.55  # both metrics must be inside: 0.8 squared, if they were independent
    assert said[1.15] < 0.1


def findings_alike(values: Replications) -> str:
    from qdbench.paper import findings as module

    return module._alike(values).verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.75, 0.85, "holds"), (0.82, 0.9, "holds"), (0.7, 0.79, "does not hold"), (0.6, 0.85, "undecided")],
)
def test_as_high_as_the_paper_s(low: float, high: float, verdict: str) -> None:
    assert reaches(Confidence(low, high), 0.8, 0.7) == verdict


def test_the_rules_at_their_edges() -> None:
    assert above(Confidence(0.0, 1.0), 0.0) == "undecided"
    assert above(Confidence(-1.0, 0.0), 0.0) == "does not hold"
    assert inside(Confidence(0.87, 1.15), 0.87, 1.15) == "holds"
    assert inside(Confidence(0.8, 1.0), 0.87, 1.15) == "undecided"
    assert inside(Confidence(1.16, 1.3), 0.87, 1.15) == "does not hold"
    nothing = Confidence(np.nan, np.nan, "too few")
    assert above(nothing, 0.0) == inside(nothing, 0, 1) == reaches(nothing, 0.8, 0.7) == "undecided"


def test_too_few_replications_are_one_sentence() -> None:
    few = measured(n=4)
    assert findings(few) == []
    said = too_few(few)
    assert said.startswith("The paper's findings need 5 replications (20 for one of them); with 4 nothing")
    assert markdown([], said).splitlines() == ["# The paper's findings", "", said]
    assert too_few(measured(n=5)) == ""
    assert too_few({}).count("with 0 nothing")


def test_too_little_or_too_noisy_data_is_undecided() -> None:
    missing = measured()
    del missing["cvt_map_elites"]
    found = findings(missing)
    assert verdicts(found) == ["undecided"] * 8
    assert (
        found[BEAT].numbers[1].endswith("too few replications of cvt_map_elites (0, at least 5 are needed)")
    )
    undefined = measured()
    undefined["map_elites"]["coverage_loss"][3] = np.nan
    assert findings(undefined)[HIGH].verdict == "undecided"
    said = "coverage loss of map_elites: undefined in 1 of 20 replications of map_elites"
    assert findings(undefined)[HIGH].numbers[0] == said
    assert findings(measured(), "the machines differ")[TIME].verdict == "undecided"
    for columns in undefined.values():
        del columns["return_rate"]  # runs that were not corrected have no such metric
    assert findings(undefined)[ROBUST].verdict == "undecided"
    close = measured({"map_elites": {"loss": 0.5}}, spread=0.1)
    assert findings(close)[HIGH].verdict == "undecided"


def test_what_cannot_be_divided_by_is_named_and_no_warning_leaks() -> None:
    nothing = measured({"random_search": {"qd_score": 0.0}})
    found = findings(nothing)[BEAT]
    assert found.verdict == "undecided"
    assert "map_elites against random_search: a divisor is 0, in the data" in found.numbers[0]
    seldom = measured(n=10)
    seldom["random_search"]["qd_score"][1:] = 0.0  # every third resample has a mean of 0: infinitely worse
    found = findings(seldom)[BEAT]
    assert found.verdict == "holds"
    assert found.numbers[0].endswith("to +inf%")
    steady = measured()
    steady["map_elites"]["corrected_coverage"][:] = 7.0
    found = findings(steady)[VARIES]
    assert found.verdict == "undecided"
    assert "corrected coverage, map_elites: a divisor is 0" in found.numbers[0]
    steady["map_elites"]["corrected_max_fitness"][:] = 9.0  # now neither of the two varies
    assert "corrected coverage, map_elites: a divisor is 0" in findings(steady)[VARIES].numbers[0]


def test_variation_has_no_unit_and_no_offset() -> None:
    rng = np.random.default_rng(0)
    ours, random = rng.normal((5, 50), (1, 2), (3, 20, 2)), rng.normal((1, 9), 1, (3, 6, 2))
    expected = []
    for a, b in zip(ours, random, strict=True):
        first, second = (np.std(a[:, i], ddof=1) / abs(a[:, i].mean() - b[:, i].mean()) for i in (0, 1))
        expected.append(first / second)
    np.testing.assert_allclose(ratio_of_variation(ours, random), expected)
    scale, offset = np.array([3.0, 0.1]), np.array([-100.0, 7.0])
    moved = ratio_of_variation(ours * scale + offset, random * scale + offset)
    np.testing.assert_allclose(moved, expected)


def test_the_ceiling_of_omni_tasks_and_small_samples_are_mentioned() -> None:
    assert "standing still without torque" in findings(measured())[VARIES].numbers[-1]
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
    number = "seconds per evaluation, cvt_map_elites against map_elites: +19.6% to +20.4%"
    assert first[TIME].numbers == (number,)
