"""What figures promise: who is who, what is corrected, and that every bar that has a height is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.markers import MarkerStyle

from html_page import parsed
from noisy_runs import noisy, run
from qdbench.algorithms.registry import BUILT_IN, IN_EXTRAS
from qdbench.analysis.compare import compare
from qdbench.analysis.measured import Measured
from qdbench.analysis.measuring import measure
from qdbench.analysis.references import MARK
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.geometry import Grid
from qdbench.reports import markup
from qdbench.reports.figures import draw_losses, draw_metric, paper_figure, self_normalised_figure
from qdbench.reports.heatmaps import Plane, draw_archive
from qdbench.reports.page import write_page
from qdbench.reports.spreads import TITLES, spreads_figure
from qdbench.reports.style import looks
from qdbench.reports.suite_figure import suite_figure

pytestmark = pytest.mark.usefixtures("coarse")

REFERENCES = ("map_elites", "map_elites-tuned", "aaa", "my_own")
BESIDE = ["my_own", "zebra", *(f"{name}{MARK}" for name in REFERENCES)]


# Looks


def test_references_beside_an_algorithm_do_not_change_its_look() -> None:
    alone, beside = looks(["my_own", "zebra"]), looks(BESIDE)
    assert {label: beside[label] for label in alone} == alone
    assert beside[f"map_elites{MARK}"].colour == looks(["map_elites"])["map_elites"].colour
    assert len({look.colour for look in beside.values()}) == 5  # my_own has the colour of its reference


def test_references_are_pale_and_named() -> None:
    found = looks(BESIDE)
    assert list(found) == [*BESIDE[:2], *(f"{name}{MARK}" for name in (*REFERENCES[:2], "my_own", "aaa"))]
    assert [label for label, look in found.items() if look.pale] == list(found)[2:]
    assert found[f"map_elites-tuned{MARK}"].name == "MAP-Elites (tuned), reference"


def test_every_marker_can_be_open() -> None:
    ours = [*BUILT_IN, *IN_EXTRAS["ribs"], "map_elites-tuned", "random_search-uniform"]
    for look in looks([*ours, *"abcdefghijkl"]).values():
        assert MarkerStyle(look.marker).is_filled(), look
    assert len({(look.colour, look.marker) for look in looks("abcdefghijkl").values()}) == 12


# The suite's figure


def as_references(measured: Measured, *labels: str) -> Measured:
    """Return the measurements with some variants as references."""
    (task,) = measured.tasks
    variants = tuple(
        replace(one, label=f"{one.label}{MARK}", is_reference=True) if one.label in labels else one
        for one in task.variants
    )
    return replace(measured, tasks=(replace(task, variants=variants),))


def test_own_runs_stand_out(noisy_results: Path) -> None:
    joined = as_references(measure(noisy_results), "map_elites", "cvt_map_elites", "map_elites_unstructured")
    figure = suite_figure(joined, "")
    own, *others = figure.axes[0].lines[::2]  # each with its corrected line
    look = looks(["random_search"])["random_search"]
    assert (own.get_color(), own.get_marker()) == (look.colour, look.marker)
    assert len(others) == 3
    for other in others:
        assert own.get_linewidth() > other.get_linewidth()
        assert own.get_zorder() > other.get_zorder()
        assert other.get_alpha() < 1
    assert "MAP-Elites, reference" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_no_legend_is_cut_off(noisy_results: Path) -> None:
    joined = measure(noisy_results / "noisy2/map_elites")
    (task,) = joined.tasks
    names = "map_elites", "map_elites-tuned", "map_elites_unstructured", "random_search-uniform", "cma_me"
    labels = "map_elites", *(f"{name}{MARK}" for name in (*names, "cvt_map_elites", "random_search"))
    variants = tuple(replace(task.variants[0], label=label) for label in labels)
    joined = replace(joined, tasks=(replace(task, variants=variants),))
    for narrow, n_columns in ((True, 2), (False, 3)):
        figure = suite_figure(joined, "", narrow=narrow)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        places = legend.get_window_extent()
        assert 0 <= places.x0 < places.x1 <= figure.bbox.width
        assert len({round(text.get_window_extent().x0) for text in legend.get_texts()}) == n_columns


# Corrected values


def handle(figure: Any) -> tuple[str, str]:
    """Return the line style and the marker that a figure's legend has for corrected values."""
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    line = legend.get_lines()[labels.index("corrected")]
    return line.get_linestyle(), line.get_marker()


