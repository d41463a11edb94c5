"""The paper's figure: metrics along the runs, archive profiles, and losses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from qdbench.analysis.measured import MeasuredTask, MeasuredVariant
from qdbench.metrics.metric import CURVES, METRICS, SELF_NORMALISED, loss
from qdbench.reports.bands import Axis, Band, corrected_band, metric_band, profile_band
from qdbench.reports.style import (
    SMALL,
    WIDTH,
    CorrectedMark,
    Look,
    add_legend,
    add_note,
    count_axis,
    style,
)

DASHES = (0, (4, 1.6))
_MARKERS = 6
_MOST_POINTS = 20
"""Up to this many correction points have a marker each."""

Variants = Sequence[MeasuredVariant]
Looks = Mapping[str, Look]


def paper_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return the paper's figure of one task; without the row of times if they cannot be compared."""
    from matplotlib.figure import Figure

    variants, by = in_order(measured.variants, looks), measured.by
    along = _axes(measured)
    with style():
        figure = Figure(figsize=(WIDTH, 2.6 + 1.75 * len(along)), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.75 * len(along), 2.0))
        upper, lower = parts
        panels = upper.subplots(len(along), len(CURVES), squeeze=False)
        for row, axis in zip(panels, along, strict=True):
            for panel, name in zip(row, CURVES, strict=True):
                draw_metric(panel, variants, looks, name, axis)
                panel.set_ylabel(_with_unit(name))
        left, right = lower.subplots(1, 2, width_ratios=(1, 1.25))
        draw_profiles(left, variants, looks)
        draw_losses(right, variants, looks)
        _add_legend(figure, variants, looks, corrected_marks(variants, profiles=True))
        fixed = "losses on the fixed interval" if by.kind != "fixed" and measured.is_corrected else ""
        add_note(figure, (*facts(measured), fixed, measured.remark_on_max_fitness, _no_times(measured)))
    return figure


def self_normalised_figure(measured: MeasuredTask, looks: Looks) -> Any:
    """Return a figure of the self-normalised QD score along the runs, the formula in the paper's text."""
    from matplotlib.figure import Figure

    variants, along = in_order(measured.variants, looks), _axes(measured)
    with style():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        for panel, axis in zip(figure.subplots(1, len(along), squeeze=False)[0], along, strict=True):
            draw_metric(panel, variants, looks, SELF_NORMALISED, axis)
            panel.set_ylabel(METRICS[SELF_NORMALISED].title)
        _add_legend(figure, variants, looks, corrected_marks(variants))
        scale = f"QD score on each archive's own range{measured.by.where}: it cannot compare two archives"
        add_note(figure, (*facts(measured, scale), _no_times(measured)))
    return figure


def _axes(measured: MeasuredTask) -> list[Axis]:
    return ["evaluations"] if measured.no_times else ["evaluations", "seconds"]


def _no_times(measured: MeasuredTask) -> str:
    """Return why there are no times, without the long names of runs."""
    return re.sub(r" \([^)]*\)", "", measured.no_times)


def _add_legend(figure: Any, variants: Variants, looks: Looks, marks: Sequence[CorrectedMark]) -> None:
    add_legend(figure, [looks[variant.label] for variant in variants], corrected=marks)


def corrected_marks(variants: Variants, *, profiles: bool = False) -> list[CorrectedMark]:
    """Return how `draw_metric`, and `draw_profiles` if asked for, draw the corrected values of variants.

    One correction point is an open marker, several are a dashed line.
    """
    bands = [corrected_band([run.curves for run in one.runs], CURVES[0], "evaluations") for one in variants]
    counts = {len(band.x) for band in bands}
    dashed = max(counts) > 1 or (profiles and any(one.corrected for one in variants))
    drawn: dict[CorrectedMark, bool] = {"open markers": 1 in counts, "dashed lines": dashed}
    return [mark for mark, is_drawn in drawn.items() if is_drawn]


def said_marks(marks: Sequence[CorrectedMark]) -> str:
    """Return the end of a caption that says what these marks are."""
    return f"; {' and '.join(marks)}: corrected by re-evaluations" if marks else ""


def in_order(variants: Variants, looks: Looks) -> Variants:
    """Return the variants in the order of all legends."""
    return sorted(variants, key=lambda variant: list(looks).index(variant.label))


