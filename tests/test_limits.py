"""Forged files take no more memory than a small multiple of their size; what cannot be is refused."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdbench
from forging import sealed, stored
from qdbench import DamagedFile, InvalidInput
from qdbench.store.files import MOST_JSON, parsed_json, read_json, write_json
from qdbench.store.npz import read_npz
from running import finished, rewrite

MEGABYTES = 100
READ = """
import resource, sys
import qdbench
from qdbench import QdbenchError
import qdbench.store.loading, qdbench.analysis.measured

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for read in (lambda run: run.metrics, lambda run: run.archive, lambda run: run.archive.elites,
             lambda run: run.corrections, lambda run: qdbench.measure(run.path)):
    try:
        read(qdbench.load(sys.argv[1]))
    except QdbenchError as error:
        print(error)
print(f"{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024} MB")
"""


def bomb(arrays: dict[str, Any]) -> bytes:
    """A file of 2 MB that unpacks to 2 GB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in (one for one in arrays.items() if one[0] != "solutions"):
            with file.open(f"{name}.npy", "w") as member:
                np.save(member, array)
        with file.open("solutions.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(
                member, {"descr": "<f4", "fortran_order": False, "shape": (2**19, 2**10)}
            )
            for _ in range(2**11):
                member.write(bytes(2**20))
    return buffer.getvalue()


def overlapping(arrays: dict[str, Any]) -> bytes:
    """Many names for one member of 2 MB."""
    data = stored({"x000": np.zeros(2**18)})
    directory = data.rindex(b"PK\x01\x02")
    entry = data[directory : data.rindex(b"PK\x05\x06")]
    entries = b"".join(entry.replace(b"x000", b"x%03d" % i) for i in range(500))
    end = bytearray(data[data.rindex(b"PK\x05\x06") :])
    end[8:12] = (500).to_bytes(2, "little") * 2
    end[12:16] = len(entries).to_bytes(4, "little")
    return data[:directory] + entries + bytes(end)


def many_members(arrays: dict[str, Any]) -> bytes:
    return stored({f"x{i}": np.zeros(()) for i in range(8000)})


def promises(arrays: dict[str, Any]) -> bytes:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    return stored(arrays, {"fitness": b"\x93NUMPY\x01\x00\x76\x00" + header + bytes(2 * 10**6)})


def many_cells(arrays: dict[str, Any]) -> bytes:
    return stored({**arrays, "shape": np.array([2**12, 2**12]), "x": np.zeros(2**18)})


def all_elites(arrays: dict[str, Any]) -> bytes:
    return stored({**arrays, "fitness": np.zeros((2**40, 0))})


@pytest.mark.parametrize("forge", [bomb, overlapping, many_members, promises, many_cells, all_elites])
def test_a_small_archive_takes_little_memory(
    forge: Callable[[dict[str, Any]], bytes], tmp_path: Path
) -> None:
    path = finished(tmp_path)
    with np.load(path / "archive.npz") as file:
        arrays = {name: file[name] for name in file.files}
    data = forge(arrays)
    assert len(data) < 3 * 10**6
    (path / "archive.npz").write_bytes(data)
    assert_little_memory(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * 650_000 + "0]",
        "[" * 10**6,
        "1" * 10**6,
        '{"a":' * 300_000,
        "[" + "1e9," * 500_000 + "0]",
    ],
    ids=["lists", "deep", "digits", "objects", "numbers"],
)
def test_a_small_record_takes_little_memory(text: str, tmp_path: Path) -> None:
    path = finished(tmp_path)
    (path / "run.json").write_text(text)
    assert_little_memory(path)


@pytest.mark.parametrize("row", ["\n", "1" + ",1" * 18 + "\n", ",\n"])
def test_small_metrics_take_little_memory(row: str, tmp_path: Path) -> None:
    path = finished(tmp_path)
    header = (path / "metrics.csv").read_text().splitlines()[0]
    data = (f"{header}\n" + row * (2 * 10**6 // len(row))).encode()
    (path / "metrics.csv").write_bytes(data)
    rewrite(path / "run.json", metrics={"n_bytes": len(data), "crc32": zlib.crc32(data)})
    assert_little_memory(path)


def assert_little_memory(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *sentences, memory = done.stdout.splitlines()
    assert int(memory.split()[0]) < MEGABYTES
    assert sentences


def test_large_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as file:
        file.truncate(10**11)  # takes no room on the disk
    with pytest.raises(DamagedFile, match=f"more than {MOST_JSON:,} bytes"):
        read_json(path)
    with pytest.raises(InvalidInput, match="give shorter options"):
        write_json(path, {"options": "x" * MOST_JSON})
    with pytest.raises(DamagedFile):
        read_npz(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[NaN]", "NaN"),
        ("[-Infinity]", "-Infinity"),
        ("[1e999]", "beyond all limits"),
        (f"[{2**64}]", "64 bits"),
        ("[" * 40 + "]" * 40, "nested more than 32 deep"),
        ('["\\\\ud800"]'.replace("\\\\", "\\"), "surrogates"),
    ],
)
def test_strange_json_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parsed_json(text)


@pytest.mark.parametrize("found", ["2", None, [2], True, 2.0, {}])
def test_a_format_that_is_no_number(found: Any, tmp_path: Path) -> None:
    path = finished(tmp_path)
    content = json.loads((path / "run.json").read_text())
    content.pop("checksum")
    (path / "run.json").write_bytes(sealed({**content, "format": found}))
    with pytest.raises(DamagedFile, match=r"its format is .*, not a number"):
        qdbench.load(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": -1}, "seed"),
        ({"environments": []}, "ran nowhere"),
        ({"begun": "today"}, "isoformat"),
        ({"metrics": {"n_bytes": -1, "crc32": 0}}, "metrics.csv"),
        ({"target": {"evaluations": 0}}, "evaluations"),
    ],
)  # fmt: skip
def test_impossible_records_are_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = finished(tmp_path)
    rewrite(path / "run.json", **changes)
    with pytest.raises(DamagedFile, match=words):
        qdbench.load(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cells": [0, 12]}, "cells"),
        ({"cells": [2**13, 2**13]}, "cells"),
        ({"cells": [12]}, "cells"),
        ({"descriptor_bounds": [[1, -1], [0, 1]]}, "no bounds"),
        ({"fitness_bounds": [0, 0]}, "no bounds"),
        ({"n_parameters": 0}, "no parameters"),
        ({"name": "../x"}, "cannot name a folder"),
        ({"options": {"episode_length": -3}}, "episode_length"),
    ],
)
def test_impossible_tasks_are_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = finished(tmp_path)
    rewrite(path / "run.json", task=read_json(path / "run.json")["task"] | changes)
    with pytest.raises(DamagedFile, match=words):
        qdbench.load(path)
