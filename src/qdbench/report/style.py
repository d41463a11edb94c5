"""How figures look: one colour per algorithm everywhere, sizes that survive print, files that repeat."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMATS = ("png", "svg", "pdf")
DPI = 300
WIDTH = 7.0
"""Inches: the text width of a two-column page."""
SMALL, NORMAL = 7.0, 8.0  # points
NOTE_COLUMNS = 125  # characters of SMALL that fit into WIDTH

_RC = {
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # TrueType, as publishers want it
    "svg.hashsalt": "qdbench",  # the same figure, the same file
}


@dataclass(frozen=True)
class Look:
    """How an algorithm is drawn; the marker tells it apart in grey."""

    name: str
    """As a reader knows it."""
    colour: str
    marker: str


# Okabe and Ito (2008), but for their yellow, which white paper swallows
_KNOWN = {
    "map_elites": Look("MAP-Elites", "#0072B2", "o"),
    "cvt_map_elites": Look("CVT-MAP-Elites", "#D55E00", "s"),
    "random_search": Look("Random Search", "#009E73", "^"),
    "map_elites_unstructured": Look("MAP-Elites, unstructured", "#CC79A7", "D"),
    "cma_me": Look("CMA-ME", "#E69F00", "v"),
    "cma_mae": Look("CMA-MAE", "#56B4E9", "P"),
    "ribs_map_elites": Look("MAP-Elites of pyribs", "#000000", "X"),
}
# Tol's muted scheme, as far as it is not close to those above
_OTHERS = (("#882255", "<"), ("#999933", ">"), ("#888888", "p"), ("#332288", "h"), ("#44AA99", "*"))


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return how to draw each of these algorithms: ours always the same, others in order of their names."""
    found = dict.fromkeys(sorted(labels))
    others = [label for label in found if label not in _KNOWN]
    return {
        label: _KNOWN[label] if label in _KNOWN else Look(_name(label), *_OTHERS[others.index(label) % len(_OTHERS)])
        for label in found
    }


def _name(label: str) -> str:
    """Return a run's own name in brackets behind the algorithm's, where that is one of ours."""
    algorithm, _, name = label.partition("-")
    return f"{_KNOWN[algorithm].name} ({name})" if algorithm in _KNOWN and name else label


@contextmanager
def style() -> Iterator[None]:
    """Make what is drawn or saved within look like a figure of ours."""
    from matplotlib import rc_context

    with rc_context(_RC):
        yield


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG, SVG and PDF; the same figure gives the same bytes."""
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in FORMATS]
    with style():
        for ending, path in zip(FORMATS, paths, strict=True):
            figure.savefig(path, dpi=DPI, metadata=undated.get(ending))
    return paths


def add_note(figure: Any, sentences: Iterable[str]) -> None:
    """Put small text below a figure."""
    text = "; ".join(filter(None, sentences))
    columns = int(NOTE_COLUMNS * figure.get_figwidth() / WIDTH)
    lines = textwrap.wrap(f"{text[:1].upper()}{text[1:]}.", columns, break_on_hyphens=False)
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=SMALL, color="0.25", linespacing=1.3)


def add_legend(figure: Any, drawn: Iterable[Look], *, corrected: bool = False) -> None:
    """Say above a figure which algorithm is which, and what a dashed line is."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look.colour, marker=look.marker, label=look.name) for look in drawn]
    if corrected:
        handles += [Line2D([], [], color="0.4", label="metric")]
        handles += [Line2D([], [], color="0.4", linestyle="--", label="corrected")]
    columns = len(handles) if len(handles) <= 5 else -(-len(handles) // 2)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False)


def count_axis(axis: Any) -> None:
    """Write large numbers on an axis with SI prefixes: 20k evaluations."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(EngFormatter(sep=""))
