"""The numbers behind the figures, by hand; then the figures."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from numpy.typing import NDArray

from noisy_runs import ALGORITHMS, noisy, run
from qdbench import InvalidInput
from qdbench.algorithms.registry import BUILT_IN, IN_EXTRAS
from qdbench.analysis.measured import MeasuredRun, MeasuredTask
from qdbench.analysis.measures import PlacedRun, final, fixed_interval
from qdbench.analysis.measuring import SIZES, measure, sample_counts
from qdbench.metrics.metric import CURVES
from qdbench.metrics.robustness import by_samples, extrapolated
from qdbench.metrics.scores import self_normalised_qd_score
from qdbench.reports import style
from qdbench.reports.archives import archives_figure
from qdbench.reports.figures import (
    draw_losses,
    draw_metric,
    draw_profiles,
    in_order,
    paper_figure,
    self_normalised_figure,
)
from qdbench.reports.samples import limits, samples_figure, shared_band
from qdbench.reports.sizes import sizes_figure
from qdbench.reports.style import looks, save_figure
from qdbench.store.files import read_json
from running import carry_out, rewrite
from toy_runs import edited

pytestmark = pytest.mark.usefixtures("coarse")


@pytest.fixture(scope="module")
def measured(noisy_results: Path) -> MeasuredTask:
    return measure_all(noisy_results)


def measure_all(*paths: Path, **how: Any) -> MeasuredTask:
    found = measure(paths, **how)
    assert found.skipped == ()
    (task,) = found.tasks
    return task


def looks_of(measured: MeasuredTask) -> dict[str, style.Look]:
    return looks(variant.label for variant in measured.variants)


def along(one: MeasuredRun, name: str) -> NDArray[np.float64]:
    """Return a column of metrics.csv, on the cells that the run is measured on."""
    return one.run.metrics[f"grid_{name}" if one.has_other_cells else name]


# What is measured


def test_by_samples_agrees_with_the_metrics_room(measured: MeasuredTask) -> None:
    assert sample_counts(5) == [1, 2, 3, 4, 5]
    assert sample_counts(1) == [1]
    assert (sample_counts(50)[:4], sample_counts(50)[-1]) == ([1, 2, 3, 4], 50)
    for variant in measured.variants:
        for one in variant.runs:
            point = one.run.final_point
            assert point is not None
            assert one.corrected is not None
            placed = PlacedRun(one.run)
            where, again = placed.geometry, placed.reevaluations(point)
            expected = by_samples(where, again, (-20.0, 10.0))
            got = one.corrected.by_samples
            np.testing.assert_array_equal(got.coverage, [score.coverage for score in expected])
            np.testing.assert_array_equal(got.qd_score, [score.qd_score for score in expected])
            limit = extrapolated(where, again, (-20.0, 10.0))
            np.testing.assert_array_equal(got.extrapolated.qd_score, limit.qd_score)
            np.testing.assert_array_equal(got.extrapolated.coverage, limit.coverage)
        corrected = variant.corrected
        band = shared_band([one.by_samples for one in corrected], "qd_score")
        by_hand = [[one.by_samples.qd_score[i] for one in corrected] for i in range(5)]
        np.testing.assert_allclose(band.middle, [np.median(values) for values in by_hand])
        assert limits(corrected, "qd_score") == [one.by_samples.extrapolated.qd_score for one in corrected]


def test_the_typical_replication_is_the_median_one(measured: MeasuredTask) -> None:
    for variant in measured.variants:
        scores = sorted(float(along(one, "qd_score")[-1]) for one in variant.runs)
        assert along(variant.typical, "qd_score")[-1] == scores[1]  # of four, the lower middle one


def test_measuring_leaves_no_archive_behind(noisy_results: Path) -> None:
    (task,) = measure(noisy_results).tasks
    for one in task.runs:
        assert not {"archive", "corrections"} & set(vars(one))


def test_the_pooled_interval_moves_scores_but_no_loss(noisy_results: Path, measured: MeasuredTask) -> None:
    pooled = measure_all(noisy_results, interval="pooled")
    totals = [one.record.totals for one in measured.runs]
    low, high = min(t.lowest_fitness for t in totals), max(t.highest_fitness for t in totals)
    assert pooled.by.interval == (low, high)
    assert "the pooled interval of these runs [\N{MINUS SIGN}" in str(pooled.by)
    for here, there in zip(measured.variants, pooled.variants, strict=True):
        for one, other in zip(here.runs, there.runs, strict=True):
            n, total = (along(one, name)[-1] for name in ("coverage", "sum_fitness"))
            assert other.qd_score == pytest.approx((total - n * low) / (high - low))
            losses = [f"{name}_loss" for name in CURVES]
            assert not np.isnan([one.values[name] for name in losses]).any()
            assert [one.values[name] for name in losses] == pytest.approx(
                [other.values[name] for name in losses]
            )


# Looks


def test_an_algorithm_keeps_its_colour() -> None:
    known = looks([*BUILT_IN, *IN_EXTRAS["ribs"], "map_elites-tuned", "random_search-uniform"])
    assert (
        len({look.colour for look in known.values()}) == len({look.marker for look in known.values()}) == 18
    )
    alone, among = looks(["my_own"]), looks(["my_own", "zebra", *known])
    assert alone["my_own"] == among["my_own"]
    assert {label: among[label] for label in known} == known
    assert among["zebra"].colour not in {look.colour for look in [*known.values(), among["my_own"]]}
    assert list(looks(["random_search", "aaa", "map_elites"])) == ["map_elites", "random_search", "aaa"]
    assert looks(["map_elites-big"])["map_elites-big"].name == "MAP-Elites (big)"
    assert looks(["map_elites-big"])["map_elites-big"].colour != known["map_elites"].colour


# Drawings


def texts(figure: Any) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text) if text.get_visible())


def test_curves_are_drawn_as_they_are(measured: MeasuredTask) -> None:
    axes: Any = Figure().add_subplot()
    look = looks_of(measured)
    draw_metric(axes, measured.variants, look, "coverage", "evaluations")
    for i, variant in enumerate(measured.variants):
        solid, dashed = axes.lines[2 * i : 2 * i + 2]
        values = np.array([along(one, "coverage") for one in variant.runs])
        np.testing.assert_array_equal(solid.get_xdata(), measured.runs[0].metrics["evaluations"])
        np.testing.assert_array_equal(solid.get_ydata(), np.median(values, axis=0))
        assert solid.get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(dashed.get_xdata(), [80, 160, 200])
        last = [one.corrected.fitness.size for one in variant.runs if one.corrected is not None]
        assert dashed.get_ydata()[-1] == np.median(last)
        assert solid.get_color() == dashed.get_color() == look[variant.label].colour
        assert (solid.is_dashed(), dashed.is_dashed()) == (False, True)


def test_the_self_normalised_score_is_drawn_along_both_axes(measured: MeasuredTask) -> None:
    figure = self_normalised_figure(measured, looks_of(measured))
    assert [axes.get_xlabel() for axes in figure.axes] == ["evaluations", "time (s)"]
    for i, label in enumerate(looks_of(measured)):
        (variant,) = (variant for variant in measured.variants if variant.label == label)
        solid, dashed = figure.axes[0].lines[2 * i : 2 * i + 2]
        ends = [final(one.run, fixed_interval(one.run))["self_normalised_qd_score"] for one in variant.runs]
        assert solid.get_ydata()[-1] == pytest.approx(np.median(ends))
        after = [self_normalised_qd_score(one.fitness) for one in variant.corrected]
        assert dashed.get_ydata()[-1] == pytest.approx(np.median(after))


def test_profiles_are_drawn_exactly(measured: MeasuredTask) -> None:
    axes: Any = Figure().add_subplot()
    draw_profiles(axes, measured.variants, looks_of(measured))
    for i, variant in enumerate(measured.variants):
        before = [PlacedRun(one.run).fitness for one in variant.runs]
        after = [one.fitness for one in variant.corrected]
        for line, fitness in zip(axes.lines[2 * i : 2 * i + 2], (before, after), strict=True):
            assert line.get_drawstyle() == "steps-pre"
            for x, y in line.get_xydata():
                assert y == np.median([(values >= x).sum() for values in fitness])


def test_bars_are_the_median_losses(measured: MeasuredTask) -> None:
    axes: Any = Figure().add_subplot()
    draw_losses(axes, measured.variants, looks_of(measured))
    heights = [bar.get_height() for bar in axes.patches]
    dots = [line.get_ydata() for line in axes.lines[:-1]]  # the last is the line at 0
    whiskers = [lines.get_segments()[0][:, 1] for lines in axes.collections]
    expected = [
        [100 * final(one.run, fixed_interval(one.run))[f"{name}_loss"] for one in variant.runs]
        for name in CURVES
        for variant in measured.variants
    ]
    np.testing.assert_allclose(heights, np.median(expected, axis=1))
    np.testing.assert_allclose(dots, expected)
    np.testing.assert_allclose(whiskers, np.quantile(expected, (0.25, 0.75), axis=1).T)
    assert min(np.ptp(values) for values in expected) > 0


def test_undefined_losses_are_said_to_be(tmp_path: Path) -> None:
    for seed in range(2):
        run(tmp_path, noisy(2, highest=-1.0), "map_elites", seed)
    found = measure_all(tmp_path)
    axes: Any = Figure().add_subplot()
    draw_losses(axes, found.variants, looks_of(found))
    assert len(axes.patches) == 2  # coverage and QD score
    assert [text.get_text() for text in axes.texts] == ["2 of 2 undefined"]


def test_the_corrected_archive_is_what_is_measured(noisy_results: Path, measured: MeasuredTask) -> None:
    for variant in measured.variants:
        one = variant.typical
        for on in ("own", "grid"):
            placed, point = PlacedRun(one.run, on), one.run.final_point
            assert point is not None
            before, after = placed.stored, placed.corrected(point)
            values = final(one.run, fixed_interval(one.run), on)
            assert (len(before), len(after)) == (values["coverage"], values["corrected_coverage"])
            assert (before.elites.fitness.max(), after.elites.fitness.max()) == (
                values["max_fitness"],
                values["corrected_max_fitness"],
            )
            if placed.geometry.kind != "unstructured":
                cells = placed.geometry.cells(after.elites.descriptors)
                np.testing.assert_array_equal(cells, after.cells)
        assert one.corrected is not None
        for drawn, fitness in zip(variant.archives, (one.fitness, one.corrected.fitness), strict=True):
            assert drawn is not None
            np.testing.assert_array_equal(np.sort(drawn.elites.fitness), np.sort(fitness))


def test_heatmaps_share_a_scale_and_name_the_seed(measured: MeasuredTask) -> None:
    figure = archives_figure(measured, looks_of(measured))
    images = [
        image
        for axes in figure.axes
        for image in (*axes.images, *axes.collections)
        if image.get_array() is not None
    ]
    drawn = [archive for v in measured.variants for archive in v.archives if archive is not None]
    assert len(drawn) == 2 * len(measured.variants)
    low = min(archive.elites.fitness.min() for archive in drawn)
    high = max(archive.elites.fitness.max() for archive in drawn)
    scaled = {(image.norm.vmin, image.norm.vmax) for image in images}
    assert (low, high) in scaled
    assert len(scaled) == 1
    said = texts(figure)
    for variant in measured.variants:
        assert f"seed {variant.typical.seed}: {len(variant.typical.fitness)} " in said
        assert variant.typical.corrected is not None
        assert f"corrected\n{len(variant.typical.corrected.fitness)} " in said


@pytest.mark.usefixtures("only_png")
@pytest.mark.parametrize("dimensions", [1, 4, 6])
def test_archives_of_all_dimensions_are_drawn(dimensions: int, tmp_path: Path) -> None:
    names = tuple(f"foot {i} on the ground" for i in range(dimensions))
    task = replace(noisy(dimensions), descriptor_names=names)
    for algorithm in ALGORITHMS:
        run(tmp_path, task, algorithm, 0, corrections=1)
    found = measure_all(tmp_path)
    figure = archives_figure(found, looks_of(found))
    save_figure(figure, tmp_path / "archives")
    assert n_colours(tmp_path / "archives.png") > 30
    said = texts(figure)
    projected = "are projected onto the task's grid: the fittest elite of each" in said
    assert projected == (dimensions > 2)  # a CVT
    for i, name in enumerate(names):  # only at the bottom, and only at the left
        assert said.count(name) == (len(ALGORITHMS) if i % 2 else 2)


@pytest.mark.usefixtures("only_png")
@pytest.mark.parametrize("dimensions", [1, 2, 4, 6])
def test_nothing_is_cut_off(dimensions: int, tmp_path: Path) -> None:
    names = tuple(f"foot {i} on the ground" for i in range(dimensions))
    run(tmp_path, replace(noisy(dimensions), descriptor_names=names), "map_elites", 0, corrections=1)
    found = measure_all(tmp_path)
    figure = archives_figure(found, looks_of(found))
    save_figure(figure, tmp_path / "archives")
    pixels = imread(tmp_path / "archives.png")[..., :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 1).all()  # white


def test_a_note_has_one_full_stop(measured: MeasuredTask) -> None:
    figure = Figure()
    style.add_note(figure, ["First.", "", "second"])
    assert texts(figure).strip().endswith("First; second.")


def n_colours(path: Path) -> int:
    red, green, blue = (imread(path)[..., :3] * 255).round().astype(int).T
    return len(np.unique((red * 256 + green) * 256 + blue))


def test_figures_are_legible_and_repeat(measured: MeasuredTask, tmp_path: Path) -> None:
    measured = replace(measured, variants=measured.variants[:2])
    interval = f"QD score on the task's fixed interval [{chr(0x2212)}20, 10]"
    for draw in (paper_figure, self_normalised_figure, archives_figure, samples_figure):
        figure = draw(measured, looks_of(measured))
        png, svg, pdf = save_figure(figure, tmp_path / "first")
        if draw is not paper_figure:  # it takes long, and is made of the same
            for again in save_figure(draw(measured, looks_of(measured)), tmp_path / "second"):
                assert again.read_bytes() == (tmp_path / f"first{again.suffix}").read_bytes(), again.suffix
        assert n_colours(png) > 100
        assert svg.read_text().startswith("<?xml")
        assert pdf.read_bytes().startswith(b"%PDF")
        assert figure.get_figwidth() <= 7
        assert min(t.get_fontsize() for t in figure.findobj(Text) if t.get_text().strip()) >= 7
        scale = "each archive's own range" if draw is self_normalised_figure else interval
        assert scale in texts(figure).replace("\n", " ")


@pytest.mark.usefixtures("only_png")
def test_without_corrections_nothing_is_dashed(tmp_path: Path) -> None:
    run(tmp_path, noisy(2), "map_elites", 3, corrections=0)
    found = measure_all(tmp_path)
    look = looks_of(found)
    figure = paper_figure(found, look)
    assert not any(line.is_dashed() and len(line.get_xdata()) for axes in figure.axes for line in axes.lines)
    said = texts(figure)
    assert "no re-evaluations:\nqdbench correct" in said
    assert "noisy2: 1 replication;" in said
    assert "\ncorrected" not in said
    assert "corrected" not in texts(archives_figure(found, look))
    assert texts(samples_figure(found, look)).count("no re-evaluations") == 2
    save_figure(figure, tmp_path / "figure")


def test_who_was_not_corrected_is_said(noisy_results: Path, tmp_path: Path) -> None:
    for algorithm in ("map_elites", "cvt_map_elites"):
        shutil.copytree(noisy_results / "noisy2" / algorithm, tmp_path / algorithm)
    for name in ("map_elites/seed-1", *(f"cvt_map_elites/seed-{seed}" for seed in range(4))):
        (tmp_path / name / "corrected.npz").unlink()
        target = read_json(tmp_path / name / "run.json")["target"]
        never = {"corrections": {"points": 0, "reevaluations": 50}}
        rewrite(tmp_path / name / "run.json", target=target | never)
    found = measure_all(tmp_path)
    for draw in (paper_figure, archives_figure, samples_figure):
        said = texts(draw(found, looks_of(found))).replace("\n", " ")
        assert "map_elites: 3 of 4 replications corrected at the end" in said
        assert "cvt_map_elites: none of 4 replications corrected at the end" in said
    assert texts(paper_figure(found, looks_of(found))).count("no re-evaluations") == 3


def test_what_says_little_is_said_to(noisy_results: Path, tmp_path: Path) -> None:
    remark = "standing still reaches the maximum fitness: it says little here"
    copy = shutil.copytree(noisy_results / "noisy2/map_elites", tmp_path / "map_elites")
    for told in (False, True):
        found = measure_all(copy)
        said = texts(paper_figure(found, looks_of(found))).replace("\n", " ")
        assert (remark in said) is told
        for path in copy.iterdir():
            edited(path, facts__remark_on_max_fitness=remark)


def test_axes_carry_the_names_of_descriptors(noisy_results: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(noisy_results / "noisy2/map_elites", tmp_path / "map_elites")
    for path in copy.iterdir():
        edited(path, facts__descriptor_names=["final x (m)", "final y (m)"])
    found = measure_all(copy)
    said = texts(archives_figure(found, looks_of(found)))
    assert "final x (m)" in said
    assert "final y (m)" in said
    assert "descriptor 1" not in said


def test_a_run_corrected_before_its_end_is_dashed_and_told(tmp_path: Path) -> None:
    for evaluations, corrections in ((80, 1), (200, 0)):
        carry_out(
            noisy(2), "map_elites", 0, out=tmp_path, options={"batch_size": "40"}, evaluations=evaluations,
            corrections=corrections, reevaluations=5,
        )  # fmt: skip
    found = measure_all(tmp_path)
    figure = paper_figure(found, looks_of(found))
    dashed = [line for line in figure.axes[0].lines if line.is_dashed()]
    assert [line.get_xdata().tolist() for line in dashed] == [[80]]
    said = texts(figure).replace("\n", " ")
    assert "corrected: means of 5 re-evaluations; map_elites: none of 1 replications corrected at" in said
    assert "corrected" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_times_that_cannot_be_compared_are_left_out(noisy_results: Path, tmp_path: Path) -> None:
    shutil.copytree(noisy_results / "noisy2/map_elites", tmp_path / "map_elites")
    assert "time (s)" in texts(paper_figure(measure_all(tmp_path), looks(["map_elites"])))
    run(tmp_path, noisy(2), "random_search", 0, jobs=2)
    found = measure_all(tmp_path)
    figure = paper_figure(found, looks_of(found))
    said = texts(figure).replace("\n", " ")
    assert "time (s)" not in said
    assert "seconds are left out, because the runs differ in jobs 1, 2" in said
    assert str(tmp_path) not in said
    assert len(figure.axes) == 3 + 2


@pytest.mark.usefixtures("only_png")
def test_empty_archives_are_drawn_too(tmp_path: Path) -> None:
    def nothing(solutions: NDArray[np.float32]) -> tuple[Any, Any]:
        return np.full(len(solutions), np.nan), np.zeros((len(solutions), 2))

    task = replace(noisy(2), function=nothing, noisy=False)
    run(tmp_path, task, "map_elites", 0)
    found = measure_all(tmp_path)
    for draw in (paper_figure, archives_figure, samples_figure):
        save_figure(draw(found, looks_of(found)), tmp_path / "empty")
    assert "all archives are empty" in texts(paper_figure(found, looks_of(found)))
    with pytest.raises(InvalidInput, match="no two different fitness values"):
        measure(tmp_path, interval="pooled")


def test_losses_by_size_are_those_of_the_metrics_room(measured: MeasuredTask) -> None:
    figure = sizes_figure(measured, looks_of(measured))
    assert "elites drawn at random" in texts(figure)
    variants = in_order(measured.variants, looks_of(measured))
    for panel, name in zip(figure.axes[:2], ("coverage", "qd_score"), strict=True):
        for line, variant in zip(panel.lines, variants, strict=True):
            smallest = min(len(PlacedRun(one.run).fitness) for one in variant.runs)
            assert line.get_xdata().tolist() == [m for m in SIZES if m <= smallest]
            for m, y in line.get_xydata():
                expected = []
                for one in variant.runs:
                    placed, point = PlacedRun(one.run), one.run.final_point
                    assert point is not None
                    (lost,) = placed.rarefied(point, [int(m)])
                    expected.append(getattr(lost, name))
                assert y == pytest.approx(np.median(expected))
