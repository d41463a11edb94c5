"""What the page says about a run and an elite, as HTML. Everything from files is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from qdbench.explorer.catalogue import Catalogue
from qdbench.explorer.colours import CSS_GRADIENT
from qdbench.explorer.session import Session, Side
from qdbench.explorer.view import COLOURINGS

_STYLE = "font-size:0.82em;line-height:1.45;padding:0.1em 0.7em 0.4em;overflow-wrap:anywhere"
_WARNING = "margin:0.3em 0;padding:0.3em 0.5em;border-left:3px solid #e8590c;background:rgba(232,89,12,0.12)"
SIDES = ("first", "second")


def number(value: float) -> str:
    """Return a number as a reader wants it."""
    if not np.isfinite(value):
        return "\N{EN DASH}"
    return f"{value:,.4g}".replace("-", "\N{MINUS SIGN}") if value else "0"


def _block(*lines: str) -> str:
    return f'<div style="{_STYLE}">{"".join(lines)}</div>'


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """Return rows of a label and a value; both are escaped here."""
    cells = "".join(
        f'<tr><td style="opacity:0.65;padding-right:0.8em;vertical-align:top">{escape(label)}</td>'
        f"<td>{escape(value)}</td></tr>"
        for label, value in rows
    )
    return f'<table style="border-spacing:0">{cells}</table>'


def _warning(text: str) -> str:
    return f'<div style="{_WARNING}">{escape(text)}</div>' if text else ""


def about_run(side: Side) -> str:
    """Return what a run is, how far it came, and what must be said about it."""
    record, found = side.view.run.record, side.view.found
    cells = found.geometry.n_cells
    n = len(side.plane.elites)
    own = cells and side.plane.cells is found.geometry
    again = side.view.reevaluations
    lines = [
        f"<b>{escape(record.task.name)}</b>, {escape(record.variant)}, seed {record.seed}",
        f"{found.n_evaluations:,} evaluations, {n:,} "
        + (f"of {cells:,} cells" if own else "elites")
        + (f", {again.n_samples} re-evaluations of each" if again is not None else ""),
    ]
    if record.status == "running":
        lines.append(f"It is still going, up to {escape(record.target.in_words)}; the page follows.")
    if found.is_live:
        lines.append("Colours show the fittest of each cell so far.")
    return _block(*(f"<div>{line}</div>" for line in lines), _warning(side.view.cast.remark))


def about_archive(session: Session) -> str:
    """Return the colour bar, and how many elites reach the threshold."""
    low, high = map(number, session.colour_limits)
    bar = (
        f'<div style="height:0.7em;border-radius:3px;background:{CSS_GRADIENT}"></div>'
        f'<div style="display:flex;justify-content:space-between"><span>{low}</span>'
        f"<span>{escape(session.colouring)}</span><span>{high}</span></div>"
    )
    lines = []
    for i in range(len(session.sides)):
        reached, n = session.counts(i)
        whose = f"{SIDES[i]}: " if len(session.sides) > 1 else ""
        share = f" ({reached / n:.0%})" if n else ""
        limit = f"fitness \N{GREATER-THAN OR EQUAL TO} {number(session.threshold)}"
        lines.append(f"<div>{whose}<b>{reached:,} of {n:,}</b> elites{share} have {limit}</div>")
    if np.isneginf(session.threshold):
        lines = []
    meaning = f'<div style="opacity:0.65">{escape(COLOURINGS[session.colouring])}</div>'
    cure = ""
    if session.sides[0].view.reevaluations is None and not session.sides[0].view.found.is_live:
        cure = '<div style="opacity:0.65">“qdbench correct” on this run gives corrected values.</div>'
    return _block(bar, meaning, *lines, cure)


def about_elite(side: Side, names: Sequence[str]) -> str:
    """Return what is known of the chosen elite."""
    if side.row < 0:
        return _block("There is no elite yet.")
    view, row = side.view, side.row
    descriptor = view.found.descriptors[row]
    rows = [("fitness", number(view.found.fitness[row]))]
    rows += [(name, number(value)) for name, value in zip(names, descriptor, strict=True)]
    warning = ""
    if not view.found.is_live:
        archive = view.run.archive
        rows.append(("evaluation", f"{int(archive.evaluations[row][0]):,}"))
        rows.append(("seed", str(view.seed(row))))
        if view.n_samples(row) > 1:
            rows.append(("mean of", f"{view.n_samples(row)} evaluations; the first is shown"))
    replay = side.replay
    if replay is not None:
        rows += [(f"reward: {name}", number(float(terms.sum()))) for name, terms in replay.terms.items()]
        rows.append(("steps", f"{replay.steps:,}" + ("" if replay.valid else ", then it diverged")))
        if view.n_samples(row) == 1 and replay.fitness != view.found.fitness[row]:
            warning = (
                f"The replay has fitness {replay.fitness!r}, but the run stored "
                f"{float(view.found.fitness[row])!r}: other versions or another CPU than the run's."
            )
    return _block(_table([*rows, *_corrected(side)]), _warning(warning), _ghosts(side))


def _corrected(side: Side) -> Iterable[tuple[str, str]]:
    again, row = side.view.reevaluations, side.row
    if again is None:
        return
    lost = bool(np.isnan(again.fitness[row]).any())
    yield (
        "corrected fitness",
        "lost: a re-evaluation was invalid" if lost else number(again.means()[0][row]),
    )
    for name in ("descriptor spread", "return rate", "fitness spread"):
        if name in side.view.colourings:
            value = float(side.view.values(name)[row])
            yield (name, f"{value:.0%} of {again.n_samples}" if name == "return rate" else number(value))
    if not lost and row not in side.view.plane("corrected").elites:
        yield ("corrected archive", "not in it: a fitter elite has its cell")


def _ghosts(side: Side) -> str:
    if not side.ghosts:
        return ""
    fitness = np.array([ghost.fitness for ghost in side.ghosts])
    text = (
        f"{len(fitness)} ghosts: the same policy under other seeds. "
        f"Fitness {number(np.nanmin(fitness))} to {number(np.nanmax(fitness))}, "
        f"mean {number(np.nanmean(fitness))}."
        if np.isfinite(fitness).any()
        else f"All {len(fitness)} ghosts diverged."
    )
    return f'<div style="opacity:0.8;margin-top:0.3em">{escape(text)}</div>'


def about_skipped(catalogue: Catalogue) -> str:
    """Return the folders that cannot be shown, with reasons; empty if there are none."""
    lines = [_warning(f"{skipped.path}: {skipped.reason}") for skipped in catalogue.skipped[:5]]
    more = len(catalogue.skipped) - 5
    return _block(*lines, f"and {more} more" if more > 0 else "") if lines else ""


def failure(text: str) -> str:
    """Return one sentence about what went wrong; empty if nothing did."""
    return _block(_warning(text)) if text else ""
