"""Damage, forge and swap the files of runs, seeded, and see that the law holds.

The law: what was damaged or swapped gives exactly the results of the untouched run, or one sentence that
names a file. What was forged, with checksums that fit, gives some result or such a sentence. Never another
exception, never more than 5 seconds, never more than 200 MB.

    python tests/fuzz_files.py --seconds 1800 --seed 1
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from test_resuming import ThreeMethods

import forging
import qdbench
from forging import Files, Rng, pick
from qdbench import FunctionTask, QdbenchError, stream
from qdbench.algorithms.registry import Factory
from qdbench.experiments.correcting import correct_run
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt
from qdbench.experiments.job import Job, Settings
from qdbench.experiments.one_run import execute
from qdbench.experiments.plan import Plan, plan_for
from qdbench.store.record import CorrectionPlan, Target
from running import TIMES
from toy_runs import toy

MOST_SECONDS, MOST_KILOBYTES = 5.0, 200_000
EVALUATIONS, LATER = 120, 180
NAMES = ("run.json", "metrics.csv", "archive.npz", "corrected.npz", "told.log", "checkpoint.npz")
KINDS = ("damaged", "forged", "swapped")


@dataclass(frozen=True)
class Sample:
    """A run: how to make it, its files, and what comes out of it."""

    plan: Plan
    files: Files
    read: dict[str, Any]
    later: dict[str, Any]
    """Its results after more evaluations."""

    def job(self, path: Path, evaluations: int = EVALUATIONS) -> Job:
        return Job(self.plan, path, Target(evaluations, corrections=CorrectionPlan(2, 3)))


def carry_out(job: Job) -> None:
    """Run; whatever fails is raised."""
    outcome = execute(job, Settings(evaluators=Threads(1)), Interrupt(), lambda news: None)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.status in ("finished", "skipped"), outcome


def everything(path: Path, *, times: bool = True) -> dict[str, Any]:
    """Everything that can be read of a run."""
    run = qdbench.load(path)
    archive, found = run.archive, run.corrections
    arrays = {field.name: getattr(archive.elites, field.name) for field in fields(archive.elites)}
    arrays |= {"cells": archive.cells, **archive.geometry.arrays()}
    arrays |= {name: column for name, column in run.metrics.items() if times or name not in TIMES}
    exact = {name: array.tobytes() for name, array in arrays.items()}
    points = () if found is None else found.points
    exact |= {f"point {p.evaluations}": p.fitness.tobytes() for p in points}
    if found is not None:
        final = found.reevaluations(points[-1])
        exact |= {"again": final.fitness.tobytes() + final.descriptors.tobytes()}
    return {"status": run.status, "determinants": run.record.determinants, **exact}


def measured(path: Path) -> dict[str, Any]:
    """The numbers that tables and figures are made of."""
    ((_, run),) = qdbench.measure(path).runs
    return {name: repr(value) for name, value in run.values.items()}


class Fuzz:
    """Runs to fuzz, made once, and a folder to do it in."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fuzzed"
        self.path.mkdir()
        variants: list[tuple[FunctionTask, str | Factory, dict[str, Any], int]] = [
            (toy("toy_a"), "map_elites", {}, 0),
            (toy("toy_a"), "map_elites", {}, 1),
            (toy("toy_a"), "map_elites", {"iso_sigma": 0.01}, 0),
            (toy("toy_a", version=2), "map_elites", {}, 0),
            (toy("toy_a"), "cvt_map_elites", {}, 0),
            (toy("toy_b"), "map_elites_unstructured", {}, 0),
            (toy("toy_a"), ThreeMethods, {}, 0),
        ]
        plans = [
            plan_for(task, "toy", algorithm, {"batch_size": 20, **options}, seed=seed)
            for task, algorithm, options, seed in variants
        ]
        self.samples = [_sample(plan, folder / str(i)) for i, plan in enumerate(plans)]
        job = self.samples[0].job(folder / "earlier", 60)
        carry_out(job)
        later = self.samples[0].job(folder / "0", LATER).path
        self.foreign = [*(sample.files for sample in self.samples), _files(job.path), _files(later)]
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []

    def case(self, seed: int, number: int) -> None:
        """One case of the law; a violation is noted."""
        rng = stream(seed, "fuzz", number)
        sample, kind = pick(rng, self.samples), KINDS[number % len(KINDS)]
        files = self._changed(sample, kind, rng)
        self._write(files)
        for act in pick(rng, [("read", "measured", "again"), ("read", "later"), ("corrected", "later")]):
            self._try(f"seed {seed} case {number}: {kind}, {act}", kind, act, sample)

    def swap(self, sample: Sample, foreign: Files, act: str) -> None:
        """One case of the law with chosen files of another run."""
        self._write(sample.files | foreign)
        self._try(f"{', '.join(foreign)} swapped, {act}", "swapped", act, sample)

    def _changed(self, sample: Sample, kind: str, rng: Rng) -> Files:
        files = dict(sample.files)
        for _ in range(1 + int(rng.random() < 0.25)):
            name = pick(rng, NAMES)
            if kind == "damaged":
                data = forging.damaged(files.get(name, b""), rng)
                files = {key: value for key, value in {**files, name: data}.items() if value is not None}
            elif kind == "swapped":
                files[name] = pick(rng, self.foreign)[name]
            elif name == "metrics.csv":
                files = forging.forged_rows(sample.files, rng)
            else:
                forge = {"run.json": forging.forged_record, "told.log": forging.forged_log}
                files[name] = forge.get(name, forging.forged_arrays)(sample.files[name], rng)
        return files

    def _write(self, files: Files) -> None:
        for file in self.path.iterdir():
            file.unlink()
        for name, data in files.items():
            (self.path / name).write_bytes(data)

    def _try(self, label: str, kind: str, act: str, sample: Sample) -> None:
        before, start = _kilobytes(), time.perf_counter()
        self.counts["cases"] += 1
        try:
            found, expected = self._act(act, sample)
        except (QdbenchError, OSError) as error:
            self.counts[f"{kind}: refused"] += 1
            sentence = str(error)
            if "\n" in sentence or not sentence.isprintable():
                self._violated(label, f"not one plain line: {sentence!r}")
            if str(self.path) not in sentence:
                self._violated(label, f"no file is named: {sentence!r}")
        except Exception:
            self._violated(label, traceback.format_exc())
        else:
            self.counts[f"{kind}: same" if found == expected else f"{kind}: other"] += 1
            others = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
            if act != "read":  # correction points that were lost are not added, and the command says so
                others = [
                    name for name in others if (name in found and name in expected) or name[:5] != "point"
                ]
            if others and kind != "forged":
                self._violated(label, f"other results: {others}")
        if time.perf_counter() - start > MOST_SECONDS:
            self._violated(label, f"it took {time.perf_counter() - start:.1f} s")
        if _kilobytes() - before > MOST_KILOBYTES:
            self._violated(label, f"it took {(_kilobytes() - before) // 1000} MB")

    def _act(self, act: str, sample: Sample) -> tuple[dict[str, Any], dict[str, Any]]:
        if act == "measured":
            return measured(self.path), sample.read["measured"]
        if act == "corrected":
            correct_run(self.path, 3, Threads(1), Interrupt(), plan=sample.plan)
        elif act != "read":
            carry_out(sample.job(self.path, EVALUATIONS if act == "again" else LATER))
        expected = sample.later if act == "later" else sample.read[act]
        return everything(self.path, times=act in ("read", "corrected")), expected

    def _violated(self, label: str, words: str) -> None:
        self.counts["violations"] += 1
        self.violations.append(f"{label}: {words}")


