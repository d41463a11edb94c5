"""The command `show`: runs in words, numbers and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import qdbench
from qdbench import terminal
from qdbench.cli.app import AsJson, app, command_line, require_writable
from qdbench.cli.picture import picture, shape_text
from qdbench.errors import DamagedFile, InvalidInput

if TYPE_CHECKING:
    from qdbench.experiments.loading import StoredArchive, StoredRun


@app.command()
def show(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or folders with runs below.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the archive of one run (.png, .svg, .pdf)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Summarise runs: how far they came, where their time went, what their archives hold."""
    from qdbench.analysis.collect import run_folders

    folders = run_folders(runs)
    if out is not None:
        if len(folders) > 1:
            raise InvalidInput(
                f"--out draws one archive, but these are {len(folders)} runs; give one of them"
            )
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
            from qdbench.report.heatmaps import save_archive

            save_archive(run, out)
        if not as_json:
            _print_run(run, summaries[-1])
    if as_json:
        terminal.print_json(summaries)
    elif summaries:
        _print_end(summaries, out)
    if damaged:
        raise DamagedFile("; ".join(damaged))


def _print_end(summaries: Sequence[dict[str, Any]], out: Path | None) -> None:
    """Print all runs side by side, and what to do next."""
    if len(summaries) > 1:
        _print_table(summaries)
    if out is not None:
        return terminal.out.print(f"Written: {out}", soft_wrap=True)
    drawable = [summary["run"] for summary in summaries if summary["archive_evaluations"] is not None]
    following = (
        command_line("show", drawable[0], {"--out": "archive.png"})
        if drawable
        else command_line("resume", summaries[0]["run"], {})
    )
    return terminal.out.print(f"Next: {following}", soft_wrap=True)


# The numbers


def _summary(run: StoredRun) -> dict[str, Any]:
    """Return all that is told about a run, as JSON holds it."""
    record = run.record
    last = {name: values[-1].item() for name, values in run.metrics.items() if len(values)}
    at_checkpoint = record["totals"]
    totals = {name: last.get(name, value) for name, value in at_checkpoint.items()}
    parts = {f"{part}_seconds": totals[f"{part}_seconds"] for part in ("simulation", "algorithm")}
    archive = _archive(run)
    cells = record["task"]["options"]["cells"]
    return {
        "run": str(run.path),
        **{key: record[key] for key in ("task", "algorithm", "seed", "name", "status", "reason")},
        **{key: record[key] for key in ("begun", "updated", "target")},
        **{key: totals[key] for key in ("evaluations", "iteration", "steps", "invalid")},
        "checkpoint_evaluations": at_checkpoint["evaluations"],
        "archive_evaluations": None if archive is None else archive.about["n_evaluations"],
        "seconds": totals["seconds"],
        **parts,
        "rest_seconds": totals["seconds"] - sum(parts.values()),
        **{f"{part}_seconds": totals[f"{part}_seconds"] for part in ("setup", "metrics", "checkpoint")},
        "container": {**_container(archive), **_scores(last, "", _container(archive)["cells"])},
        "grid": {"shape": cells, "cells": prod(cells), **_scores(last, "grid_", prod(cells))},
        "environments": record["environments"],
    }


def _archive(run: StoredRun) -> StoredArchive | None:
    from qdbench.experiments.store import RunFolder

    return run.archive if RunFolder(run.path).archive_path.exists() else None


def _container(archive: StoredArchive | None) -> dict[str, Any]:
    """Return what an archive is; nothing is known before there is one."""
    if archive is None:
        return {"kind": None, "cells": None}
    geometry = archive.geometry
    known: dict[str, Any] = {
        name: geometry[name].tolist() for name in ("shape", "threshold") if name in geometry
    }
    return {"kind": archive.kind, **known, "cells": archive.container.n_cells}


def _scores(last: dict[str, Any], prefix: str, cells: int | None) -> dict[str, Any]:
    names = ("qd_score", "max_fitness", "min_fitness", "sum_fitness")
    coverage = last.get(f"{prefix}coverage", 0)
    return {
        "coverage": coverage,
        "coverage_share": coverage / cells if cells else None,
        **{name: last.get(f"{prefix}{name}") for name in names},
    }


# In words