def draw_metric(panel: Any, variants: Variants, looks: Looks, name: str, axis: Axis) -> None:
    """Draw a metric along the runs, and its corrected version at the correction points."""
    ends: list[float] = []
    for variant in variants:
        look, curves = looks[variant.label], [run.curves for run in variant.runs]
        band = metric_band(curves, name, axis)
        every = max(len(band.x) // _MARKERS, 1)
        draw_band(panel, band, look, step="post", markevery=(every // 2, every))
        taken = corrected_band(curves, name, axis)
        draw_band(panel, taken, look, dashed=True, marked=len(taken.x) <= _MOST_POINTS)
        ends += [*band.x[-1:], *taken.x[-1:]]
    panel.set_xlabel("evaluations" if axis == "evaluations" else "time (s)")
    panel.set_xlim(0, 1.04 * max(ends))
    if name != "max_fitness" and panel.dataLim.y0 >= 0:
        panel.set_ylim(bottom=0)
    count_axis(panel.xaxis)
    count_axis(panel.yaxis)
    panel.grid()


def draw_profiles(panel: Any, variants: Variants, looks: Looks) -> None:
    """Draw the archive profiles, and those of the corrected archives (dashed)."""
    after = {variant.label: [found.fitness for found in variant.corrected] for variant in variants}
    drawn = [run.fitness for variant in variants for run in variant.runs]
    everything = np.concatenate([*drawn, *(fitness for found in after.values() for fitness in found)])
    panel.set(xlabel="fitness threshold", ylabel="elites with at least this fitness", title="archive profile")
    panel.grid()
    if not len(everything):
        return say(panel, "all archives are empty")
    low, high = float(everything.min()), float(everything.max())
    margin = 0.03 * ((high - low) or 1.0)
    for variant in variants:
        look = looks[variant.label]
        band = profile_band([run.fitness for run in variant.runs], low - margin, high + margin)
        draw_band(panel, band, look, step="pre", markevery=(0.1, 0.2))
        if after[variant.label]:
            band = profile_band(after[variant.label], low - margin, high + margin)
            draw_band(panel, band, look, step="pre", dashed=True, markevery=(0.1, 0.2))
    panel.set(xlim=(low - margin, high + margin), ylim=(0, None))
    count_axis(panel.xaxis)
    return count_axis(panel.yaxis)


def draw_losses(panel: Any, variants: Variants, looks: Looks) -> None:
    """Draw the three losses: medians as bars, quartiles as whiskers, every replication as a dot."""
    panel.set(ylabel="loss (%)", title="losses by re-evaluation")
    panel.set_xticks(range(len(CURVES)), [METRICS[name].title for name in CURVES])
    panel.set_xlim(-0.5, len(CURVES) - 0.5)
    if not any(variant.corrected for variant in variants):
        panel.set_yticks([])
        return say(panel, "no re-evaluations:\nqdbench correct RUN\N{HORIZONTAL ELLIPSIS}")
    width = 0.8 / len(variants)
    for group, name in enumerate(CURVES):
        for i, variant in enumerate(variants):
            place = group + (i - (len(variants) - 1) / 2) * width
            losses = np.array([run.values[loss(name)] for run in variant.runs if run.corrected])
            _draw_loss(panel, place, width, 100 * losses, looks[variant.label])
    panel.axhline(0, color="black", linewidth=0.6)
    panel.grid(axis="y")
    panel.tick_params(axis="x", length=0)
    return None


def _draw_loss(panel: Any, place: float, width: float, losses: Any, look: Look) -> None:
    known = losses[~np.isnan(losses)]
    if len(known):
        low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
        panel.bar(
            place, middle, 0.86 * width, color=look.colour, alpha=0.45, edgecolor=look.colour, linewidth=0.8
        )
        panel.vlines(place, low, high, color="black", linewidth=1)
        apart = (np.arange(len(known)) - (len(known) - 1) / 2) / len(known) * 0.6 * width
        panel.plot(
            place + apart, known, marker=look.marker, color=look.colour, markersize=3,
            markeredgecolor="black", markeredgewidth=0.4, linestyle="",
        )  # fmt: skip
    if 0 < len(known) == len(losses):
        return
    n = len(losses)
    words = f"{n - len(known)} of {n} undefined" if n else "no re-evaluations"
    panel.annotate(
        words, (place, max([0.0, *known])), (0, 5), textcoords="offset points", rotation=90, ha="center",
        va="bottom", fontsize=SMALL, color="0.25",
    )  # fmt: skip


def facts(measured: MeasuredTask, scores: str = "") -> Iterable[str]:
    """Return facts for the note below a figure; `scores` replaces the text about the QD score's interval."""
    counts = sorted({len(variant.runs) for variant in measured.variants})
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    shown = f"median and quartiles of {many} replications" if many != "1" else "1 replication"
    yield f"{measured.task}: {shown}"
    yield scores or str(measured.by)
    yield from about_corrections(measured.variants)


def about_corrections(variants: Variants) -> Iterable[str]:
    """Return the number of re-evaluations, and how many replications were not corrected."""
    counts = {run.n_reevaluations for variant in variants for run in variant.runs if run.n_reevaluations}
    for count in counts:  # comparable runs have one number at most
        yield f"corrected: means of {count} re-evaluations"
        for variant in variants:
            n, of = len(variant.corrected), len(variant.runs)
            if n < of:
                yield f"{variant.label}: {n or 'none'} of {of} replications corrected at the end"


def draw_band(
    panel: Any,
    band: Band,
    look: Look,
    *,
    step: str | None = None,
    dashed: bool = False,
    marked: bool = True,
    markevery: Any = None,
) -> None:
    """Draw a median as a line and its quartiles as a band; `step` is that of matplotlib's step functions."""
    shape = {} if step is None else {"drawstyle": f"steps-{step}"}
    line = look.line if marked else look.line | {"marker": ""}
    panel.plot(
        band.x, band.middle, linestyle=DASHES if dashed else "-", markevery=markevery,
        markerfacecolor="white" if dashed else look.colour, markeredgewidth=0.7, **line, **shape,
    )  # fmt: skip
    alpha = (0.1 if dashed else 0.2) * (0.5 if look.pale else 1)
    panel.fill_between(band.x, band.low, band.high, step=step, color=look.colour, alpha=alpha, linewidth=0)


def _with_unit(name: str) -> str:
    return "coverage (cells)" if name == "coverage" else METRICS[name].title


def say(panel: Any, text: str) -> None:
    """Write a text into the middle of empty axes."""
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color="0.4")
