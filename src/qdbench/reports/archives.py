"""Heatmaps of a task's archives, each beside its corrected archive."""

from __future__ import annotations

from typing import Any

from qdbench.analysis.measured import MeasuredTask
from qdbench.archives.archive import Archive
from qdbench.reports.figures import Looks, about_corrections, in_order, say
from qdbench.reports.heatmaps import Plane, draw_archive, fitness_limits, is_projected
from qdbench.reports.style import SMALL, add_note, style

_PANEL = {1: (2.85, 0.75), 2: (1.95, 1.95)}
"""Size of a heatmap in inches, by its number of dimensions."""
_NESTED_PANEL = 2.5, 2.5
_SMALL_PANEL = 1.0, 1.0
_AROUND = 0.57, 0.65
"""Space for ticks and titles, in inches."""
_LABEL_LINE = 0.2
"""Space for each further line of an axis label: nested axes have a line per dimension."""
_FEW = 3
"""Up to this many algorithms are drawn below each other; with more, two per row if there is space."""
_MOST_TICKS = 5


def archives_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return heatmaps of the median replication of every algorithm, all with the same colour scale."""
    variants = in_order(measured.variants, looks)
    first = measured.runs[0]
    drawn = [archive for variant in variants for archive in variant.archives if archive is not None]
    limits = fitness_limits(*drawn, if_empty=first.record.task.fitness_bounds)
    n_columns = 2 if any(variant.archives[1] is not None for variant in variants) else 1
    dimensions = len(first.record.task.cells)
    with style():
        figure, panels = _panels(dimensions, len(variants), n_columns)
        places = panels.reshape(-1, n_columns)
        colours = None
        for row, variant in zip(places, variants, strict=False):
            titles = f"{looks[variant.label].name}\nseed {variant.typical.seed}: ", "corrected\n"
            for panel, archive, title in zip(row, variant.archives, titles, strict=False):
                colours = _draw(panel, archive, Plane.of(first), limits, title) or colours
        for panel in places[len(variants) :].flat:
            panel.remove()
        _label_outer(panels, len(variants) * n_columns)
        if dimensions > 1:  # else the y axis shows the fitness
            length = min(1.0, 3.0 / figure.get_figheight())
            figure.colorbar(colours, ax=figure.axes, label="fitness", aspect=20, shrink=length, anchor=(0, 1))
        add_note(figure, _facts(measured))
    return figure


def _panels(dimensions: int, n_variants: int, n_columns: int) -> tuple[Any, Any]:
    """Return a figure with space for all heatmaps, and its axes, (rows, columns)."""
    from matplotlib.figure import Figure

    beside = 2 if dimensions == 2 and n_variants > _FEW else 1
    width, height = _SMALL_PANEL if beside == 2 else _PANEL.get(dimensions, _NESTED_PANEL)
    rows, columns = -(-n_variants // beside), beside * n_columns
    colour_bar, note = (0.7 if dimensions > 1 else 0.1), 0.5
    note += _LABEL_LINE * ((dimensions - 1) // 2)
    size = columns * (width + _AROUND[0]) + colour_bar, rows * (height + _AROUND[1]) + note
    figure: Any = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.06)  # inches: titles must not touch the panels above
    return figure, figure.subplots(rows, columns, squeeze=False)


def _draw(panel: Any, archive: Archive | None, plane: Plane, limits: tuple[float, float], title: str) -> Any:
    if archive is None:
        panel.set_axis_off()
        return say(panel, "no re-evaluations")
    n, cells = len(archive), archive.geometry.n_cells
    colours = draw_archive(panel, archive, plane, limits)
    panel.set_title(f"{title}{n:,} of {cells:,} cells" if cells else f"{title}{n:,} elites", fontsize=SMALL)
    for axis in (panel.xaxis, panel.yaxis):
        axis.label.set_size(SMALL)
    if len(archive.geometry.bounds) > 2:  # the borders of blocks, as many as fit
        apart = -(-len(panel.get_xticks()) // _MOST_TICKS)
        labels = [text.get_text() for text in panel.get_xticklabels()]
        panel.set_xticks(panel.get_xticks()[::apart], labels[::apart])
    for spine in panel.spines.values():
        spine.set_visible(True)
    return colours


def _label_outer(panels: Any, n_drawn: int) -> None:
    """Label only the axes at the left and at the bottom."""
    columns = panels.shape[1]
    for i, panel in enumerate(panels.flat):
        if i % columns:
            panel.set_ylabel("")
        if i + columns < n_drawn:
            panel.set_xlabel("")


def _facts(measured: MeasuredTask) -> list[str]:
    words = [f"{measured.task}: the median replication by final QD score", str(measured.by)]
    words += about_corrections(measured.variants)
    if any(is_projected(variant.archives[0]) for variant in measured.variants):
        cells = measured.runs[0].grid.n_cells
        words.append(
            "archives that cannot be drawn directly are projected onto the task's grid: "
            f"the fittest elite of each of {cells:,} cells"
        )
    return words
