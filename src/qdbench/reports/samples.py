"""Corrected scores by the number of re-evaluations: with few of them, scores are too high.

With fewer samples, the mean descriptors of elites vary over more cells, and of several elites in one cell the
corrected archive keeps the luckiest. Beside the curve, scores are extrapolated to infinitely many samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from qdbench.analysis.measured import BySamples, BySize, Corrected, MeasuredTask
from qdbench.metrics.metric import METRICS, corrected
from qdbench.reports.bands import Band, across
from qdbench.reports.figures import Looks, Variants, draw_band, facts, in_order, say
from qdbench.reports.style import WIDTH, Look, add_legend, add_note, count_axis, style

SCORES = ("coverage", "qd_score")
Draw = Callable[[Any, Variants, Looks, str], None]
"""Draws one of these scores into a panel."""
_BESIDE = 1.7
"""Distance of stored and extrapolated scores from the curve: a factor on the log axis."""


def samples_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return corrected coverage and QD score as a function of the number of re-evaluations."""
    limit = "∞: extrapolated from half and all of the re-evaluations, as if the bias fell as 1/N"
    notes = (*facts(measured), limit if measured.is_corrected else "")
    return both_scores(measured, looks, draw_samples, notes)


def both_scores(measured: MeasuredTask, looks: Looks, draw: Draw, notes: Iterable[str]) -> Any:
    """Return a figure with a panel for coverage and one for the QD score."""
    from matplotlib.figure import Figure

    variants = in_order(measured.variants, looks)
    with style():
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        for panel, name in zip(figure.subplots(1, 2), SCORES, strict=True):
            draw(panel, variants, looks, name)
        add_legend(figure, [looks[variant.label] for variant in variants])
        add_note(figure, notes)
    return figure


def draw_samples(panel: Any, variants: Variants, looks: Looks, name: str) -> None:
    """Draw a score by the number of re-evaluations, between the uncorrected and the extrapolated score."""
    panel.set(ylabel=METRICS[corrected(name)].title)
    most = max((one.n_reevaluations for variant in variants for one in variant.corrected), default=0)
    if not most:
        panel.set(xticks=[], yticks=[])
        return say(panel, "no re-evaluations:\nqdbench correct RUN\N{HORIZONTAL ELLIPSIS}")
    for i, variant in enumerate(variants):
        if not variant.corrected:
            continue
        look, aside = looks[variant.label], 1.06 ** (i - (len(variants) - 1) / 2)
        draw_band(panel, shared_band([one.by_samples for one in variant.corrected], name), look)
        before = [run.values[name] for run in variant.runs]
        _draw_estimate(panel, aside / _BESIDE, before, look, filled=True)
        _draw_estimate(panel, most * _BESIDE * aside, limits(variant.corrected, name), look, filled=False)
    panel.set(xscale="log", xlabel="re-evaluations", xlim=(0.75 / _BESIDE, 1.33 * most * _BESIDE))
    panel.set_ylim(bottom=0)
    panel.grid()
    count_axis(panel.yaxis)
    marked = [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if n < 0.7 * most] + [most]
    panel.set_xticks([1 / _BESIDE, *marked, most * _BESIDE], ["stored", *map(str, marked), "∞"])
    panel.minorticks_off()
    return None


def shared_band(replications: Sequence[BySamples] | Sequence[BySize], name: str) -> Band:
    """Return the band at those numbers of re-evaluations, or of elites, that all replications have."""
    shared = sorted(set.intersection(*(set(one.counts.tolist()) for one in replications)))
    return across(shared, [getattr(one, name)[np.isin(one.counts, shared)] for one in replications])


def limits(replications: Sequence[Corrected], name: str) -> list[float]:
    """Return the extrapolated score of every replication; NaN if there is none."""
    return [getattr(one.by_samples.extrapolated, name) for one in replications]


def _draw_estimate(panel: Any, x: float, values: Sequence[float], look: Look, *, filled: bool) -> None:
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return
    low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
    panel.vlines(x, low, high, color=look.colour, linewidth=1)
    inside = look.colour if filled else "white"
    panel.plot([x], [middle], **look.line, linestyle="", markerfacecolor=inside, markeredgewidth=0.7)
