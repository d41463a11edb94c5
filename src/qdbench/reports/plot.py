"""Write all figures of all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qdbench.analysis.measured import IntervalKind, Measured, Paths, Progress
from qdbench.analysis.measures import On
from qdbench.analysis.measuring import as_measured
from qdbench.checks import checked_path
from qdbench.reports.archives import archives_figure
from qdbench.reports.figures import paper_figure, self_normalised_figure
from qdbench.reports.samples import samples_figure
from qdbench.reports.sizes import sizes_figure
from qdbench.reports.spreads import spreads_figure
from qdbench.reports.style import looks, require_matplotlib, save_figure
from qdbench.store.files import require_folder
from qdbench.store.record import file_name


def plot(
    results: Paths | Measured,
    *,
    tasks: str | Sequence[str] = (),
    interval: IntervalKind = "fixed",
    on: On = "own",
    out: str | Path = "figures",
    progress: Progress = lambda done, total: None,
) -> list[Path]:
    """Draw the figures of every task: the paper's figure, archives, effect of the re-evaluations.

    `results` are folders with runs, or the result of `measure`. `tasks`, `interval` and `on` are those of
    `measure`. Writes TASK-figure (the paper's), TASK-self-normalised (the QD score on each archive's own
    range), TASK-archives and, if elites were re-evaluated, TASK-samples (scores by number of re-evaluations),
    TASK-sizes (losses by number of elites) and TASK-spreads (how far the re-evaluations of each elite
    scatter) into the folder `out`, as PNG, SVG and PDF, and returns their paths.
    """
    folder = checked_path("out", out)
    require_can_plot(folder)
    measured = as_measured(results, tasks, interval, on, progress)
    look = looks(variant.label for _, variant in measured.variants)  # one colour per algorithm in all figures
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "figure": paper_figure,
        "self-normalised": self_normalised_figure,
        "archives": archives_figure,
        "samples": samples_figure,
        "sizes": sizes_figure,
        "spreads": spreads_figure,
    }
    return [
        path
        for task in measured.tasks
        for name, draw in figures.items()
        if name not in ("samples", "sizes", "spreads") or task.is_corrected
        for path in save_figure(draw(task, look), folder / f"{file_name(task.task)}-{name}")
    ]


def require_can_plot(folder: Path) -> None:
    """Refuse, before the work starts, figures that could not be made."""
    require_matplotlib()
    require_folder(folder)
