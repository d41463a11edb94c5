"""The figure of the suite: on every task, own runs beside the reference results."""

from __future__ import annotations

from typing import Any

from qdbench.analysis.measured import Measured
from qdbench.metrics.metric import METRICS
from qdbench.reports.figures import corrected_marks, draw_metric, in_order
from qdbench.reports.style import WIDTH, add_legend, add_note, looks, style

_METRIC = "qd_score"
_NARROW = 4.3
"""Width in inches of a figure beside others, if there is only one task."""


def suite_figure(measured: Measured, label: str, *, narrow: bool = False) -> Any:
    """Return the QD score along the runs, one panel per task, and the corrected QD score.

    Reference results are pale and behind own runs. A `narrow` figure of one task fits beside other things.
    """
    from matplotlib.figure import Figure

    look = looks(variant.label for _, variant in measured.variants)
    n = len(measured.tasks)
    columns = min(3, n)
    rows = -(-n // columns)
    with style():
        size = (_NARROW, 3.4) if narrow and n == 1 else (WIDTH, 1.0 + 1.9 * rows)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, task in zip(panels, measured.tasks, strict=False):
            draw_metric(panel, in_order(task.variants, look), look, _METRIC, "evaluations")
            panel.set_title(task.task)
        for panel in panels[n:]:
            panel.remove()
        for i, panel in enumerate(panels[:n]):
            panel.set_xlabel("evaluations" if i + columns >= n else "")
            panel.set_ylabel(METRICS[_METRIC].title if i % columns == 0 else "")
        add_legend(
            figure, look.values(), corrected=corrected_marks([variant for _, variant in measured.variants])
        )
        add_note(figure, (label, "median and quartiles over replications", "QD score on the fixed interval"))
    return figure