def test_the_legend_has_what_is_drawn(noisy_results: Path, tmp_path: Path) -> None:
    run(tmp_path, noisy(2), "map_elites", 0, corrections=1)
    once, often = measure(tmp_path), measure(noisy_results / "noisy2/map_elites")
    look = looks(["map_elites"])
    assert handle(suite_figure(once, "")) == ("None", "o")
    assert handle(self_normalised_figure(once.tasks[0], look)) == ("None", "o")
    assert handle(paper_figure(once.tasks[0], look)) == ("--", "o")  # profiles are dashed
    assert handle(suite_figure(often, "")) == ("--", "None")
    assert handle(paper_figure(often.tasks[0], look)) == ("--", "None")


@pytest.mark.parametrize(
    ("corrections", "along", "with_profiles"),
    [
        (0, "", ""),
        (1, "; open markers: corrected by", "; open markers and dashed lines: corrected by"),
        (2, "; dashed lines: corrected by", "; dashed lines: corrected by"),
    ],
)
def test_the_captions_say_what_is_drawn(
    corrections: int, along: str, with_profiles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markup, "PNG_DPI", 30)
    run(tmp_path, noisy(2), "map_elites", 0, corrections=corrections)
    measured = measure(tmp_path)
    write_page(measured, compare(measured), tmp_path / "page.html")
    captions = [one.text for one in parsed((tmp_path / "page.html").read_text()).all("figcaption")]
    end = " re-evaluations." if corrections else "."
    assert captions[0] == f"QD score along the runs: median and quartiles{along}{end}"
    assert captions[1].endswith(f"losses by re-evaluation{with_profiles}{end}")


def test_a_marker_at_the_end_is_whole(noisy_results: Path) -> None:
    (task,) = measure(noisy_results / "noisy2/random_search").tasks
    (variant,) = task.variants
    late = tuple(
        replace(
            one,
            curves=replace(
                one.curves,
                seconds=10 + one.curves.evaluations / 1e6,
                corrected_seconds=10 + one.curves.corrected_evaluations / 1e6,
            ),
        )
        for one in variant.runs
    )
    axes: Any = Figure().add_subplot()
    draw_metric(axes, [replace(variant, runs=late)], looks(["random_search"]), "coverage", "seconds")
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlim()[1] > 1.02 * max(line.get_xdata().max() for line in axes.lines)


def test_losses_are_drawn_with_any_marker(noisy_results: Path) -> None:
    (task,) = measure(noisy_results / "noisy2/map_elites").tasks
    axes: Any = Figure().add_subplot()
    star = looks(["extract_me"])["extract_me"]
    draw_losses(axes, task.variants, {"map_elites": star})
    assert {line.get_marker() for line in axes.lines[:-1]} == {star.marker}


# One descriptor dimension


def test_deviations_have_their_own_axis_and_begin_at_zero(tmp_path: Path) -> None:
    for algorithm in ("map_elites", "random_search"):
        run(tmp_path, noisy(1), algorithm, 0, corrections=1)
    (task,) = measure(tmp_path).tasks
    figure = spreads_figure(task, looks(variant.label for variant in task.variants))
    assert [axes.get_ylabel() for axes in figure.axes] == [*TITLES.values()] * 2
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == 0 < high


def test_a_bar_narrower_than_a_pixel_is_seen(tmp_path: Path) -> None:
    grid, n = Grid(((0.0, 1.0),), (900,)), 12
    archive = Archive(grid, 0)
    places = np.linspace(0.05, 0.95, n)[:, None]
    numbers = np.arange(n)[:, None]
    archive.insert(
        Evaluated(np.empty((n, 0), np.float32), np.ones(n), places, numbers, numbers.astype(np.uint64))
    )
    figure = Figure(figsize=(2.6, 1.2))
    axes = figure.add_axes((0, 0, 1, 1))
    draw_archive(axes, archive, Plane(grid, ("x",)), (0.0, 1.0))
    axes.set_axis_off()
    figure.savefig(tmp_path / "bars.png", dpi=100)
    middle = imread(tmp_path / "bars.png")[60, :, :3].min(axis=1)
    for (x,) in places:
        column = round(x * 260)
        assert middle[column - 2 : column + 3].min() < 0.6
