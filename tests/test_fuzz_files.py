"""The law of `fuzz_files` over more than 1,200 seeded cases; `make fuzz` has as many as you have time for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

import forging
from fuzz_files import KINDS, Fuzz
from qdbench import stream
from qdbench.store.files import read_json

AT_LEAST = 1250


def test_no_file_breaks_the_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # no power is cut here
    fuzz, number = Fuzz(tmp_path), 0
    while fuzz.counts["cases"] < AT_LEAST:
        fuzz.case(0, number)
        number += 1
    assert fuzz.violations == []
    for kind in KINDS:  # it can do both
        assert fuzz.counts[f"{kind}: refused"] > 100
        assert fuzz.counts[f"{kind}: same"] > 100


def test_the_harness_notices_violations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that cannot be broken would be no test."""
    fuzz = Fuzz(tmp_path)
    for broken, word in ((_crash, "ZeroDivisionError"), (_refuse, "not one plain line"), (_other, "other")):
        monkeypatch.setattr("fuzz_files.everything", broken)
        fuzz.case(0, 0)
        assert any(word in violation for violation in fuzz.violations)
        fuzz.violations.clear()
    monkeypatch.setattr("fuzz_files.MOST_SECONDS", 0.0)
    fuzz.case(0, 0)
    assert any("it took" in violation for violation in fuzz.violations)


def _crash(path: Path, *, times: bool = True) -> None:
    raise ZeroDivisionError


def _refuse(path: Path, *, times: bool = True) -> None:
    raise OSError(f"{path} has\ntwo lines")


def _other(path: Path, *, times: bool = True) -> dict[str, str]:
    return {"status": "other"}


def test_forged_files_are_well_made(tmp_path: Path) -> None:
    """Their checksums fit, or nothing behind them would be looked at."""
    fuzz, rng, noticed = Fuzz(tmp_path), stream(0, "forging"), []
    files, path = fuzz.samples[0].files, tmp_path / "run.json"
    for _ in range(100):
        path.write_bytes(forging.forged_record(files["run.json"], rng))
        with suppress(OSError):
            noticed.append(read_json(path) != read_json(tmp_path / "0/run.json"))
    assert sum(noticed) > 45
    assert forging.forged_log(files["told.log"], rng) != files["told.log"]
    assert forging.forged_arrays(files["archive.npz"], rng)[:2] == b"PK"
