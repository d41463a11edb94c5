"""Self-contained HTML: the page, its style sheet, tables and pictures. All text is escaped."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from io import BytesIO
from itertools import groupby
from string import Template
from typing import Any

from qdbench.analysis.tables import Table
from qdbench.reports.style import style

PNG_DPI = 200
"""Sharp on high-density screens, and in print at the width of a page."""
_CSS_PIXELS = 136  # per inch of a figure
_TEXT_COLUMNS = (
    "metric", "algorithm", "task", "A", "B", "run", "reason", "options", "fingerprint", "budget",
    "status", "cpu", "system", "versions",
)  # fmt: skip
_FEW_WARNINGS = 2
"""More are folded, so that the first screen shows results."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

CSS = """
:root { color-scheme: light dark; --ink: #1d2126; --soft: #565d66; --paper: #fff; --panel: #f5f6f8;
  --line: #d9dce1; --link: #0b5a9c; --warn: #8a4b00; --warn-panel: #fff6e8; --good: #17653b; --bad: #a3232c; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #a8b0ba; --paper: #16191d;
  --panel: #1f2328; --line: #3a4048; --link: #82bdf2; --warn: #f3bd75; --warn-panel: #2c2518; --good: #7ed0a2;
  --bad: #f49aa0; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 76rem; padding: 1.6rem 1.25rem 4rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue",
  Arial, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.4rem; line-height: 1.3; margin: 3.25rem 0 1rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; line-height: 1.4; margin: 2rem 0 .5rem; }
p, ul, dl { margin: .6rem 0; max-width: 46rem; }
ul { padding-left: 1.2rem; }
li { margin: .25rem 0; }
a { color: var(--link); text-underline-offset: .15em; }
header p, footer, figcaption, .notes, .soft { color: var(--soft); }
nav { margin: .8rem 0 0; font-size: .875rem; }
nav p { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); margin: 0; }
nav ul { list-style: none; max-width: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: 0 1.2rem; }
nav:has(li:only-child) { display: none; }
header .lead { font-size: 1.05rem; max-width: 62rem; }
#result h2 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); margin: 0;
  padding: 0; border: 0; }
.hero { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 1.25rem; margin-top: 1.1rem;
  grid-template-areas: "figure watch" "short watch"; grid-template-rows: auto 1fr; align-items: start; }
.hero.several { grid-template-areas: "figure figure" "short watch"; }
.hero.still { grid-template-areas: "figure short"; grid-template-columns: 1fr 1fr; }
.hero.several.still { grid-template-areas: "figure figure" "short short"; }
.hero-figure { grid-area: figure; }
.hero-watch { grid-area: watch; }
.hero-short { grid-area: short; }
.hero figure, .hero .scroll { margin: 0; }
.hero img { width: 100%; }
.hero .line { color: var(--soft); font-size: .875rem; margin: .5rem 0 1rem; }
.hero-short th, .hero-short td { white-space: normal; }
.findings th { font-weight: 400; }
figure { margin: 1.75rem 0; }
figure img { display: block; max-width: 100%; height: auto; padding: .6rem; background: #fff;
  border: 1px solid var(--line); border-radius: .5rem; }
figcaption, .notes { font-size: .875rem; line-height: 1.5; margin-top: .5rem; max-width: 46rem; }
.scroll { overflow-x: auto; margin: 1rem 0 .5rem; border: 1px solid var(--line); border-radius: .5rem; }
.scroll:focus-visible, summary:focus-visible, a:focus-visible { outline: 2px solid var(--link);
  outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; line-height: 1.45;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding: .7rem .6rem; font-weight: 600; }
th, td { padding: .3rem .6rem; text-align: right; vertical-align: baseline; white-space: nowrap; }
th { font-weight: 500; }
thead th { background: var(--panel); font-weight: 600; border-bottom: 1px solid var(--line); }
thead th, .text { white-space: normal; }
tbody { border-top: 1px solid var(--line); }
.text { text-align: left; }
.long { min-width: 10rem; overflow-wrap: anywhere; }
details { margin: .75rem 0; }
summary { cursor: pointer; font-weight: 600; padding: .25rem 0; }
.warnings { background: var(--warn-panel); border-left: .3rem solid var(--warn); border-radius: .3rem;
  padding: .6rem 1rem; margin: 1.5rem 0; }
.warnings p { margin: 0; font-weight: 600; color: var(--warn); }
.finding { border-left: .3rem solid var(--line); padding: .1rem 0 .1rem 1rem; margin: 1.5rem 0; }
.ink { color: var(--ink); }
.finding h3 { margin: .2rem 0; }
.verdict { font-size: .8rem; font-weight: 600; white-space: nowrap; color: var(--soft); }
td .verdict { padding: .05rem .5rem; border: 1px solid currentColor; border-radius: 1rem; }
.holds { color: var(--good); border-color: currentColor; }
.does-not-hold { color: var(--bad); border-color: currentColor; }
pre { background: var(--panel); border-radius: .5rem; padding: 1rem; margin: 1rem 0; font-size: .85rem;
  line-height: 1.6; white-space: pre-wrap; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .875rem; }
@media (max-width: 56rem) {
  .hero, .hero.several { grid-template-columns: minmax(0, 1fr);
    grid-template-areas: "figure" "watch" "short"; }
}
@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.6rem; }
  h2 { margin-top: 2.5rem; }
  .hero, .hero.several, .hero.still, .hero.several.still { grid-template-columns: minmax(0, 1fr);
    grid-template-areas: "figure" "watch" "short"; }
  figure img { padding: .2rem; }
  th, td, caption { padding-left: .55rem; padding-right: .55rem; }
}
@page { margin: 15mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  .scroll { overflow: visible; border: 0; break-inside: avoid; }
  table, figcaption, .notes { font-size: 7.5pt; }
  th, td { white-space: normal; padding: .12rem .35rem; }
  .long { min-width: 0; }
  caption { padding-left: .35rem; }
  thead { display: table-header-group; }
  tr, figure, .finding, .warnings, li { break-inside: avoid; }
  h2, h3, caption, summary { break-after: avoid; }
  h2, footer { margin-top: 1.5rem; }
  figure img { max-height: 165mm; width: auto; border: 0; padding: 0; }
  .hero-figure img { max-height: 70mm; width: auto; }
  details::details-content { content-visibility: visible; height: auto; }
}
"""