def _print_run(run: StoredRun, summary: dict[str, Any]) -> None:
    from rich.table import Table

    from qdbench.analysis.warnings_of_runs import about_max_fitness

    terminal.out.print(summary["run"], style="bold", soft_wrap=True)
    words = Table(box=None, show_header=False, pad_edge=False)
    for label, text in (
        ("task", _about_task(summary["task"])),
        ("algorithm", _about_algorithm(summary)),
        ("status", _about_status(summary)),
        ("evaluations", _about_evaluations(summary)),
        ("time", _about_time(summary)),
        *(("ran on", _about_environment(environment)) for environment in summary["environments"]),
    ):
        words.add_row(label, text)
    terminal.out.print(words)
    terminal.out.print()
    table = terminal.table("measured on", "coverage", "QD score", "max fitness", "min fitness")
    own, grid = summary["container"], summary["grid"]
    rows = {
        f"its own container{_about_container(own)}": own,
        f"the task's grid: {shape_text(grid['shape'])}": grid,
    }
    if own == {"kind": "grid", **grid}:
        rows = {f"the task's grid, which is its own container: {shape_text(grid['shape'])}": grid}
    for label, scores in rows.items():
        share = "" if scores["coverage_share"] is None else f" ({scores['coverage_share']:.1%})"
        numbers = (_number(scores[name]) for name in ("qd_score", "max_fitness", "min_fitness"))
        table.add_row(label, f"{scores['coverage']:,}{share}", *numbers)
    terminal.out.print(table)
    low, high = summary["task"]["fitness_bounds"]
    terminal.out.print(
        f"QD score: the sum of (fitness - low) / (high - low), [low, high] = [{low:,g}, {high:,g}]"
    )
    if about_max_fitness(summary["task"]["name"]):
        terminal.out.print(about_max_fitness(summary["task"]["name"]), soft_wrap=True)
    _print_archive(_archive(run), summary)
    terminal.out.print()


def _print_archive(archive: StoredArchive | None, summary: dict[str, Any]) -> None:
    if archive is None:
        terminal.out.print("No archive yet: it is written when the run ends or is stopped.")
        return
    if archive.about["n_evaluations"] != summary["evaluations"]:
        terminal.out.print(f"The archive is that of {archive.about['n_evaluations']:,} evaluations.")
    if len(archive.geometry["descriptor_bounds"]) <= 2 and len(archive):
        terminal.out.print()
        for line in picture(archive):
            terminal.out.print(line, no_wrap=True, crop=False)


def _about_task(task: dict[str, Any]) -> str:
    from qdbench.experiments.plan import as_json

    plain = qdbench.TASKS.get(task["source"])
    words = [f"{task['name']}, version {task['version']}, fingerprint {task['fingerprint']}"]
    for name, value in task["options"].items():
        default = value if plain is None else as_json(getattr(plain, name))
        if value != default:
            words.append(f"{name.replace('_', ' ')} {value} instead of {default}")
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
        return f"running (last checkpoint {summary['updated']}), or killed: then {continued} {kept}"
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
    apart = {"set-up": "setup", "metrics": "metrics", "checkpoints": "checkpoint"}
    others = (f"{label} {summary[f'{part}_seconds']:,.2f} s" for label, part in apart.items())
    rate = summary["evaluations"] / total
    return f"{total:,.2f} s ({rate:,.0f} evaluations/s): {', '.join(shares)}; besides: {', '.join(others)}"


def _about_environment(environment: dict[str, Any]) -> str:
    known = dict(environment)
    cpu, system = known.pop("cpu", "?"), known.pop("system", "?")
    workers, jobs, host = known.pop("workers", "?"), known.pop("jobs", 1), known.pop("host", "")
    versions = ", ".join(f"{name} {version}" for name, version in known.items())
    beside = f", {jobs} runs at a time" if jobs != 1 else ""
    where = f" on {host}" if host else ""
    return f"{cpu}, {system}{where}, {workers} workers{beside}; {versions}"


def _about_container(container: dict[str, Any]) -> str:
    if container["kind"] is None:
        return ""
    words = f": {container['kind']}"
    if "shape" in container:
        return f"{words} {shape_text(container['shape'])}"
    if "threshold" in container:
        words += f", threshold {container['threshold']:.3g}"
    return f"{words}, {container['cells']:,} cells" if container["cells"] else words


def _print_table(summaries: Sequence[dict[str, Any]]) -> None:
    table = terminal.table("run", "status", "evaluations", "seconds", "coverage", "QD score", "max fitness")
    for summary in summaries:
        scores = summary["container"]
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
