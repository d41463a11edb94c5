"""The first screen of a page: what was run, the figure, walking robots, and the findings in short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from qdbench.analysis.compare import Comparison
from qdbench.analysis.measured import Measured
from qdbench.analysis.tables import Table, headline
from qdbench.reports.claims import Finding, findings_table, what_it_takes, who_is_better
from qdbench.reports.figures import Looks, corrected_marks, said_marks
from qdbench.reports.markup import picture, shown_table, text
from qdbench.reports.suite_figure import suite_figure

_FEW = 3
"""So many names are listed; more are counted."""


@dataclass(frozen=True, eq=False)
class First:
    """What a page begins with, if it is not the usual."""

    label: str = ""
    """What these results are, and what they are not."""
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    """By default the headline metrics."""
    drawn: Measured | None = None
    """What the figure shows, if not only the runs of the page: also reference results."""


def what_was_run(measured: Measured) -> str:
    """Return in one sentence how much was run."""
    records = [one.run.record for _, one in measured.runs]
    seeds = {len(variant.runs) for _, variant in measured.variants}
    each = (
        f"{min(seeds)} seed{'s' * (min(seeds) != 1)}"
        if len(seeds) == 1
        else f"{min(seeds)} to {max(seeds)} seeds"
    )
    budgets = _few({record.target.in_words for record in records}, "budgets by task")
    lengths = {record.task.episode_length for record in records} - {None}
    steps = f" of {_few({f'{n:,}' for n in lengths}, 'various numbers of')} steps" if lengths else ""
    counts = {one.corrected.n_reevaluations for _, one in measured.runs if one.corrected}
    again = (
        f"; every elite was then re-evaluated {_few({str(n) for n in counts}, 'several')} times"
        if counts
        else ""
    )
    return f"{each} each, {budgets}{steps} per run{again}."


def title_of(measured: Measured, looks: Looks) -> str:
    """Return who was run on what."""
    labels = {variant.label for _, variant in measured.variants}
    names = [look.name for label, look in looks.items() if label in labels]
    who = _listed(names, f"{len(names)} algorithms")
    tasks = [task.task for task in measured.tasks]
    return f"{who} on {_listed(tasks, f'{len(tasks)} tasks')}"


def _listed(names: Sequence[str], if_many: str) -> str:
    if len(names) > _FEW:
        return if_many
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _few(words: Iterable[str], otherwise: str) -> str:
    found = sorted(words)
    return found[0] if len(found) == 1 else " or ".join(found) if len(found) == 2 else otherwise


def first_screen(
    measured: Measured,
    comparison: Comparison,
    looks: Looks,
    first: First,
    findings: Sequence[Finding],
    to_decide: str,
    watch: str,
) -> str:
    """Return the figure, the replays (`watch`, HTML), the findings and the headline metrics."""
    drawn = first.drawn or measured
    several = len(drawn.tasks) > 1
    marks = corrected_marks([variant for _, variant in drawn.variants])
    figure = picture(
        suite_figure(drawn, first.label, narrow=True),
        f"QD score against evaluations, {title_of(measured, looks)}. The table has the values at the end.",
        f"QD score along the runs: median and quartiles{said_marks(marks)}.",
    )
    if findings:
        short = findings_table(findings, "The paper\N{RIGHT SINGLE QUOTATION MARK}s findings", to_decide)
    else:
        found = who_is_better(comparison, dict(looks))
        short = findings_table(found, "Who is better?", what_it_takes(comparison, found))
    kinds = f"hero{' several' * several}{' still' * (not watch)}"
    tables = first.tables or [headline(comparison)]
    narrow = not several and len(tables[0].columns) <= _FEW + 2
    shown = [
        shown_table(_without_task(table) if narrow else table, f"result-{i}")
        for i, table in enumerate(tables, 1)
    ]
    inside, below = (shown[:1], shown[1:]) if narrow else ([], shown)
    notes = "".join(f'<p class="line">{text(note)}</p>\n' for note in first.notes)
    return (
        f'<div class="{kinds}">\n<div class="hero-figure">\n{figure}\n</div>\n'
        + (f'<div class="hero-watch">\n{watch}\n</div>\n' if watch else "")
        + f'<div class="hero-short">\n{short}\n{notes}{"".join(inside)}</div>\n</div>\n'
        + "\n".join(below)
    )


def _without_task(table: Table) -> Table:
    """Return a table of one task without the column that names it."""
    if table.columns[:1] != ("task",):
        return table
    return replace(table, columns=table.columns[1:], rows=tuple(row[1:] for row in table.rows))
