"""The command `show`: one run with a picture of its archive, or several runs as a table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import qdbench
from qdbench.cli import terminal
from qdbench.cli.app import AsJson, app, command_line
from qdbench.cli.picture import picture, shape_text
from qdbench.errors import DamagedFile, InvalidInput

if TYPE_CHECKING:
    from qdbench.store.archive_file import StoredArchive
    from qdbench.store.loading import StoredRun
    from qdbench.store.record import Environment


@app.command()
def show(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that contain run folders.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the archive of one run into this file (.png, .svg or .pdf)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Summarise runs: status, time and metrics.

    One run is shown in detail, with a picture of its archive; several runs are shown as a table.
    """
    from qdbench.store.files import require_writable
    from qdbench.store.folder import run_folders

    folders = run_folders(runs)
    if out is not None:
        if len(folders) > 1:
            raise InvalidInput(f"--out draws one archive, but you gave {len(folders)} runs; give one of them")
        require_writable(out, ".png", ".svg", ".pdf")
        if find_spec("matplotlib") is None:
            raise InvalidInput("drawing needs matplotlib: pip install 'qdbench[plot]'")
    summaries, damaged = [], []
    for folder in folders:
        try:
            run = qdbench.load(folder)
            summaries.append(_summary(run))
        except (DamagedFile, FileNotFoundError) as error:
            damaged.append(str(error))
            continue
        if out is not None:
            from qdbench.reports.heatmaps import save_archive

            save_archive(run, out)
        if not as_json and len(folders) == 1:
            _print_run(run, summaries[-1])
    if as_json:
        terminal.print_json(summaries)
    elif summaries:
        _print_end(summaries, out)
    if damaged:
        raise DamagedFile("; ".join(damaged))


def _print_end(summaries: Sequence[dict[str, Any]], out: Path | None) -> None:
    """Print several runs as a table, and what to do next."""
    if len(summaries) > 1:
        _print_table(summaries)
    if out is not None:
        return terminal.out.print(f"Written: {out}", soft_wrap=True)
    drawable = [summary["run"] for summary in summaries if summary["archive_evaluations"] is not None]
    if not drawable:
        following = command_line("resume", summaries[0]["run"], {})
    elif len(summaries) > 1:
        following = command_line("show", drawable[0], {})
    else:
        following = command_line("show", drawable[0], {"--out": "archive.png"})
    return terminal.out.print(f"Next: {following}", soft_wrap=True)


# The numbers


def _summary(run: StoredRun) -> dict[str, Any]:
    """Return everything that is shown about a run, in types that JSON has."""
    from qdbench.store.plain import as_json

    record = run.record
    last = {name: values[-1].item() for name, values in run.metrics.items() if len(values)}
    totals = {name: last.get(name, value) for name, value in vars(record.totals).items()}
    parts = {f"{part}_seconds": totals[f"{part}_seconds"] for part in ("simulation", "algorithm")}
    apart = ("setup", "warm_up", "metrics", "checkpoint", "correction")
    archive = run.archive if run.has_archive else None
    own, cells = _own_archive(archive), record.task.cells
    told = ("task", "algorithm", "seed", "name", "status", "reason", "begun", "updated", "target", "facts")
    return {
        "run": str(run.path),
        **{key: as_json(getattr(record, key)) for key in told},
        **{key: totals[key] for key in ("evaluations", "iteration", "steps", "invalid")},
        "checkpoint_evaluations": record.totals.evaluations,
        "archive_evaluations": None if archive is None else archive.n_evaluations,
        "elites": None if archive is None else len(archive),
        "own_archive": record.own_archive,
        "seconds": totals["seconds"],
        **parts,
        "rest_seconds": totals["seconds"] - sum(parts.values()),
        **{f"{part}_seconds": totals[f"{part}_seconds"] for part in apart},
        "archive": {**own, **_scores(last, "", own["cells"])},
        "grid": {"shape": list(cells), "cells": prod(cells), **_scores(last, "grid_", prod(cells))},
        "environments": as_json(record.environments),
    }


