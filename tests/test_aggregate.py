"""The aggregate over tasks, its anchors and its tests; labels, chosen metrics and chosen pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdbench import InvalidInput, UnknownName, load
from qdbench.analysis.aggregate import Aggregate, Anchor, Anchors
from qdbench.analysis.chosen import read_labels
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.measured import Measured
from qdbench.analysis.measures import final
from qdbench.analysis.measuring import measure
from qdbench.analysis.tables import Table, marked, over_tasks, tables
from toy_runs import edited, entries, function, make, toy

BOUNDS = (-30.0, 12.0)
ALGORITHMS = ("cvt_map_elites", "map_elites", "random_search")
HARD = ("hard_a", "hard_b")
"""Tasks on which MAP-Elites is better than random search; on `even` all are equal."""
SEEDS = range(4)


def even(solutions: NDArray[np.float32], seeds: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.ones(len(solutions)), function(solutions, seeds)[1]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("aggregate") / "results"
    for algorithm in ALGORITHMS:
        for seed in SEEDS:
            for name in HARD:
                task = toy(name, n_parameters=25, fitness_bounds=BOUNDS, cells=(5 + (name == HARD[1]), 4))
                make(
                    out / name / algorithm / str(seed), task, algorithm, seed, evaluations=600, corrections=0
                )
            task = toy("even", function=even, cells=(2, 2), fitness_bounds=BOUNDS)
            make(out / "even" / algorithm / str(seed), task, algorithm, seed, corrections=0)
    return out


@pytest.fixture(scope="module")
def measured(results: Path) -> Measured:
    return measure(results)


@pytest.fixture(scope="module")
def found(measured: Measured) -> Aggregate:
    return aggregate_of(compare(measured))


def aggregate_of(comparison: Comparison) -> Aggregate:
    assert comparison.aggregate is not None
    return comparison.aggregate


def qd_scores(results: Path, task: str, algorithm: str) -> NDArray[np.float64]:
    runs = [load(results / task / algorithm / str(seed)) for seed in SEEDS]
    return np.array([final(run, BOUNDS)["qd_score"] for run in runs])


def normalised(results: Path, task: str, algorithm: str) -> NDArray[np.float64]:
    zero, one = (qd_scores(results, task, who).mean() for who in ("random_search", "map_elites"))
    return np.array((qd_scores(results, task, algorithm) - zero) / (one - zero))


# The numbers


def test_scores_are_the_mean_over_tasks_of_normalised_means(found: Aggregate, results: Path) -> None:
    assert [score.variant for score in found.scores] == list(ALGORITHMS)
    for score in found.scores:
        means = {task: normalised(results, task, score.variant).mean() for task in HARD}
        assert score.tasks == pytest.approx(means)
        assert score.mean == pytest.approx(sum(means.values()) / 2)
        assert score.low < score.mean < score.high
        assert score.n_runs == 8
    by_name = {score.variant: score.mean for score in found.scores}
    assert by_name["map_elites"] == pytest.approx(1)
    assert by_name["random_search"] == pytest.approx(0)
    assert found.anchors.source == "these runs"


def test_a_task_whose_anchors_do_not_differ_is_shown_and_named(found: Aggregate, measured: Measured) -> None:
    assert found.tasks == ["hard_a", "hard_b"]
    (reason,) = found.not_aggregated.values()
    assert reason.startswith("map_elites (")
    assert "is not above random_search (" in reason
    comparison = compare(measured)
    assert entries(comparison, task="even", metric="qd_score")
    overview, scores, _ = over_tasks(comparison)
    assert [row[0] for row in overview.rows] == ["even", "hard_a", "hard_b"]
    assert scores.title == "Normalised score, mean of 2 of 3 tasks"
    assert f"not aggregated: even, because {reason}" in scores.notes


def test_the_primary_tests_are_those_over_tasks(found: Aggregate, results: Path) -> None:
    assert [(pair.a, pair.b) for pair in found.pairs] == list(combinations(ALGORITHMS, 2))
    for pair in found.pairs:
        a, b = ([qd_scores(results, task, who) for task in ("even", *HARD)] for who in (pair.a, pair.b))
        wins = [np.mean([(i > j) + (i == j) / 2 for i in x for j in y]) for x, y in zip(a, b, strict=True)]
        assert pair.improvement == pytest.approx(np.mean(wins))  # all tasks, whatever their anchors
        assert pair.low <= pair.improvement <= pair.high
        assert (pair.n_tasks, pair.sizes) == (3, ((4, 4),) * 3)
        x, y = (np.mean([normalised(results, task, who).mean() for task in HARD]) for who in (pair.a, pair.b))
        assert pair.difference == pytest.approx(x - y)
        assert pair.difference_low < pair.difference < pair.difference_high
    p = sorted(pair.p for pair in found.pairs)
    assert min(pair.p_holm for pair in found.pairs) == pytest.approx(3 * p[0])
    last = next(pair for pair in found.pairs if pair.a == "map_elites")
    assert last.p < 0.01  # better than random search on two of three tasks


@pytest.mark.parametrize("task", HARD)
def test_every_task_moves_the_aggregate(task: str, measured: Measured, found: Aggregate) -> None:
    def raised(measured: Measured) -> Measured:
        tasks = []
        for one in measured.tasks:
            variants = [
                replace(v, runs=tuple(replace(run, values={**run.values, "qd_score": run.qd_score + 0.1})
                                      for run in v.runs))
                if (one.task, v.label) == (task, "cvt_map_elites") else v
                for v in one.variants
            ]  # fmt: skip
            tasks.append(replace(one, variants=tuple(variants)))
        return replace(measured, tasks=tuple(tasks))

    before, after = found.scores[0], aggregate_of(compare(raised(measured))).scores[0]
    anchor = found.anchors.tasks[task]["qd_score"]
    assert after.mean == pytest.approx(before.mean + 0.1 / (anchor.one - anchor.zero) / 2)


# Anchors


@pytest.mark.parametrize(
    ("anchor", "words"),
    [
        (Anchor(1.0, 3.0, 1.0, 3.0), ""),
        (
            Anchor(1.0, 3.0, -0.5, 3.0),
            "map_elites may equal random_search: the interval of their difference is",
        ),
        (Anchor(3.0, 1.0, -3.0, -1.0), "map_elites (1) is not above random_search (3)"),
        (Anchor(1.0, 1.0, 0.0, 0.0), "map_elites (1) is not above random_search (1)"),
        (Anchor(1.0, 3.0, np.nan, np.nan), "one run of map_elites or random_search cannot show"),
    ],
)
def test_which_anchors_can_be_used(anchor: Anchor, words: str) -> None:
    assert anchor.problem.startswith(words)
    assert bool(anchor.problem) == bool(words)


def test_given_anchors_are_frozen(results: Path, found: Aggregate, tmp_path: Path) -> None:
    only = [results / task / "cvt_map_elites" for task in HARD]
    alone = aggregate_of(compare(only))
    assert alone.scores == ()
    assert set(alone.not_aggregated.values()) == {"it needs runs of both random_search and map_elites"}
    frozen = aggregate_of(compare(only, anchors=found.anchors))
    assert frozen.scores == (found.scores[0],)  # the other runs do not matter
    anchors = Anchors("the protocol", {"hard_a": {"qd_score": Anchor(0.0, 10.0, 9.0, 11.0)}})
    given = aggregate_of(compare(results, anchors=anchors, out=tmp_path))
    assert given.scores[1].mean == pytest.approx(qd_scores(results, "hard_a", "map_elites").mean() / 10)
    assert given.not_aggregated["hard_b"] == "there are no anchors of it in the protocol"
    assert "taken from the protocol" in (tmp_path / "compare.md").read_text()


def test_anchors_that_cannot_be_used_are_refused(results: Path, found: Aggregate) -> None:
    for how in ({"interval": "pooled"}, {"on": "grid"}):
        with pytest.raises(InvalidInput, match="anchors belong to scores with interval='fixed' and on='own'"):
            compare(results, anchors=found.anchors, **how)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="anchors are 'mine'; give those of another comparison"):
        compare(results, anchors="mine")  # type: ignore[arg-type]


def test_an_algorithm_that_misses_a_task_has_no_score(results: Path) -> None:
    paths = [results / "hard_a", results / "hard_b/map_elites", results / "hard_b/random_search"]
    found = aggregate_of(compare(paths))
    assert [score.variant for score in found.scores] == ["map_elites", "random_search"]
    assert found.notes == ("cvt_map_elites has no normalised score: its primary metric is missing on hard_b",)
    by_name = {(pair.a, pair.b): pair for pair in found.pairs}
    assert by_name["cvt_map_elites", "map_elites"].n_tasks == 1
    assert np.isnan(by_name["cvt_map_elites", "map_elites"].difference)
    assert by_name["map_elites", "random_search"].n_tasks == 2


def test_options_that_differ_between_tasks_are_told(results: Path, tmp_path: Path) -> None:
    make(tmp_path / "other", toy("other"), batch_size="25")
    (note,) = aggregate_of(compare([results / "hard_a/map_elites", tmp_path])).notes
    assert note.startswith(
        "map_elites does not have the same options on every task: batch_size 50 (4 runs, such"
    )


# What is shown


def test_labels_rename_and_change_no_number(measured: Measured, found: Aggregate, tmp_path: Path) -> None:
    plain = compare(measured, out=tmp_path / "plain")
    labels = {"map_elites": "ME & co", "random_search": "RS"}
    other = compare(measured, labels=labels, out=tmp_path / "labelled")
    assert [score.variant for score in aggregate_of(other).scores] == ["cvt_map_elites", "ME & co", "RS"]
    assert [e.estimate for e in entries(other)] == [e.estimate for e in entries(plain)]
    assert [(p.p, p.low) for p in aggregate_of(other).pairs] == [(p.p, p.low) for p in found.pairs]
    for name in ("compare.md", "compare.csv", "pairs.csv"):
        rows = [
            line for line in (tmp_path / "labelled" / name).read_text().splitlines() if "means of" not in line
        ]
        text = "\n".join(line for line in rows if "the mean" not in line and "not above" not in line)
        assert "ME & co" in text
        for hidden in ("random_search", "random\\_search"):
            assert hidden not in text
    assert r"Task & cvt\_map\_elites & ME \& co & RS \\" in (tmp_path / "labelled/compare.tex").read_text()


def test_wrong_labels_are_refused(measured: Measured, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no algorithm 'map_elite'; did you mean 'map_elites'"):
        compare(measured, labels={"map_elite": "ME"})
    with pytest.raises(InvalidInput, match="two algorithms have the label 'random_search'"):
        compare(measured, labels={"map_elites": "random_search"})
    with pytest.raises(InvalidInput, match="the label of map_elites is ''"):
        compare(measured, labels={"map_elites": ""})
    with pytest.raises(InvalidInput, match="labels are 'x'"):
        compare(measured, labels="x")  # type: ignore[arg-type]
    (tmp_path / "bad").write_text("map_elites\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00=")
    for word, words in (
        (str(tmp_path / "bad"), "'map_elites' is not name=Label"),
        (str(tmp_path / "binary"), "is not a text file"),
        (str(tmp_path / "none"), "is neither name=Label nor a file"),
        ("a=", "'a=' is not name=Label"),
    ):
        with pytest.raises(InvalidInput, match=words):
            read_labels([word])
    (tmp_path / "labels").write_text("# mine\n\nmap_elites = MAP-Elites (a=b)\ncma=CMA\n")
    assert read_labels([str(tmp_path / "labels"), "cma=CMA-ME"]) == {
        "map_elites": "MAP-Elites (a=b)",
        "cma": "CMA-ME",
    }


@pytest.mark.parametrize("name", ["random_search", "RS"])
def test_against_one_algorithm_there_are_fewer_tests(name: str, measured: Measured, found: Aggregate) -> None:
    comparison = compare(measured, against=name, labels={"random_search": "RS"})
    pairs = aggregate_of(comparison).pairs
    assert [(pair.a, pair.b) for pair in pairs] == [("cvt_map_elites", "RS"), ("map_elites", "RS")]
    assert {pair.b for pair in comparison.pairs} == {"RS"}
    before = {pair.a: pair for pair in found.pairs if pair.b == "random_search"}
    assert pairs[1].p == before["map_elites"].p
    assert pairs[1].p_holm < before["map_elites"].p_holm
    with pytest.raises(UnknownName, match="no algorithm 'random_serch'; did you mean 'random_search'"):
        compare(measured, against="random_serch")


def test_chosen_metrics_are_shown_and_the_primary_is_tested(results: Path) -> None:
    alone = compare(results / "hard_a", metrics="max_fitness, coverage")
    assert list(dict.fromkeys(e.metric for e in entries(alone))) == ["max_fitness", "coverage"]
    assert {pair.metric for pair in alone.pairs if pair.primary} == {"qd_score"}
    assert {pair.metric for pair in alone.pairs} == {"max_fitness", "coverage", "qd_score"}
    several = over_tasks(compare(results, metrics=["max_fitness", "coverage"]))[0]
    assert [row[:2] for row in several.rows[2:4]] == [("hard_b", "max fitness"), ("even", "coverage")]
    with pytest.raises(UnknownName, match="no metric 'coverag'; did you mean 'coverage'"):
        compare(results, metrics="coverag")


def test_a_budget_that_was_exceeded_is_told_in_every_table(tmp_path: Path) -> None:
    for name in ("toy_a", "toy_b"):
        for seed in range(2):
            make(tmp_path / f"a{name}{seed}", toy(name), seed=seed, batch_size="64", corrections=0)
            make(
                tmp_path / f"b{name}{seed}", toy(name), "random_search", seed, batch_size="51", corrections=0
            )
            make(tmp_path / f"c{name}{seed}", toy(name), "cvt_map_elites", seed, corrections=0)
    comparison = compare(tmp_path, out=tmp_path / "out")
    assert comparison.tasks[0].evaluations["map_elites"] == 256  # of 200
    assert marked("random_search", comparison.tasks) == "random_search"  # 204: 2 % more, not above
    shown: list[Table] = tables(comparison)
    for table in shown:
        text = " ".join(" ".join(row) for row in (table.columns, *table.rows))
        if "map_elites" in text:
            assert "map_elites (+28 % evaluations)" in text, table.title
    assert r"map\_elites (+28 \% evaluations)" in (tmp_path / "out/compare.tex").read_text()
    assert ",256.0," in (tmp_path / "out/compare.csv").read_text()
    edited(tmp_path / "atoy_a0", target={"evaluations": None, "seconds": 1e9})
    assert compare(tmp_path / "atoy_a0").tasks[0].excess("map_elites") == 0  # a budget of seconds


def test_it_says_when_no_test_can_be_significant(results: Path) -> None:
    (primary,) = (table for table in tables(compare(results / "hard_a"), exploratory=False)[1:])
    (words,) = (note for note in primary.notes if note.startswith("no test"))
    assert "the smallest possible p after Holm is 0.0857; at least 5 replications" in words  # 3 × 2 / 70
    fewer = compare(results / "hard_a", against="map_elites")  # 2 × 2 / 70 is still more than 0.05
    assert any("at least 5 replications" in note for note in tables(fewer, exploratory=False)[1].notes)
    pair = [results / "hard_a" / name for name in ("map_elites", "random_search")]
    assert not any("no test" in note for note in tables(compare(pair), exploratory=False)[1].notes)
    assert not any("no test" in note for note in over_tasks(compare(results))[2].notes)
    uneven = [results / "hard_a/map_elites", results / "hard_a/random_search/0"]
    (_, nothing) = tables(compare(uneven), exploratory=False)[1].notes[:2]
    assert nothing.startswith("nothing is tested: no pair has 3 replications of both; at least")
    single = [results / "hard_a" / name / "0" for name in ALGORITHMS]
    notes = tables(compare(single), exploratory=False)[1].notes
    assert any("at least 5 replications of each algorithm are needed" in note for note in notes)
