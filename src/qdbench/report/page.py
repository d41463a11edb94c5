"""One HTML file that holds a whole comparison: figures, tables, warnings, every run, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import qdbench
from qdbench.analysis.collect import Collected, Variant
from qdbench.analysis.compare import METRICS, Comparison, IntervalKind, compare
from qdbench.analysis.findings import CAVEAT, Finding
from qdbench.analysis.measures import On
from qdbench.analysis.tables import METHOD, Table, interval_words, tables
from qdbench.experiments.files import write_text
from qdbench.experiments.plan import as_json
from qdbench.report.archives import archives_figure
from qdbench.report.figures import Looks, in_order, paper_figure
from qdbench.report.markup import bullets, folded, page, picture, table, text, warned
from qdbench.report.measured import MeasuredRun, MeasuredTask, MeasuredVariant, measure
from qdbench.report.samples import samples_figure
from qdbench.report.style import looks
from qdbench.tasks.registry import TASKS

_MANY_RUNS = 16
"""More are folded away."""
_MACHINE = ("cpu", "system", "workers", "jobs")
_ON_COMMAND_LINE = ("episode_length", "reset_noise")


@dataclass(frozen=True)
class Asked:
    """What a report is of: the arguments of `qdbench report`."""

    results: tuple[Path, ...]
    path: Path
    tasks: tuple[str, ...]
    interval: IntervalKind
    on: On
    title: str


@dataclass(frozen=True, eq=False)
class Report:
    """What a report shows, beside its figures."""

    asked: Asked
    comparison: Comparison
    measured: tuple[MeasuredTask, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]

    @property
    def variants(self) -> list[tuple[MeasuredTask, MeasuredVariant]]:
        """All algorithms on all tasks."""
        return [(task, variant) for task in self.measured for variant in task.variants]

    @property
    def runs(self) -> list[tuple[MeasuredVariant, MeasuredRun]]:
        """All replications."""
        return [(variant, run) for _, variant in self.variants for run in variant.runs]


def write_report(
    collected: Collected,
    path: Path,
    *,
    results: Sequence[Path],
    tasks: Sequence[str] = (),
    interval: IntervalKind = "fixed",
    on: On = "own",
    title: str = "",
    findings: Sequence[Finding] = (),
    progress: Callable[[], None] = lambda: None,
) -> Report:
    """Compare what was collected, write it as one HTML file, and return what it says.

    `results` and `tasks` are what was collected from, for the commands that repeat it; `progress` is called
    after each run. InvalidInput where runs cannot be compared.
    """
    measured: list[MeasuredTask] = []
    skipped = list(collected.skipped)
    for task in collected.tasks:
        found, unusable = measure(collected.of_task(task), interval, on, progress)
        measured += [] if found is None else [found]
        skipped += unusable
    left = (
        Variant(task.task, variant.label, tuple(one.run for one in variant.runs))
        for task in measured
        for variant in task.variants
    )
    comparison = compare(Collected(tuple(left), tuple(skipped)), interval=interval, on=on)
    report = Report(
        Asked(tuple(results), path, tuple(tasks), interval, on, title),
        comparison,
        tuple(measured),
        tuple(findings),
        tuple(warning for task in measured for warning in task.warnings),
    )
    write_text(path, _page(report, looks(variant.label for variant in collected.variants)))
    return report


# The page


def _page(report: Report, look: Looks) -> str:
    made = tables(report.comparison)
    by_task, others = made[: len(report.comparison.tasks)], made[len(report.comparison.tasks) :]
    names = [task.task for task in report.measured]
    title = report.asked.title or f"Comparison on {names[0] if len(names) == 1 else f'{len(names)} tasks'}"
    return page(
        title,
        _lead(report),
        [
            ("compared", "What was compared", _compared(report)),
            ("findings", "The paper\N{RIGHT SINGLE QUOTATION MARK}s findings", _findings(report.findings)),
            *(
                (f"task-{i}", task.task, _task(task, shown, look, f"task-{i}-table"))
                for i, (task, shown) in enumerate(zip(report.measured, by_task, strict=True), 1)
            ),
            ("tests", "Tests and aggregates", _others(others)),
            ("method", "Method", bullets(_method(report))),
            ("runs", "Runs", _runs(report)),
            ("commands", "Commands", _commands_section(report)),
        ],
        f"<p>Written by qdbench {text(qdbench.__version__)}. This file is complete: it loads nothing.</p>",
        f"qdbench {qdbench.__version__}",
    )


def _lead(report: Report) -> str:
    newest = max(datetime.fromisoformat(one.run.record["updated"]) for _, one in report.runs).astimezone(UTC)
    n, skipped = len(report.runs), len(report.comparison.skipped)
    left_out = f', <a href="#runs">{skipped} skipped</a>' if skipped else ""
    return (
        f'<p>{n} run{"s" * (n != 1)}{left_out}; the newest is of <time datetime="{newest.isoformat()}">'
        f"{newest.day} {newest:%B %Y, %H:%M} UTC</time>.</p>\n{warned(report.warnings)}"
    )


def _compared(report: Report) -> str:
    rows = []
    for task, compared in zip(report.measured, report.comparison.tasks, strict=True):
        record = task.runs[0].record
        target = record["target"]
        ends = [f"{target['evaluations']:,} evaluations"] if target["evaluations"] else []
        ends += [f"{target['seconds']:,g} s"] if target["seconds"] else []
        facts = record["task"]
        low, high = compared.interval
        rows.append(
            (
                task.task, str(facts["version"]), facts["fingerprint"], " or ".join(ends),
                f"{report.asked.interval} [{low:,.10g}, {high:,.10g}]",
                _options(facts["options"], TASKS.get(facts["source"])),
            )
        )  # fmt: skip
    columns = ("task", "version", "fingerprint", "budget", "interval of the QD score", "options")
    algorithms = [
        (
            task.task, variant.label, _seeds(run.seed for run in variant.runs),
            f"{len(variant.corrected)} of {len(variant.runs)}",
            _options(variant.runs[0].run.record["algorithm"]["options"]),
        )
        for task, variant in report.variants
    ]  # fmt: skip
    of_runs = ("task", "algorithm", "seeds", "runs re-evaluated", "options")
    upper = table("compared-tasks", "Tasks", columns, rows, long=("options",))
    lower = table("compared-algorithms", "Algorithms", of_runs, algorithms, long=("options",))
    return f"{upper}\n{lower}"


def _options(options: Mapping[str, Any], plain: Any = None) -> str:
    words = []
    for name, value in options.items():
        default = value if plain is None else as_json(getattr(plain, name))
        words.append(f"{name}={value}" + (f" (default {default})" if default != value else ""))
    return ", ".join(words) or "none"


def _findings(found: Sequence[Finding]) -> str:
    shown = [
        f'<div class="finding {one.verdict.replace(" ", "-")}">\n'
        f'<span class="verdict">{text(one.verdict)}</span>\n<div class="ink">\n<h3>{text(one.claim)}</h3>\n'
        f"<p>Criterion: {text(one.criterion)}</p>\n{bullets(one.numbers)}\n</div>\n</div>"
        for one in found
    ]
    return "\n".join((f"<p>{text(CAVEAT)}</p>", *shown)) if shown else ""


def _task(task: MeasuredTask, shown: Table, look: Looks, key: str) -> str:
    names = ", ".join(look[variant.label].name for variant in in_order(task.variants, look))
    along = "evaluations" if task.no_times else "evaluations and seconds"
    corrected = any(variant.corrected for variant in task.variants)
    dashed = any(variant.has_corrected_curves for variant in task.variants)
    pictures = [
        picture(
            paper_figure(task, look),
            f"{task.task}: coverage, QD score and max fitness of {names} against {along}; archive profiles "
            "and losses through re-evaluation. The table below has the values at the end.",
            f"Metrics along the runs against {along}, archive profiles, and losses through re-evaluation"
            f"{'; dashed lines are the corrected metrics' if dashed else ''}.",
        ),
        picture(
            archives_figure(task, look),
            f"{task.task}: heatmaps of the final archives of {names}: fitness by descriptor"
            f"{', each beside its corrected archive' if corrected else ''}.",
            "The archive of the median replication of each algorithm"
            f"{', beside what is left of it after re-evaluation' if corrected else ''}.",
            vector=False,
        ),
    ]
    if corrected:
        alt = f"{task.task}: corrected coverage and QD score of {names} by the number of re-evaluations"
        caption = (
            "How corrected scores depend on the number of re-evaluations: few tend to give too high ones."
        )
        pictures.append(picture(samples_figure(task, look), f"{alt}.", caption))
    return "\n".join((f"<p>{text(task.by)}.</p>", *pictures, _table(shown, key)))


def _table(shown: Table, key: str) -> str:
    return f"{table(key, shown.title, shown.columns, shown.rows)}\n{bullets(shown.notes, 'notes')}"


def _others(found: Sequence[Table]) -> str:
    numbered = [(one, f"other-{i}") for i, one in enumerate(found, 1)]
    exploratory = [pair for pair in numbered if pair[0].title.startswith("Exploratory")]
    first = (_table(one, key) for one, key in numbered if (one, key) not in exploratory)
    rest = "\n".join(_table(one, key) for one, key in exploratory)
    return "\n".join((*first, folded(f"Exploratory tests of {len(exploratory)} other metrics", rest)))


def _method(report: Report) -> Iterable[str]:
    for task in report.comparison.tasks:
        interval = interval_words(report.comparison, task)
        yield f"{task.task}: {interval}; primary endpoint: {METRICS[task.primary]}."
    yield from METHOD


# Runs


def _runs(report: Report) -> str:
    places: dict[tuple[tuple[str, Any], ...], int] = {}
    rows = []
    for variant, one in report.runs:
        record = one.run.record
        seen = [places.setdefault(tuple(where.items()), len(places) + 1) for where in record["environments"]]
        totals, n = record["totals"], one.corrected.n_reevaluations if one.corrected else 0
        rows.append(
            (
                str(one.run.path), variant.label, str(one.seed), one.run.status, f"{totals['evaluations']:,}",
                f"{totals['seconds']:,.1f}", f"{totals['invalid']:,}", str(n) if n else "none",
                ", ".join(map(str, dict.fromkeys(seen))),
            )
        )  # fmt: skip
    columns = (
        "run", "algorithm", "seed", "status", "evaluations", "seconds", "invalid", "re-evaluations",
        "environment",
    )  # fmt: skip
    every = table("every-run", f"All {len(rows)} runs", columns, rows, long=("run",))
    machines = [
        (str(number), *(str(dict(where).get(name, "?")) for name in _MACHINE), _versions(dict(where)))
        for where, number in places.items()
    ]
    ran_on = table("environments", "Environments", ("environment", *_MACHINE, "versions"), machines)
    skipped = ""
    if report.comparison.skipped:
        reasons = [(str(one.path), one.reason) for one in report.comparison.skipped]
        caption = f"Skipped: {len(reasons)} that could not be used"
        skipped = table("skipped-runs", caption, ("run", "reason"), reasons, long=("run", "reason"))
    shown = every if len(rows) <= _MANY_RUNS else folded(f"All {len(rows)} runs", every)
    return "\n".join((skipped, shown, ran_on))


def _versions(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in where.items() if name not in _MACHINE)


# Commands


def _commands_section(report: Report) -> str:
    lines = "\n".join(text(line) for line in commands(report))
    return (
        "<p>The commands that made this page, from the runs on. A finished run is not run again; on another "
        "machine or with other versions results may differ in the last bits.</p>\n"
        f"<pre><code>{lines}</code></pre>"
    )


def commands(report: Report) -> list[str]:
    """Return what to paste into a shell; lines that begin with # say what no command can."""
    asked, runs = report.asked, [one for _, one in report.runs]
    seeds: dict[tuple[str, ...], list[int]] = {}
    for one in runs:
        seeds.setdefault(tuple(_run_words(one)), []).append(one.seed)
    lines = [f"# {_versions(where)}" for one in runs for where in one.run.record["environments"]]
    lines += [remark for one in runs for remark in _remarks(one.run.record["task"])]
    lines += [shlex.join([*words, "--seeds", _seeds(which)]) for words, which in seeds.items()]
    for one in runs:
        if one.corrected and not _n_corrections(one):
            n = str(one.corrected.n_reevaluations)
            lines.append(shlex.join(["qdbench", "correct", str(one.run.path.parent), "--reevaluations", n]))
    what = [*map(str, asked.results), *(word for task in asked.tasks for word in ("--task", task))]
    what += [] if asked.interval == "fixed" else ["--interval", asked.interval]
    what += [] if asked.on == "own" else ["--on", asked.on]
    titled = ["--title", asked.title] if asked.title else []
    lines += [shlex.join(["qdbench", name, *what]) for name in ("compare", "plot")]
    lines.append(shlex.join(["qdbench", "report", *what, *titled, "--out", str(asked.path)]))
    return list(dict.fromkeys(" ".join(line.splitlines()) for line in lines))


