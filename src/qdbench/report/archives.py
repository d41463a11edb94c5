"""Heatmaps of a task's archives: what an algorithm kept, beside what is left of it after re-evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.analysis.measures import On, container, final_correction
from qdbench.archives.archive import Archive
from qdbench.archives.evaluated import Evaluated
from qdbench.archives.stored import Container
from qdbench.experiments.loading import StoredRun
from qdbench.metrics.robustness import corrected_archive
from qdbench.report.figures import Looks, about_corrections, in_order, say
from qdbench.report.heatmaps import draw_archive, fitness_limits, is_projected
from qdbench.report.measured import MeasuredTask
from qdbench.report.raster import Drawable
from qdbench.report.style import SMALL, add_note, style

_PANEL = {1: (2.85, 0.75), 2: (1.95, 1.95)}
"""Inches of a heatmap by its number of dimensions."""
_NESTED_PANEL = 2.5, 2.5
_SMALL_PANEL = 1.0, 1.0
_AROUND = 0.57, 0.65
"""Inches for ticks and titles."""
_FEW = 3
"""So many algorithms are drawn below each other; of more, two beside each other where there is room."""
_MOST_TICKS = 5


@dataclass(frozen=True, eq=False)
class Placed:
    """Elites in a container, as a picture needs them."""

    fitness: NDArray[np.float64]  #: (n,)
    descriptors: NDArray[np.float64]  #: (n, dimensions)
    cells: NDArray[np.int64]  #: (n,)
    kind: str
    geometry: dict[str, NDArray[Any]]
    about: dict[str, Any]


Pair = tuple[Drawable, Drawable | None]


def before_and_after(run: StoredRun, on: On = "own") -> Pair:
    """Return a run's final archive and its corrected archive, None where nothing was re-evaluated."""
    stored, where = run.archive, container(run, on)
    before: Drawable = stored
    if on == "grid" or len(np.unique(stored.cells)) < len(stored):
        placed = where.empty_archive()
        columns = stored.fitness, stored.descriptors, stored.evaluations, stored.seeds
        placed.insert(Evaluated(np.zeros((len(stored), 0), np.float32), *columns))
        before = _placed(placed, where, stored.about)
    correction = final_correction(run)
    if correction is None:
        return before, None
    return before, _placed(corrected_archive(where, correction.reevaluations), where, stored.about)


def _placed(archive: Archive, where: Container, about: dict[str, Any]) -> Placed:
    elites = archive.elites
    return Placed(elites.fitness, elites.descriptors, archive.cells, where.kind, where.arrays, about)


def archives_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return heatmaps of every algorithm's median replication, all on one scale of colours."""
    variants = in_order(measured.variants, looks)
    typical = [variant.typical for variant in variants]
    pairs = [before_and_after(StoredRun(one.run.path, one.run.record), measured.by.on) for one in typical]
    limits = fitness_limits(*(archive for pair in pairs for archive in pair if archive is not None))
    n_columns = 2 if any(after is not None for _, after in pairs) else 1
    dimensions = len(pairs[0][0].geometry["descriptor_bounds"])
    with style():
        figure, panels = _panels(dimensions, len(variants), n_columns)
        places = panels.reshape(-1, n_columns)
        colours = None
        for row, variant, pair, run in zip(places, variants, pairs, typical, strict=False):
            titles = f"{looks[variant.label].name}\nseed {run.seed}: ", "corrected\n"
            for panel, archive, title in zip(row, pair, titles, strict=False):
                colours = _draw(panel, archive, limits, title) or colours
        for panel in places[len(variants) :].flat:
            panel.remove()
        _label_outer(panels, len(variants) * n_columns)
        if dimensions > 1:  # else the y axis says it
            length = min(1.0, 3.0 / figure.get_figheight())
            figure.colorbar(colours, ax=figure.axes, label="fitness", aspect=20, shrink=length, anchor=(0, 1))
        add_note(figure, _facts(measured, pairs))
    return figure


def _panels(dimensions: int, n_variants: int, n_columns: int) -> tuple[Any, Any]:
    """Return a figure with room for all heatmaps, and its axes, (rows, columns)."""
    from matplotlib.figure import Figure

    beside = 2 if dimensions == 2 and n_variants > _FEW else 1
    width, height = _SMALL_PANEL if beside == 2 else _PANEL.get(dimensions, _NESTED_PANEL)
    rows, columns = -(-n_variants // beside), beside * n_columns
    colour_bar, note = (0.7 if dimensions > 1 else 0.1), 0.5
    size = columns * (width + _AROUND[0]) + colour_bar, rows * (height + _AROUND[1]) + note
    figure: Any = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.06)  # inches: titles keep clear of the panels above
    return figure, figure.subplots(rows, columns, squeeze=False)


def _draw(panel: Any, archive: Drawable | None, limits: tuple[float, float], title: str) -> Any:
    if archive is None:
        panel.set_axis_off()
        return say(panel, "no re-evaluations")
    n, cells = len(archive.fitness), Container(archive.kind, archive.geometry).n_cells
    colours = draw_archive(panel, archive, limits=limits)
    panel.set_title(f"{title}{n:,} of {cells:,} cells" if cells else f"{title}{n:,} elites", fontsize=SMALL)
    for axis in (panel.xaxis, panel.yaxis):
        axis.label.set_size(SMALL)
    if (
        len(archive.geometry["descriptor_bounds"]) > 2
    ):  # the borders of blocks, as many as fit beside each other
        apart = -(-len(panel.get_xticks()) // _MOST_TICKS)
        labels = [text.get_text() for text in panel.get_xticklabels()]
        panel.set_xticks(panel.get_xticks()[::apart], labels[::apart])
    for spine in panel.spines.values():
        spine.set_visible(True)
    return colours


def _label_outer(panels: Any, n_drawn: int) -> None:
    """Name the axes at the left and at the bottom only."""
    columns = panels.shape[1]
    for i, panel in enumerate(panels.flat):
        if i % columns:
            panel.set_ylabel("")
        if i + columns < n_drawn:
            panel.set_xlabel("")


def _facts(measured: MeasuredTask, pairs: Sequence[Pair]) -> list[str]:
    words = [f"{measured.task}: the median replication by final QD score", str(measured.by)]
    words += about_corrections(measured.variants)
    if any(is_projected(before) for before, _ in pairs):
        cells = prod(pairs[0][0].about["grid_shape"])
        words.append(
            "what cannot be drawn as it is, is drawn on the task's grid: "
            f"the fittest elite of each of {cells:,} cells"
        )
    return words