def _own_archive(archive: StoredArchive | None) -> dict[str, Any]:
    """Return kind, shape and number of cells of an archive; None for what is unknown."""
    if archive is None:
        return {"kind": None, "cells": None}
    arrays = archive.geometry.arrays()
    known: dict[str, Any] = {name: arrays[name].tolist() for name in ("shape", "threshold") if name in arrays}
    return {"kind": archive.geometry.kind, **known, "cells": archive.geometry.n_cells}


def _scores(last: dict[str, Any], prefix: str, cells: int | None) -> dict[str, Any]:
    names = (
        "qd_score", "max_fitness", "min_fitness", "sum_fitness", "alive_coverage", "alive_qd_score",
    )  # fmt: skip
    coverage = last.get(f"{prefix}coverage", 0)
    return {
        "coverage": coverage,
        "coverage_share": coverage / cells if cells else None,
        **{name: last.get(f"{prefix}{name}") for name in names},
    }


# In words


def _print_run(run: StoredRun, summary: dict[str, Any]) -> None:
    from rich.table import Table

    terminal.out.print(summary["run"], style="bold", soft_wrap=True)
    words = Table(box=None, show_header=False, pad_edge=False)
    for label, text in (
        ("task", _about_task(run)),
        ("algorithm", _about_algorithm(summary)),
        ("status", _about_status(summary)),
        ("evaluations", _about_evaluations(summary)),
        ("time", _about_time(summary)),
        *(("ran on", _about_environment(environment)) for environment in run.record.environments),
    ):
        words.add_row(label, text)
    terminal.out.print(words)
    terminal.out.print()
    own, grid = summary["archive"], summary["grid"]
    has_lives = run.record.task.episode_length is not None
    lives = ("lived to the end", "their QD score") if has_lives else ()
    table = terminal.table("measured on", "coverage", "QD score", *lives, "max fitness", "min fitness")
    cells = f"the task's grid: {shape_text(grid['shape'])}"
    rows = {f"its own archive{_about_archive(own)}": own, cells: grid}
    if not summary["own_archive"]:
        elites = "" if summary["elites"] is None else f" of {summary['elites']:,} elites"
        rows = {f"{cells}, its collection{elites} projected onto it": grid}
    elif own == {"kind": "grid", **grid}:
        rows = {f"{cells}, its own archive": grid}
    for label, scores in rows.items():
        share = "" if scores["coverage_share"] is None else f" ({scores['coverage_share']:.1%})"
        numbers = [_number(scores[name]) for name in ("qd_score", "max_fitness", "min_fitness")]
        if has_lives:
            numbers[1:1] = [_alive(scores), _number(scores["alive_qd_score"])]
        table.add_row(label, f"{scores['coverage']:,}{share}", *numbers)
    terminal.out.print(table)
    low, high = run.record.facts.score_interval
    terminal.out.print(
        "QD score: the sum of (fitness - low) / (high - low) over the elites, each at least 0 and at most 1, "
        f"[low, high] = [{low:,g}, {high:,g}]",
        soft_wrap=True,
    )
    if run.record.facts.remark_on_max_fitness:
        terminal.out.print(run.record.facts.remark_on_max_fitness, soft_wrap=True)
    _print_archive(run, summary)
    terminal.out.print()


def _alive(scores: dict[str, Any]) -> str:
    if not scores["coverage"]:
        return "-"
    return f"{scores['alive_coverage']:,.0f} ({scores['alive_coverage'] / scores['coverage']:.1%})"


def _print_archive(run: StoredRun, summary: dict[str, Any]) -> None:
    if not run.has_archive:
        terminal.out.print("There is no archive yet. It is written when the run ends or is stopped.")
        return
    if run.archive.n_evaluations != summary["evaluations"]:
        terminal.out.print(f"This archive was written after {run.archive.n_evaluations:,} evaluations.")
    if len(run.record.task.cells) <= 2 and len(run.archive):
        terminal.out.print()
        for line in picture(run):
            terminal.out.print(line, no_wrap=True, crop=False)