def _run_words(one: MeasuredRun) -> Iterable[str]:
    """Yield the command of a run without its seed; with all options of the algorithm: defaults may change."""
    record, path = one.run.record, one.run.path
    task, target, where = record["task"], record["target"], record["environments"][-1]
    k = _n_corrections(one)
    options = {
        **{f"--{name.replace('_', '-')}": task["options"][name] for name in _settable(task)},
        "--name": record["name"],
        "--evaluations": target["evaluations"],
        "--seconds": target["seconds"],
        "--corrections": k,
        "--reevaluations": one.corrected.n_reevaluations if one.corrected and k else None,
        "--workers": where.get("workers"),
        "--jobs": where["jobs"] if where.get("jobs", 1) > 1 else None,
        "--out": path.parents[2] if len(path.parents) > 2 else None,
    }
    yield from ("qdbench", "run", task["source"], "--algorithm", record["algorithm"]["name"])
    for name, value in record["algorithm"]["options"].items():
        yield from ("--set", f"{name}={value}")
    for name, value in options.items():
        if value or (value == 0.0 and name == "--reset-noise"):
            yield from (name, str(value))


def _settable(task: Mapping[str, Any]) -> list[str]:
    """Return the options of a task that the command line must give."""
    plain = TASKS.get(task["source"])
    names = [name for name in _ON_COMMAND_LINE if name in task["options"]]
    return [name for name in names if plain is None or getattr(plain, name) != task["options"][name]]