# The policy forbids the browser what the page promises not to do: ask for anything from anywhere.
_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'$policy">
<meta name="generator" content="$generator">
<title>$title</title>
<link rel="icon" href="data:,">
<style>$css</style>
</head>
<body>
<header>
<h1>$title</h1>
$lead
</header>
<nav aria-labelledby="contents">
<p id="contents">Contents</p>
<ul>
$contents
</ul>
</nav>
<main>
$sections
</main>
<footer>
$footer
</footer>
$scripts</body>
</html>
""")  # noqa: E501


def text(words: object) -> str:
    """Return escaped text; characters that HTML does not allow become a replacement character."""
    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(words)))


@dataclass(frozen=True)
class Player:
    """What plays films inside a page: a script, its style sheet, and the films as JSON."""

    script: str
    style: str
    films: str

    @property
    def policy(self) -> str:
        """Allow this script and no other: the browser compares its hash."""
        return f"; script-src 'sha256-{b64encode(sha256(self.script.encode()).digest()).decode()}'"

    @property
    def elements(self) -> str:
        """The films, and the script that plays them."""
        return (
            f'<script type="application/json" id="films">{self.films}</script>\n'
            f"<script>{self.script}</script>\n"
        )


def page(
    title: str,
    lead: str,
    sections: Sequence[tuple[str, str, str]],
    footer: str,
    generator: str,
    player: Player | None = None,
) -> str:
    """Return a page of sections, each with an id, a heading and HTML. Empty sections are left out."""
    shown = [section for section in sections if section[2]]
    return _PAGE.substitute(
        title=text(title),
        lead=lead,
        css=CSS + (player.style if player else ""),
        policy=player.policy if player else "",
        scripts=player.elements if player else "",
        contents="\n".join(f'<li><a href="#{key}">{text(head)}</a></li>' for key, head, _ in shown),
        sections="\n".join(
            f'<section id="{key}" aria-labelledby="{key}-h">\n<h2 id="{key}-h">{text(head)}</h2>\n{content}\n'
            "</section>"
            for key, head, content in shown
        ),
        footer=footer,
        generator=text(generator),
    )


def bullets(items: Iterable[object], kind: str = "") -> str:
    """Return a list; empty if there are no items."""
    rows = "\n".join(f"<li>{text(item)}</li>" for item in items)
    return f"<ul{f' class={kind}' if kind else ''}>\n{rows}\n</ul>" if rows else ""


def warned(sentences: Sequence[str]) -> str:
    """Return a box with warnings; empty if there are none."""
    if not sentences:
        return ""
    if len(sentences) > _FEW_WARNINGS:
        n = len(sentences)
        return f'<div class="warnings" role="note">\n{folded(f"{n} warnings", bullets(sentences))}\n</div>'
    return f'<div class="warnings" role="note">\n<p>Warnings</p>\n{bullets(sentences)}\n</div>'


def folded(summary: str, content: str) -> str:
    """Return folded content: a click opens it, and print shows it."""
    return f"<details>\n<summary>{text(summary)}</summary>\n{content}\n</details>" if content else ""


def table(
    key: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    long: Sequence[str] = (),
) -> str:
    """Return a table that scrolls. Rows with an empty first cell belong to the row above.

    Text in the columns `long` may have several lines.
    """
    kinds = [
        f"{'text' if name in _TEXT_COLUMNS or name in long else ''}{' long' if name in long else ''}".strip()
        for name in columns
    ]
    classes = [f' class="{kind}"' if kind else "" for kind in kinds]
    head = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(columns, classes, strict=True)
    )
    bodies = "\n".join(_body(group, classes) for group in _groups(rows))
    return (
        f'<div class="scroll" role="region" aria-labelledby="{key}" tabindex="0">\n<table>\n'
        f'<caption id="{key}">{text(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n{bodies}\n</table>\n</div>"
    )


def shown_table(shown: Table, key: str) -> str:
    """Return a table with its notes."""
    return f"{table(key, shown.title, shown.columns, shown.rows)}\n{bullets(shown.notes, 'notes')}"


def _groups(rows: Iterable[Sequence[str]]) -> Iterable[list[Sequence[str]]]:
    """Yield groups of rows with the same first cell, whether it is repeated or empty."""
    shown, filled = "", []
    for row in rows:
        shown = row[0] or shown
        filled.append((shown, row))
    for _, group in groupby(filled, key=lambda pair: pair[0]):
        yield [row for _, row in group]


def _body(group: Sequence[Sequence[str]], classes: Sequence[str]) -> str:
    several = len(group) > 1
    span = f' rowspan="{len(group)}"' if several else ""
    lines = []
    for i, row in enumerate(group):
        cells = [f"<td{kind}>{text(cell)}</td>" for cell, kind in zip(row, classes, strict=True)]
        cells[0] = f'<th scope="{"rowgroup" if several else "row"}"{span}{classes[0]}>{text(row[0])}</th>'
        if several:
            cells[1] = f'<th scope="row"{classes[1]}>{text(row[1])}</th>'
        lines.append(f"<tr>{''.join(cells[bool(i) :])}</tr>")
    return "<tbody>\n" + "\n".join(lines) + "\n</tbody>"


def picture(figure: Any, alt: str, caption: str, *, vector: bool = True) -> str:
    """Return a figure for the page, as PNG or SVG, whichever is smaller; only as PNG if not `vector`."""
    with style():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # it has its layout: a second time would take as long again
        files = {"image/png": _saved(figure, "png")}
        if vector:
            files["image/svg+xml"] = _saved(figure, "svg")
    kind, content = min(files.items(), key=lambda item: len(item[1]))
    width, height = (round(_CSS_PIXELS * inches) for inches in figure.get_size_inches())
    return (
        f'<figure>\n<img src="data:{kind};base64,{b64encode(content).decode()}" alt="{text(alt)}" '
        f'width="{width}" height="{height}">\n<figcaption>{text(caption)}</figcaption>\n</figure>'
    )


def _saved(figure: Any, ending: str) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=ending, dpi=PNG_DPI, metadata={"Date": None} if ending == "svg" else None)
    return file.getvalue()
