"""The style of all figures: one colour per algorithm, sizes for print, reproducible files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from qdbench.analysis.references import MARK
from qdbench.errors import InvalidInput

FORMATS = ("png", "svg", "pdf")
DPI = 300
WIDTH = 7.0
"""Width of a figure in inches: the text width of a two-column page."""
SMALL, NORMAL = 7.0, 8.0  # points
_HANDLE, _BESIDE_HANDLE, _BETWEEN = 2.0, 0.8, 1.0  # of a legend, in widths of its letters
_DASHED = (0, (2.2, 1.2))  # short enough to be seen beside the marker of a legend's handle
NOTE_COLUMNS = 135  # characters of size SMALL that fit into WIDTH

_RC: dict[Any, Any] = {
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
    "text.parse_math": False,  # a name may have a $ in it
    "pdf.fonttype": 42,  # TrueType, as publishers want it
    "svg.hashsalt": "qdbench",  # the same figure gives the same file
}


Marker = str | tuple[int, int, int] | tuple[tuple[float, float], ...]
"""A marker of matplotlib: its name; corners, 0 for a polygon or 1 for a star, and angle; or an outline."""
CorrectedMark = Literal["open markers", "dashed lines"]
"""How corrected values are drawn."""


@dataclass(frozen=True)
class Look:
    """How an algorithm is drawn. Markers distinguish algorithms in black and white."""

    name: str
    """The name that readers know."""
    colour: str
    marker: Marker
    """One with an inside: open markers are corrected values."""
    pale: bool = False
    """Whether it is drawn thin, pale and behind the others: reference results."""

    @property
    def line(self) -> dict[str, Any]:
        """How matplotlib draws its lines."""
        pale = {"linewidth": 0.8, "markersize": 2.8, "alpha": 0.6, "zorder": 1.9} if self.pale else {}
        return {"color": self.colour, "marker": self.marker, **pale}


_UPRIGHT = ((-0.4, -1.0), (0.4, -1.0), (0.4, 1.0), (-0.4, 1.0), (-0.4, -1.0))
_FLAT = tuple((y, x) for x, y in _UPRIGHT)

# Okabe and Ito (2008), without their yellow, which is invisible on white paper
_KNOWN = {
    "map_elites": Look("MAP-Elites", "#0072B2", "o"),
    "map_elites-tuned": Look("MAP-Elites (tuned)", "#999933", "p"),
    "cvt_map_elites": Look("CVT-MAP-Elites", "#D55E00", "s"),
    "random_search": Look("Random Search", "#009E73", "^"),
    "random_search-uniform": Look("Random Search (uniform)", "#882255", "<"),
    "map_elites_unstructured": Look("MAP-Elites (unstructured)", "#CC79A7", "D"),
    "cma_me": Look("CMA-ME", "#E69F00", "v"),
    "cma_mae": Look("CMA-MAE", "#56B4E9", "P"),
    "ribs_map_elites": Look("MAP-Elites (pyribs)", "#000000", "X"),
    # for noisy tasks: Tol's muted scheme and darker shades
    "me_random": Look("ME-Random", "#BBBBBB", (4, 1, 0)),
    "me_sampling": Look("ME-Sampling", "#117733", "d"),
    "me_weighted": Look("ME-Weighted", "#88BB44", (5, 0, 180)),
    "me_delta": Look("ME-Delta", "#667711", "*"),
    "deep_grid": Look("Deep-Grid", "#AA3377", "H"),
    "adaptive_sampling": Look("Adaptive-Sampling", "#661100", _UPRIGHT),
    "archive_sampling": Look("Archive-Sampling", "#AA7744", (4, 1, 45)),
    "parallel_adaptive_sampling": Look("Parallel-Adaptive-Sampling", "#CC6677", _FLAT),
    "extract_me": Look("Extract-ME", "#223388", (6, 1, 0)),
}
# strong colours that are not close to those above; the numbers of colours and markers have no common divisor
_COLOURS, _MARKERS = ("#7700EE", "#FF0066", "#44AA99", "#888888"), (">", "h", "8")


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return how to draw each of these algorithms: ours always the same, others in order of their names.

    A reference has the look of its algorithm, but pale. Looks are given to references last, so those of own
    runs do not depend on the references beside them. Legends and bars have the same order.
    """
    wanted = set(labels)
    own = {label for label in wanted if not label.endswith(MARK)}
    algorithms = own | {label.removesuffix(MARK) for label in wanted}
    others = sorted(algorithms - _KNOWN.keys(), key=lambda label: (label not in own, label))
    found = {label: look for label, look in _KNOWN.items() if label in algorithms} | {
        label: Look(_name(label), colour, marker)
        for label, colour, marker in zip(others, cycle(_COLOURS), cycle(_MARKERS), strict=False)
    }
    pale = {f"{label}{MARK}": _as_reference(look) for label, look in found.items()}
    return {label: look for label, look in (found | pale).items() if label in wanted}


