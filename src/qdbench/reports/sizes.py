"""Losses by the number of elites: a fuller archive loses more, so losses are compared at one size."""

from __future__ import annotations

from typing import Any

from qdbench.analysis.measured import MeasuredTask
from qdbench.analysis.measuring import SIZES
from qdbench.metrics.metric import METRICS, loss
from qdbench.reports.figures import Looks, Variants, draw_band, facts
from qdbench.reports.samples import both_scores, shared_band


def sizes_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return the expected losses of random parts of the archives, as a function of their size."""
    sparse = "random parts of a wide archive are sparser than a compact archive of the same size"
    notes = (*facts(measured, "losses on the fixed interval"), sparse)
    return both_scores(measured, looks, draw_sizes, notes)


def draw_sizes(panel: Any, variants: Variants, looks: Looks, name: str) -> None:
    """Draw the expected loss by the number of elites, as far as all replications of a variant have them."""
    most = 1.0
    for variant in variants:
        found = [one.by_size for one in variant.corrected if len(one.by_size.counts)]
        if found:
            band = shared_band(found, name)
            draw_band(panel, band, looks[variant.label])
            most = max(most, band.x[-1])
    panel.set(xscale="log", xlabel="elites drawn at random", ylabel=METRICS[loss(name)].title)
    marked = [m for m in SIZES if m <= most]
    panel.set_xticks(marked, [f"{m:,}" for m in marked])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panel.set_ylim(top=1)
    panel.grid()