def _remarks(task: Mapping[str, Any]) -> Iterable[str]:
    plain, name = TASKS.get(task["source"]), task["name"]
    if plain is None and ":" not in task["source"]:
        yield f"# {name} was made in Python, under the name {task['source']}: no command line makes it"
    if plain is not None:
        others = (key for key in task["options"] if key not in _ON_COMMAND_LINE)
        changed = [key for key in others if as_json(getattr(plain, key)) != task["options"][key]]
        if changed:
            yield f"# {name} was made in Python, with other {', '.join(changed)}: no command line makes it"


def _n_corrections(one: MeasuredRun) -> int:
    """Return the --corrections that re-evaluate when the run did; 0 if none do, as after an extension."""
    end: int | None = one.run.record["target"]["evaluations"]
    moments: list[float] = one.curves.corrected_evaluations.tolist()
    if not end or not moments or one.corrected is None:
        return 0
    after = one.curves.evaluations.astype(np.int64)
    # as long as no iteration is longer than 1/k of the budget, k corrections are k moments
    larger = max(len(moments), end // int(np.diff(after, prepend=0).max())) + 1
    most = len(after)  # with batches of one size, more are one after every iteration too
    candidates: list[int] = [len(moments), *range(larger, most + 1)]
    for k in candidates:
        marks = np.minimum(after * k // end, k)
        crossed = np.diff(marks, prepend=0) > 0  # as experiments.loop does
        if after[crossed].tolist() == moments:
            return k
    return 0


def _seeds(which: Iterable[int]) -> str:
    """Return seeds as --seeds takes them: 0-3,7."""
    ordered = sorted(which)
    starts = [seed for seed in ordered if seed - 1 not in ordered]
    ends = [seed for seed in ordered if seed + 1 not in ordered]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