def _as_reference(look: Look) -> Look:
    return replace(look, name=f"{look.name}, reference", pale=True)


def _name(label: str) -> str:
    """Return the algorithm's name, with the name of the variant in brackets, if it is one of ours."""
    algorithm, _, name = label.partition("-")
    return f"{_KNOWN[algorithm].name} ({name})" if algorithm in _KNOWN and name else label


def require_matplotlib() -> None:
    """Refuse, before the work starts, to draw without matplotlib."""
    if find_spec("matplotlib") is None:
        raise InvalidInput("figures need matplotlib: pip install 'qdbench[plot]'")


@contextmanager
def style() -> Iterator[None]:
    """Use our style for everything that is drawn or saved within."""
    from matplotlib import rc_context

    with rc_context(_RC):
        yield


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG, SVG and PDF. The same figure gives exactly the same files."""
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in FORMATS]
    with style():
        layout = figure.get_layout_engine()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # it has its layout: each further time would take as long again
        for ending, path in zip(FORMATS, paths, strict=True):
            figure.savefig(path, dpi=DPI, metadata=undated.get(ending))
        figure.set_layout_engine(layout)
    return paths


def add_note(figure: Any, sentences: Iterable[str]) -> None:
    """Put small text below a figure."""
    text = "; ".join(sentence.removesuffix(".") for sentence in sentences if sentence)
    columns = int(NOTE_COLUMNS * figure.get_figwidth() / WIDTH)
    lines = textwrap.wrap(f"{text}.", columns, break_on_hyphens=False)
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=SMALL, color="0.25", linespacing=1.3)


def add_legend(figure: Any, drawn: Iterable[Look], *, corrected: Sequence[CorrectedMark] = ()) -> None:
    """Put a legend above a figure: the algorithms, and how corrected values are drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.textpath import TextPath

    known = list(drawn)
    handles = [Line2D([], [], **look.line, label=look.name) for look in known]
    meanings: dict[str, dict[str, Any]] = {}
    if corrected:
        opened = {"marker": "o", "markerfacecolor": "white"} if "open markers" in corrected else {}
        meanings["metric"] = {**opened, "linestyle": "-", "markerfacecolor": "0.4"}
        meanings["corrected"] = {**opened, "linestyle": _DASHED if "dashed lines" in corrected else ""}
    longest = max((TextPath((0, 0), look.name, size=SMALL).get_extents().width for look in known), default=0)
    entry = longest + SMALL * (_HANDLE + _BESIDE_HANDLE + _BETWEEN)  # points
    fitting, n = max(1, int(72 * figure.get_figwidth() // entry)), len(handles) + len(meanings)
    rows = max(1 if n <= 5 else 2, -(-n // fitting))  # filled column by column
    columns = -(-n // rows)
    handles += [Line2D([], [], linestyle="", label=" ")] * (rows * columns - n)
    handles += [Line2D([], [], color="0.4", label=label, **how) for label, how in meanings.items()]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=columns, frameon=False, handlelength=_HANDLE,
        handletextpad=_BESIDE_HANDLE, columnspacing=_BETWEEN, borderpad=0,
    )  # fmt: skip


def count_axis(axis: Any) -> None:
    """Write numbers from 1000 on with SI prefixes, such as 20k."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

    large = EngFormatter(sep="")

    def text(value: float, place: int) -> str:
        return str(large(value)) if abs(value) >= 1000 else f"{value:.6g}".replace("-", "\N{MINUS SIGN}")

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(text))