def _about_task(run: StoredRun) -> str:
    task, own = run.record.task, run.record.facts.changed_options
    words = [f"{task.name}, version {task.version}, fingerprint {task.fingerprint}"]
    for name, value in task.options.items():
        if name in own:
            words.append(f"{name.replace('_', ' ')} {value} instead of {own[name]}")
        elif name == "episode_length":
            words.append(f"episode length {value}")
    return ", ".join(words)


def _about_algorithm(summary: dict[str, Any]) -> str:
    algorithm = summary["algorithm"]
    options = ", ".join(f"{name}={value}" for name, value in algorithm["options"].items())
    name = f" ({summary['name']})" if summary["name"] else ""
    return f"{algorithm['name']}{name}, seed {summary['seed']}{': ' * bool(options)}{options}"


def _about_status(summary: dict[str, Any]) -> str:
    status = str(summary["status"])
    continued = "the same `qdbench run` command, or `qdbench resume`, continues it"
    if status == "running":
        kept = f"from evaluation {summary['checkpoint_evaluations']:,}"
        return f"running (last checkpoint {summary['updated']}); if it was killed, {continued} {kept}"
    if status == "stopped":
        return f"stopped at {summary['updated']}; {continued}"
    reason = f": {summary['reason']}" if summary["reason"] else ""
    return f"{status} at {summary['updated']}{reason}"


def _about_evaluations(summary: dict[str, Any]) -> str:
    target = summary["target"]
    ends = [f"{target['evaluations']:,}"] if target["evaluations"] else []
    ends += [f"{target['seconds']:,g} s"] if target["seconds"] else []
    return f"{summary['evaluations']:,} (target {' or '.join(ends)}), {summary['invalid']:,} of them invalid"


def _about_time(summary: dict[str, Any]) -> str:
    total = summary["seconds"]
    if not total:
        return f"{summary['setup_seconds']:.2f} s of set-up"
    shares = (
        f"{part} {summary[f'{part}_seconds'] / total:.1%}" for part in ("simulation", "algorithm", "rest")
    )
    apart = {"set-up": "setup", "compiling": "warm_up", "metrics": "metrics", "checkpoints": "checkpoint"}
    others = (
        f"{label} {summary[f'{part}_seconds']:,.2f} s"
        for label, part in apart.items()
        if part != "warm_up" or summary["warm_up_seconds"]
    )
    rate = summary["evaluations"] / total
    return (
        f"{total:,.2f} s ({rate:,.0f} evaluations/s): {', '.join(shares)}; not counted: {', '.join(others)}"
    )


def _about_environment(where: Environment) -> str:
    names = ("qdbench", "mujoco", "numpy", "scipy", "python")
    known = {name: getattr(where, name) for name in names} | where.packages
    versions = ", ".join(f"{name} {version}" for name, version in known.items())
    beside = f", {where.jobs} runs at a time" if where.jobs != 1 else ""
    host = f" on {where.host}" if where.host else ""
    return f"{where.cpu}, {where.system}{host}, {where.workers} workers{beside}; {versions}"


def _about_archive(archive: dict[str, Any]) -> str:
    if archive["kind"] is None:
        return ""
    words = f": {archive['kind']}"
    if "shape" in archive:
        return f"{words} {shape_text(archive['shape'])}"
    if "threshold" in archive:
        words += f", threshold {archive['threshold']:.3g}"
    return f"{words}, {archive['cells']:,} cells" if archive["cells"] else words


def _print_table(summaries: Sequence[dict[str, Any]]) -> None:
    table = terminal.table("run", "status", "evaluations", "seconds", "coverage", "QD score", "max fitness")
    for summary in summaries:
        scores = summary["archive"]
        table.add_row(
            summary["run"],
            summary["status"],
            f"{summary['evaluations']:,}",
            f"{summary['seconds']:,.1f}",
            f"{scores['coverage']:,}",
            _number(scores["qd_score"]),
            _number(scores["max_fitness"]),
        )
    terminal.out.print(table)


def _number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:,.2f}"
