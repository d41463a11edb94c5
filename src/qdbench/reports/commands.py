"""The commands that repeat everything that a report shows, including the runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from qdbench.analysis.measured import Measured, MeasuredRun
from qdbench.seeds import seeds_text
from qdbench.spelling import spelled
from qdbench.store.folder import results_of
from qdbench.store.record import Environment, RunRecord

MACHINE = ("cpu", "system", "workers", "jobs")


def commands(measured: Measured, path: Path, title: str = "") -> list[str]:
    """Return commands to copy into a shell. Lines that begin with # are remarks."""
    runs = [one for _, one in measured.runs]
    seeds: dict[tuple[str, ...], list[int]] = {}
    for one in runs:
        seeds.setdefault(tuple(_run_words(one)), []).append(one.seed)
    lines = [f"# {versions(where)}" for one in runs for where in one.run.record.environments]
    lines += [remark for one in runs for remark in _remarks(one.run.record)]
    lines += [shlex.join([*words, "--seeds", seeds_text(which)]) for words, which in seeds.items()]
    for one in runs:
        if one.corrected and not one.run.record.target.corrections.points:
            n = str(one.corrected.n_reevaluations)
            lines.append(shlex.join(["qdbench", "correct", str(one.run.path.parent), "--reevaluations", n]))
    what = [*map(str, measured.results), *(word for task in measured.only for word in ("--task", task))]
    what += [] if measured.interval == "fixed" else ["--interval", measured.interval]
    what += [] if measured.on == "own" else ["--on", measured.on]
    titled = ["--title", title] if title else []
    lines += [shlex.join(["qdbench", name, *what]) for name in ("compare", "plot")]
    lines.append(shlex.join(["qdbench", "report", *what, *titled, "--out", str(path)]))
    return list(dict.fromkeys(" ".join(line.splitlines()) for line in lines))


def _run_words(one: MeasuredRun) -> Iterable[str]:
    """Yield the command of a run without its seed. It has all options, because defaults may change."""
    record, where = one.run.record, one.run.record.environments[-1]
    corrections = record.target.corrections
    options = {
        "--name": record.name,
        "--evaluations": record.target.evaluations,
        "--seconds": record.target.seconds,
        "--corrections": corrections.points,
        "--reevaluations": corrections.reevaluations if corrections.points else None,
        "--workers": where.workers,
        "--jobs": where.jobs if where.jobs > 1 else None,
        "--out": results_of(one.run.path),
    }
    yield from ("qdbench", "run", record.task.source, "--algorithm", record.algorithm.name)
    for name in record.facts.changed_options:
        yield from ("--task-set", f"{name}={spelled(record.task.options[name])}")
    for name, value in record.algorithm.options.items():
        yield from ("--set", f"{name}={value}")
    for name, value in options.items():
        if value:
            yield from (name, str(value))


def _remarks(record: RunRecord) -> Iterable[str]:
    if not record.facts.made_by_name:
        yield f"# {record.task.name} was made in Python; the command line cannot make it"


def versions(where: Environment) -> str:
    """Return the host and all versions of an environment as text."""
    known: Mapping[str, Any] = {field.name: getattr(where, field.name) for field in fields(where)}
    told = {name: value for name, value in known.items() if name not in (*MACHINE, "packages")}
    return ", ".join(f"{name} {value}" for name, value in (told | where.packages).items())
