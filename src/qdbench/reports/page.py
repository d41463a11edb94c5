"""One HTML file with a complete comparison: figures, tables, warnings, all runs, and the commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import qdbench
from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.measured import IntervalKind, Measured, MeasuredTask, Paths, Progress
from qdbench.analysis.measures import On
from qdbench.analysis.measuring import as_measured
from qdbench.analysis.tables import Table, interval_words, method, tables
from qdbench.checks import checked_flag, checked_function, checked_path, checked_text
from qdbench.metrics.metric import METRICS
from qdbench.reports.archives import archives_figure
from qdbench.reports.claims import Finding
from qdbench.reports.commands import MACHINE, commands, versions
from qdbench.reports.figures import Looks, corrected_marks, in_order, paper_figure, said_marks
from qdbench.reports.first_screen import First, first_screen, title_of, what_was_run
from qdbench.reports.markup import bullets, folded, page, picture, shown_table, table, text, warned
from qdbench.reports.samples import samples_figure
from qdbench.reports.sizes import sizes_figure
from qdbench.reports.spreads import spreads_figure
from qdbench.reports.style import looks, require_matplotlib
from qdbench.seeds import seeds_text
from qdbench.store.files import require_writable, write_text
from qdbench.store.record import Environment

if TYPE_CHECKING:
    from qdbench.reports.replays import Replays

_MANY_RUNS = 16
"""A longer table of runs is folded."""


@dataclass(frozen=True, eq=False)
class _Content:
    """What a page shows."""

    measured: Measured
    comparison: Comparison
    path: Path
    title: str
    findings: Sequence[Finding]
    caveat: str
    why_no_findings: str
    to_decide: str
    first: First
    replays: Replays | None


def report(
    results: Paths | Measured,
    *,
    tasks: str | Sequence[str] = (),
    interval: IntervalKind = "fixed",
    on: On = "own",
    out: str | Path = "report.html",
    title: str = "",
    replays: bool = True,
    trust: bool = False,
    progress: Progress = lambda done, total: None,
    filming: Progress = lambda done, total: None,
) -> Path:
    """Write figures, replays, tables, warnings, runs and commands as one HTML file that opens offline.

    `results` are folders with runs, or the result of `measure`. `tasks`, `interval` and `on` are those of
    `measure`. `replays` are films of elites, simulated again; `trust` allows to import a module of your own
    that a run names, to make its task again. `progress` is called after each measured run, `filming` after
    each filmed algorithm. Returns the path. Raises InvalidInput if no task can be compared.
    """
    path, title = checked_path("out", out), checked_text("title", title)
    replays, trust = checked_flag("replays", replays), checked_flag("trust", trust)
    checked_function("filming", filming)
    require_can_report(path)
    measured = as_measured(results, tasks, interval, on, progress)
    filmed = film_page(measured, filming, trust=trust) if replays else None
    return write_page(measured, compare(measured), path, title=title, replays=filmed)


def require_can_report(path: Path) -> None:
    """Refuse, before the work starts, a page that could not be written."""
    require_matplotlib()
    require_writable(path, ".html", ".htm")


def film_page(measured: Measured, progress: Progress, *, trust: bool = False) -> Replays:
    """Film elites of every algorithm, for `write_page`."""
    from qdbench.reports.replays import make_replays

    return make_replays(measured, _looks(measured), progress, trust=trust)


def write_page(
    measured: Measured,
    comparison: Comparison,
    path: Path,
    *,
    title: str = "",
    findings: Sequence[Finding] = (),
    caveat: str = "",
    why_no_findings: str = "",
    to_decide: str = "",
    first: First | None = None,
    replays: Replays | None = None,
) -> Path:
    """Write the page of a comparison.

    `caveat` is shown once, above all findings; `to_decide` is a line on what undecided ones need.
    """
    content = _Content(
        measured,
        comparison,
        path,
        title,
        findings,
        caveat,
        why_no_findings,
        to_decide,
        first or First(),
        replays,
    )
    write_text(path, _page(content, _looks(measured)))
    return path


def _looks(measured: Measured) -> Looks:
    return looks(variant.label for _, variant in measured.variants)


def _page(content: _Content, look: Looks) -> str:
    made = tables(content.comparison)
    by_task, others = made[: len(content.comparison.tasks)], made[len(content.comparison.tasks) :]
    measured = content.measured
    watch = [content.replays.html(task.task) if content.replays else "" for task in measured.tasks]
    result = first_screen(
        measured, content.comparison, look, content.first, content.findings, content.to_decide, watch[0]
    )
    return page(
        content.title or title_of(measured, look),
        _lead(content, look),
        [
            ("result", "Result", result),
            ("findings", "The paper\N{RIGHT SINGLE QUOTATION MARK}s findings", _findings(content)),
            *(
                (
                    f"task-{i + 1}",
                    task.task,
                    _task(task, shown, look, f"task-{i + 1}-table", watch[i] if i else ""),
                )
                for i, (task, shown) in enumerate(zip(measured.tasks, by_task, strict=True))
            ),
            ("tests", "Tests and aggregates", _others(others)),
            ("compared", "What was compared", _compared(content)),
            ("method", "Method", bullets(_method(content))),
            ("runs", "Runs", _runs(content)),
            ("commands", "Commands", _commands(content)),
        ],
        f"<p>Written by qdbench {text(qdbench.__version__)}. This file is complete and opens offline.</p>",
        f"qdbench {qdbench.__version__}",
        content.replays.player if content.replays else None,
    )


def _lead(content: _Content, look: Looks) -> str:
    newest = max(
        datetime.fromisoformat(one.run.record.updated) for _, one in content.measured.runs
    ).astimezone(UTC)
    n, skipped = len(content.measured.runs), len(content.comparison.skipped)
    left_out = f', <a href="#runs">{skipped} skipped</a>' if skipped else ""
    label = f"{text(content.first.label)}. " if content.first.label else ""
    what = what_was_run(content.measured)
    if content.title:
        what = f"{title_of(content.measured, look)}: {what}"
    when = f'<time datetime="{newest.isoformat()}">{newest.day} {newest:%B %Y, %H:%M} UTC</time>'
    return (
        f'<p class="lead">{text(what)}</p>\n'
        f"<p>{label}{n} run{'s' * (n != 1)}{left_out}; the newest is of {when}.</p>\n"
        f"{warned(content.measured.warnings)}"
    )


def _compared(content: _Content) -> str:
    rows = []
    for task, compared in zip(content.measured.tasks, content.comparison.tasks, strict=True):
        record = task.runs[0].record
        low, high = compared.interval
        rows.append(
            (
                task.task, str(record.task.version), record.task.fingerprint, record.target.in_words,
                f"{content.comparison.interval} [{low:,.10g}, {high:,.10g}]",
                _options(record.task.options, record.facts.changed_options),
            )
        )  # fmt: skip
    columns = ("task", "version", "fingerprint", "budget", "interval of the QD score", "options")
    algorithms = [
        (
            task.task, variant.label, seeds_text(run.seed for run in variant.runs),
            f"{len(variant.corrected)} of {len(variant.runs)}",
            _options(variant.runs[0].run.record.algorithm.options),
        )
        for task, variant in content.measured.variants
    ]  # fmt: skip
    of_runs = ("task", "algorithm", "seeds", "runs corrected", "options")
    upper = table("compared-tasks", "Tasks", columns, rows, long=("options",))
    lower = table("compared-algorithms", "Algorithms", of_runs, algorithms, long=("options",))
    return f"{upper}\n{lower}"


def _options(options: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> str:
    """Return options as text, with the default of those that were changed."""
    defaults = {name: f" (default {value})" for name, value in (own or {}).items()}
    return ", ".join(f"{name}={value}{defaults.get(name, '')}" for name, value in options.items()) or "none"


def _findings(content: _Content) -> str:
    shown = [
        f'<div class="finding {one.verdict.replace(" ", "-")}">\n'
        f'<span class="verdict">{text(one.verdict)}</span>\n<div class="ink">\n<h3>{text(one.claim)}</h3>\n'
        f"<p>Criterion: {text(one.criterion)}</p>\n{bullets(one.numbers)}\n</div>\n</div>"
        for one in content.findings
    ]
    above = content.caveat if shown else content.why_no_findings
    each = folded(f"Criteria and numbers of the {len(shown)} findings", "\n".join(shown))
    return "\n".join([*([f"<p>{text(above)}</p>"] if above else []), *([each] if shown else [])])


def _task(task: MeasuredTask, shown: Table, look: Looks, key: str, watch: str) -> str:
    names = ", ".join(look[variant.label].name for variant in in_order(task.variants, look))
    along = "evaluations" if task.no_times else "evaluations and seconds"
    corrected = task.is_corrected
    marks = corrected_marks(task.variants, profiles=True)
    pictures = [
        picture(
            paper_figure(task, look),
            f"{task.task}: coverage, QD score and max fitness of {names} against {along}; archive profiles "
            "and losses by re-evaluation. The table below has the values at the end.",
            f"Metrics along the runs against {along}, archive profiles, and losses by re-evaluation"
            f"{said_marks(marks)}.",
        ),
        picture(
            archives_figure(task, look),
            f"{task.task}: heatmaps of the final archives of {names}: fitness by descriptor"
            f"{', each beside its corrected archive' if corrected else ''}.",
            "The archive of the median replication of each algorithm"
            f"{', beside its corrected archive' if corrected else ''}.",
            vector=False,
        ),
    ]
    if corrected:
        alt = f"{task.task}: corrected coverage and QD score of {names} by the number of re-evaluations"
        caption = (
            "Corrected scores by the number of re-evaluations. With few re-evaluations they are too high."
        )
        pictures.append(picture(samples_figure(task, look), f"{alt}.", caption))
        alt = f"{task.task}: expected losses of random parts of the archives of {names}, by number of elites."
        caption = "Losses by the number of elites. Fuller archives lose more: compare losses at one number."
        pictures.append(picture(sizes_figure(task, look), alt, caption))
        alt = f"{task.task}: standard deviations of re-evaluated fitness and descriptors of {names}, by cell."
        caption = "How far the re-evaluations of every elite scatter, where it is stored."
        pictures.append(picture(spreads_figure(task, look), alt, caption, vector=False))
    return "\n".join((f"<p>{text(task.by)}.</p>", watch, *pictures, shown_table(shown, key)))


def _others(found: Sequence[Table]) -> str:
    numbered = [(one, f"other-{i}") for i, one in enumerate(found, 1)]
    first = [shown_table(one, key) for one, key in numbered if not one.is_exploratory]
    rest = [shown_table(one, key) for one, key in numbered if one.is_exploratory]
    return "\n".join((*first, folded(f"Exploratory tests of {len(rest)} other metrics", "\n".join(rest))))


def _method(content: _Content) -> Iterable[str]:
    for task in content.comparison.tasks:
        interval = interval_words(content.comparison, task)
        yield f"{task.task}: {interval}; primary endpoint: {METRICS[task.primary].title}."
    yield from method(content.comparison)


def _runs(content: _Content) -> str:
    places: dict[str, tuple[int, Environment]] = {}
    rows = []
    for variant, one in content.measured.runs:
        record, totals = one.run.record, one.run.record.totals
        seen = [places.setdefault(repr(where), (len(places) + 1, where))[0] for where in record.environments]
        rows.append(
            (
                str(one.run.path), variant.label, str(one.seed), one.run.status, f"{totals.evaluations:,}",
                f"{totals.seconds:,.1f}", f"{totals.invalid:,}",
                str(one.corrected.n_reevaluations) if one.corrected else "none",
                ", ".join(map(str, dict.fromkeys(seen))),
            )
        )  # fmt: skip
    columns = (
        "run", "algorithm", "seed", "status", "evaluations", "seconds", "invalid", "re-evaluations",
        "environment",
    )  # fmt: skip
    every = table("every-run", f"All {len(rows)} runs", columns, rows, long=("run",))
    machines = [
        (str(number), *(str(getattr(where, name)) for name in MACHINE), versions(where))
        for number, where in places.values()
    ]
    of_machines = ("environment", *MACHINE, "versions")
    ran_on = table("environments", "Environments", of_machines, machines, long=("cpu", "system", "versions"))
    skipped = ""
    if content.comparison.skipped:
        reasons = [(str(one.path), one.reason) for one in content.comparison.skipped]
        caption = f"Skipped: {len(reasons)} runs that could not be used"
        skipped = table("skipped-runs", caption, ("run", "reason"), reasons, long=("run", "reason"))
    shown = every if len(rows) <= _MANY_RUNS else folded(f"All {len(rows)} runs", every)
    return "\n".join((skipped, shown, ran_on))


def _commands(content: _Content) -> str:
    lines = "\n".join(map(text, commands(content.measured, content.path, content.title)))
    return (
        "<p>The commands that made this page, including the runs. Finished runs are skipped. Results are "
        "exactly reproducible only with the same versions on the same CPU.</p>\n"
        f"<pre><code>{lines}</code></pre>"
    )