def _sample(plan: Plan, path: Path) -> Sample:
    sample = Sample(plan, {}, {}, {})
    carry_out(sample.job(path))
    files = _files(path)
    read = {
        "read": everything(path),
        "corrected": everything(path),
        "again": everything(path, times=False),
        "measured": measured(path),
    }
    carry_out(sample.job(path, LATER))
    return Sample(plan, files, read, everything(path, times=False))


def _files(path: Path) -> Files:
    return {name: (path / name).read_bytes() for name in NAMES}


def _kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    chosen = parser.parse_args()
    np.seterr(all="raise", under="ignore")
    os.fsync = lambda fd: None  # no power is cut here
    with tempfile.TemporaryDirectory() as folder:
        fuzz, number, end = Fuzz(Path(folder)), 0, time.monotonic() + chosen.seconds
        if chosen.case is not None:
            fuzz.case(chosen.seed, chosen.case)
            end = 0
        while time.monotonic() < end and len(fuzz.violations) < 30:
            fuzz.case(chosen.seed, number)
            number += 1
    for words in fuzz.violations:
        print(words, file=sys.stderr)
    print(", ".join(f"{name} {count:,}" for name, count in sorted(fuzz.counts.items())))
    return 1 if fuzz.violations else 0


if __name__ == "__main__":
    sys.exit(main())
