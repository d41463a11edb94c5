"""Comparisons of real runs: the numbers, the tests, what is refused, what is left out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from qdbench import InvalidInput, load
from qdbench.analysis import table_files
from qdbench.analysis.collect import collect
from qdbench.analysis.comparable import times_comparable
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.measures import final, pooled_interval
from qdbench.analysis.paper_table import latex
from qdbench.metrics.metric import METRICS
from qdbench.store.archive_file import StoredArchive
from qdbench.store.files import read_json
from toy_runs import ALGORITHMS, BOUNDS, SEEDS, TASKS, edited, entries, function, make, make_all, toy


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("comparison") / "results")


@pytest.fixture(scope="module")
def comparison(results: Path) -> Comparison:
    return compare([results])


def measured(results: Path, task: str, algorithm: str, **how: Any) -> list[dict[str, float]]:
    runs = [load(results / task / algorithm / f"seed-{seed}") for seed in SEEDS]
    return [final(run, how.get("interval", BOUNDS), how.get("on", "own")) for run in runs]


# The numbers


def test_estimates_are_those_of_the_runs(comparison: Comparison, results: Path) -> None:
    cells = {"toy_a": 63, "toy_b": 36}
    for task in TASKS:
        for algorithm in ALGORITHMS:
            values = measured(results, task, algorithm)
            for one in values:
                for name in ("coverage", "corrected_coverage"):
                    one[f"{name}_share"] = one[name] / cells[task]
            for metric in METRICS:
                (found,) = entries(comparison, task=task, variant=algorithm, metric=metric)
                numbers = [one[metric] for one in values if not np.isnan(one[metric])]
                assert (found.n_runs, found.estimate.n) == (4, len(numbers))
                if numbers:
                    middle = sorted(numbers)[1:3]
                    assert found.estimate.iqm == pytest.approx(np.mean(middle))
                    assert found.estimate.median == pytest.approx(np.median(numbers))
                    assert min(numbers) <= found.estimate.low <= found.estimate.high <= max(numbers)
                else:
                    (reason,) = found.undefined
                    assert found.undefined[reason] == 4
                    kinds = {
                        "alive": "no episode_length",
                        "rarefied": "fewer than 100 elites",
                        "interior": "no elite is in a cell of a grid",
                        "true": "tasks with known truth",
                    }
                    why = [words for kind, words in kinds.items() if kind in metric]
                    assert any(words in reason for words in (*why, "no cells")), metric
    assert comparison == compare([results])  # the bootstrap too


def test_pairs_and_their_adjustment(comparison: Comparison, results: Path) -> None:
    found = [pair for pair in comparison.pairs if pair.metric == "corrected_qd_score"]
    expected = []
    for task in TASKS:
        groups = {a: [one["corrected_qd_score"] for one in measured(results, task, a)] for a in ALGORITHMS}
        for a, b in combinations(ALGORITHMS, 2):
            p = stats.mannwhitneyu(groups[a], groups[b]).pvalue
            wins = np.mean([(x > y) + (x == y) / 2 for x in groups[a] for y in groups[b]])
            expected.append((task, a, b, p, wins))
    assert [(pair.task, pair.a, pair.b, pair.p, pair.improvement) for pair in found] == [
        (*names, pytest.approx(p), pytest.approx(wins)) for *names, p, wins in expected
    ]
    adjusted = [pair.p_holm for pair in found]
    in_order = sorted(range(6), key=lambda i: found[i].p)
    assert adjusted[in_order[0]] == pytest.approx(min(1, 6 * found[in_order[0]].p))
    others = [pair for pair in comparison.pairs if pair.metric == "coverage"]
    assert len(others) == 6
    assert min(pair.p_holm for pair in others) == pytest.approx(min(1, 6 * min(pair.p for pair in others)))
    assert not any(pair.primary for pair in comparison.pairs)  # that is the aggregate
    alone = compare([results / "toy_a"])
    assert {pair.metric for pair in alone.pairs if pair.primary} == {"corrected_qd_score"}
    assert alone.aggregate is None
    assert not {"coverage_share", "fitness_deviation", "self_normalised_qd_score"} & {
        pair.metric for pair in comparison.pairs
    }


def test_the_pooled_interval_and_the_grid(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "toy_a", tmp_path / "runs")
    interval = pooled_interval([load(path.parent) for path in (tmp_path / "runs").rglob("run.json")])
    broken = make(tmp_path / "runs/broken", toy("toy_a", initial_bounds=(-1, 1)), seed=9)
    edited(broken, totals__lowest_fitness=-1e6)  # what is not used has no say
    (broken / "archive.npz").write_bytes(b"nothing")
    found = compare([tmp_path / "runs"], interval="pooled", on="grid")
    assert found.tasks[0].interval == interval
    assert interval[0] > BOUNDS[0]
    for algorithm in ALGORITHMS:
        pooled = measured(results, "toy_a", algorithm, interval=interval, on="grid")
        fixed = measured(results, "toy_a", algorithm, on="grid")
        for metric, values in (("qd_score", pooled), ("mean_fitness", pooled), ("qd_score_loss", fixed)):
            (entry,) = entries(found, variant=algorithm, metric=metric)
            assert entry.estimate.median == pytest.approx(np.median([one[metric] for one in values]))
    assert [one.path for one in found.skipped] == [broken]
    assert "QD score on the pooled interval" in table_files.markdown(found)


def test_solutions_are_never_read(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(archive: StoredArchive) -> None:
        raise AssertionError("solutions were read")

    monkeypatch.setattr(StoredArchive, "elites", property(refuse))
    assert compare([results / "toy_a"]).tasks


def test_without_noise_nothing_is_lost(tmp_path: Path) -> None:
    def quiet(solutions: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]:
        return function(solutions, np.full(len(solutions), 777, np.uint64))

    for seed in range(3):
        make(tmp_path / f"seed-{seed}", toy("quiet", function=quiet, noisy=False), seed=seed)
    found = compare([tmp_path])
    for name in ("coverage", "qd_score", "max_fitness"):
        (loss,) = entries(found, metric=f"{name}_loss")
        assert (loss.estimate.n, loss.estimate.iqm, loss.estimate.high) == (3, 0, 0)
    assert (found.pairs, found.aggregate) == ((), None)  # one algorithm, one task


# What is missing


def test_without_corrections_the_uncorrected_score_counts_and_says_so(tmp_path: Path) -> None:
    for seed in range(2):
        make(tmp_path / f"a{seed}", toy("toy_a"), seed=seed, corrections=0)
        make(tmp_path / f"b{seed}", toy("toy_a"), "random_search", seed, corrections=0)
    found = compare([tmp_path])
    assert found.tasks[0].primary == "qd_score"
    (pair,) = (pair for pair in found.pairs if pair.primary)
    assert pair.metric == "qd_score"
    assert np.isnan([pair.p, pair.p_holm]).all()  # two replications
    assert 0 <= pair.low <= pair.improvement <= pair.high <= 1
    page = table_files.markdown(found)
    assert "Primary endpoint: the final QD score, uncorrected, because no final archive was corrected" in page
    assert "too few replications (\\< 3)" in page
    row = re.search(
        r"\| corrected QD score \| all \| 0 of 4 \\\[(\w)\\\] \| undefined \| undefined \| - \|", page
    )
    assert row
    assert f"\\[{row[1]}\\] Undefined: the elites of the final archive were not re-evaluated" in page


def test_an_entry_says_how_many_replications_it_is_based_on(tmp_path: Path) -> None:
    for seed in range(3):
        make(tmp_path / f"a{seed}", toy("toy_a"), seed=seed, corrections=1 if seed else 0)
    found = compare([tmp_path])
    (entry,) = entries(found, metric="corrected_qd_score")
    assert (entry.n_runs, entry.estimate.n) == (3, 2)
    page = table_files.markdown(found)
    assert re.search(r"\| corrected QD score \| map\\_elites \| 2 of 3 \\\[\w\\\] \|", page)


def test_undefined_losses_have_their_reasons(tmp_path: Path) -> None:
    def always(fitness: float) -> Callable[..., tuple[NDArray[Any], NDArray[Any]]]:
        def constant(
            solutions: NDArray[np.float32], seeds: NDArray[np.uint64]
        ) -> tuple[NDArray[Any], NDArray[Any]]:
            return np.full(len(solutions), fitness), solutions[:, :2]

        return constant

    make(tmp_path / "negative", toy("negative", function=always(-1.0)))
    make(tmp_path / "invalid", toy("invalid", function=always(np.nan)))
    found = compare([tmp_path])
    below = "Loss is undefined if the uncorrected value is ≤ 0."
    range_less = "Undefined: all elites have the same fitness."
    expected = {
        ("negative", "max_fitness_loss"): below,
        ("negative", "self_normalised_qd_score"): range_less,
        ("invalid", "max_fitness_loss"): below,
        ("invalid", "coverage_loss"): below,
        ("invalid", "max_fitness"): "Undefined: the archive is empty.",
        ("invalid", "corrected_mean_fitness"): "Undefined: the corrected archive is empty.",
    }
    for (task, metric), reason in expected.items():
        (entry,) = entries(found, task=task, metric=metric)
        assert entry.undefined == {reason: 1}
    (coverage,) = entries(found, task="invalid", metric="coverage")
    assert coverage.estimate.iqm == 0


def test_unusable_folders_are_named_and_left_out(
    comparison: Comparison, results: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    shutil.copytree(results, out)
    names = ("running", "failed", "cut", "changed", "wrong", "nameless")
    sources = {
        name: make(out / f"toy_a/map_elites/{name}", toy("toy_a"), seed=10 + i)
        for i, name in enumerate(names)
    }
    edited(sources["running"], status="running")
    edited(sources["failed"], status="failed", reason="five is too many")
    whole = (sources["cut"] / "archive.npz").read_bytes()
    (sources["cut"] / "archive.npz").write_bytes(whole[:-200])
    damaged = bytearray((sources["changed"] / "corrected.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (sources["changed"] / "corrected.npz").write_bytes(damaged)
    (sources["wrong"] / "run.json").write_text('{"name": "something else"}')
    (sources["nameless"] / "run.json").unlink()
    found = compare([out])
    reasons = {one.path.name: one.reason for one in found.skipped}
    assert reasons.keys() == sources.keys()
    assert reasons["running"] == "its status is running"
    assert reasons["failed"] == "its status is failed: five is too many"
    assert reasons["nameless"] == "it has an archive.npz or checkpoint.npz, but no run.json"
    for name, file in (("cut", "archive.npz"), ("changed", "corrected.npz"), ("wrong", "run.json")):
        assert f"{file} is damaged and was not used" in reasons[name]
    assert found.tasks == comparison.tasks
    assert found.pairs == comparison.pairs
    assert table_files.markdown(found).count("five is too many") == 1
    assert "% 6 skipped runs: see compare.md" in latex(found)


# What cannot be compared


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """One replication of each of two algorithms, and a second of the first."""
    return [
        make(tmp_path / "results/a0", toy("toy_a")),
        make(tmp_path / "results/a1", toy("toy_a"), seed=1),
        make(tmp_path / "results/b0", toy("toy_a"), "random_search"),
    ]


def slower(runs: Sequence[Path], evaluations: int | None = None) -> None:
    for run, workers in zip(runs, (1, 1, 8), strict=True):
        edited(run, target={"evaluations": evaluations, "seconds": 3.0}, environments__0__workers=workers)


Break = Callable[[Sequence[Path]], object]
REFUSED: dict[str, Break] = {
    r"the runs of toy_a are not of the same task: fingerprint \w+, mujoco \S+ \(.*a0, .*a1\) against "
    r"fingerprint other, mujoco 9.9 \(.*b0\); compare them separately": lambda runs: edited(
        runs[2], task__fingerprint="other", environments__0__mujoco="9.9"
    ),
    r"different budgets: evaluations 200 \(.*a0, .*a1\), 300 \(.*b0\)": lambda runs: edited(
        runs[2], target__evaluations=300
    ),
    r"different budgets: seconds None .*, 5.0 \(.*b0\)": lambda runs: edited(runs[2], target__seconds=5.0),
    r"the runs of map_elites on toy_a have different options: batch_size 50 \(.*a0\), 25 \(.*a1\)": (
        lambda runs: edited(runs[1], algorithm__options__batch_size=25)
    ),
    r"a1 and .*a2 are both seed 1 of map_elites on toy_a": lambda runs: shutil.copytree(
        runs[1], runs[1].with_name("a2")
    ),
    r"re-evaluated different numbers of times: 6 \(.*\), 3 \(.*b1\)": lambda runs: make(
        runs[2].with_name("b1"), toy("toy_a"), "random_search", 1, reevaluations=3
    ),
    r"differ in workers 1 \(.*\), 8 \(.*b0\)\. Equal seconds are then not equal budgets": slower,
    r"had a budget of seconds, but differ in .*not equal budgets": lambda runs: slower(
        runs, evaluations=10**6
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_differs_is_refused(sentence: str, two: list[Path]) -> None:
    folder = two[0].parent
    assert compare([folder]).tasks
    REFUSED[sentence](two)
    with pytest.raises(InvalidInput, match=sentence):
        compare([folder])


def test_tuning_seeds_beside_others_are_told(two: list[Path]) -> None:
    (task,) = compare(two).tasks
    assert task.warnings == ()
    assert "seeds: map_elites 0-1; random_search 0" in task.notes
    shutil.rmtree(two[1])
    make(two[1], toy("toy_a"), seed=103)
    (task,) = compare(two).tasks
    (warning,) = task.warnings
    assert "the runs of map_elites have seeds 0,103; those from 100 up are for tuning" in warning


@pytest.mark.parametrize(
    ("fact", "value"), [("host", "elsewhere"), ("cpu", "Other CPU"), ("workers", 7), ("jobs", 2)]
)
def test_seconds_are_left_out_when_they_cannot_be_compared(fact: str, value: object, two: list[Path]) -> None:
    folder = two[0].parent
    assert times_comparable(collect([folder]).variants) == ""
    assert entries(compare(folder), metric="seconds")
    edited(two[2], **{f"environments__0__{fact}": value})
    reason = times_comparable(collect([folder]).variants)
    assert re.match(rf"seconds are left out, because the runs differ in {fact} .*{value} \(.*b0\)$", reason)
    found = compare(folder)
    assert not entries(found, metric="seconds")
    assert not [pair for pair in found.pairs if pair.metric == "seconds"]
    assert reason in found.tasks[0].notes


def test_a_run_continued_elsewhere_has_no_comparable_time(two: list[Path]) -> None:
    places = read_json(two[0] / "run.json")["environments"]
    edited(two[0], environments=[*places, {**places[0], "workers": 3}])
    assert "workers 1" in times_comparable(collect([two[0].parent]).variants)
