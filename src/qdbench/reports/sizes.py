"""Losses by the number of elites: a fuller archive loses more, so losses are compared at one size."""

from __future__ import annotations

from typing import Any

from qdbench.analysis.measured import SIZES, MeasuredTask
from qdbench.metrics.metric import METRICS, loss
from qdbench.reports.figures import Looks, Variants, draw_band, facts, in_order
from qdbench.reports.samples import SCORES, shared_band
from qdbench.reports.style import WIDTH, add_legend, add_note, style


def sizes_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return the expected losses of random parts of the archives, as a function of their size."""
    from matplotlib.figure import Figure

    variants = in_order(measured.variants, looks)
    with style():
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        for panel, name in zip(figure.subplots(1, 2), SCORES, strict=True):
            draw_sizes(panel, variants, looks, name)
        add_legend(figure, [looks[variant.label] for variant in variants])
        sparse = "random parts of a wide archive are sparser than a compact archive of the same size"
        add_note(figure, (*facts(measured, "losses on the fixed interval"), sparse))
    return figure


def draw_sizes(panel: Any, variants: Variants, looks: Looks, name: str) -> None:
    """Draw the expected loss by the number of elites, as far as all replications of a variant have them."""
    most = 1.0
    for variant in variants:
        found = [one.by_size for one in variant.corrected if len(one.by_size.counts)]
        if found:
            band = shared_band(found, name)
            draw_band(panel, band, looks[variant.label], marker=looks[variant.label].marker)
            most = max(most, band.x[-1])
    panel.set(xscale="log", xlabel="elites drawn at random", ylabel=METRICS[loss(name)].title)
    marked = [m for m in SIZES if m <= most]
    panel.set_xticks(marked, [f"{m:,}" for m in marked])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panel.set_ylim(top=1)
    panel.grid()
