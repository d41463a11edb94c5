"""Variance maps: how far the re-evaluations of every elite scatter, in fitness and in descriptor."""

from __future__ import annotations

from typing import Any

import numpy as np

from qdbench.analysis.measured import MeasuredTask, MeasuredVariant
from qdbench.analysis.measures import PlacedRun, fixed_interval
from qdbench.archives.archive import Archive
from qdbench.metrics.reproducibility import spreads
from qdbench.metrics.robustness import placed
from qdbench.reports.figures import Looks, about_corrections, in_order, say
from qdbench.reports.heatmaps import Plane, draw_archive, fitness_limits
from qdbench.reports.style import SMALL, add_note, style
from qdbench.store.loading import StoredRun

TITLES = {
    "fitness": "deviation of fitness\n(share of the interval)",
    "descriptor": "deviation of the descriptor\n(share of the box)",
}
_PANEL = {1: (2.6, 1.0), 2: (2.2, 2.0)}


def spreads_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return maps of the standard deviations of re-evaluations, for the median replication of each algorithm.

    An elite is drawn where it is stored. All algorithms have the same colours.
    """
    from matplotlib.figure import Figure

    variants = in_order(measured.variants, looks)
    maps = {variant.label: spread_maps(variant, measured.by.on) for variant in variants}
    dimensions = len(measured.runs[0].record.task.cells)
    width, height = _PANEL.get(dimensions, (2.6, 2.6))
    with style():
        size = 2 * (width + 0.9), len(variants) * (height + 0.55) + 0.5
        figure: Any = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(variants), 2, squeeze=False)
        for column, name in enumerate(TITLES):
            drawn = [found[column] for found in maps.values() if found is not None]
            limits = 0.0, fitness_limits(*drawn, if_empty=(0.0, 1.0))[1] or 1.0
            colours = None
            for panel, variant in zip(panels[:, column], variants, strict=True):
                found = maps[variant.label]
                if found is None:
                    panel.set_axis_off()
                    say(panel, "no re-evaluations")
                    continue
                colours = draw_archive(panel, found[column], Plane.of(variant.typical.run), limits)
                if dimensions == 1:
                    panel.set_ylabel(TITLES[name], fontsize=SMALL)
                    panel.set_ylim(bottom=0)  # no deviation, no bar
                panel.set_title(f"{looks[variant.label].name}, seed {variant.typical.seed}", fontsize=SMALL)
            if colours is not None and dimensions > 1:
                figure.colorbar(colours, ax=list(panels[:, column]), label=TITLES[name], aspect=30)
        add_note(
            figure,
            [
                f"{measured.task}: standard deviations of each elite's re-evaluations, at its stored place",
                *about_corrections(measured.variants),
            ],
        )
    return figure


def spread_maps(variant: MeasuredVariant, on: Any) -> tuple[Archive, Archive] | None:
    """Return the deviations of fitness and of the descriptor as archives; None without two re-evaluations."""
    run = StoredRun(variant.typical.run.path, variant.typical.run.record)
    point = run.final_point
    if point is None:
        return None
    place = PlacedRun(run, on)
    again = place.reevaluations(point)
    if again.n_samples < 2:
        return None
    found = spreads(place.geometry, again, fixed_interval(run))
    where = point.descriptors[place.rows]
    maps = [placed(place.geometry, values, where) for values in (found.fitness, found.descriptor)]
    assert all(np.isfinite(one.elites.fitness).all() for one in maps), "invalid elites never enter"
    return maps[0], maps[1]
