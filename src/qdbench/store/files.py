"""Files that are whole or absent: written beside and renamed over, checked when read, without pickles."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np

from qdbench.errors import DamagedFile, InvalidInput

FORMAT = 3
"""The version of every file of a run."""


MOST_JSON = 2**22  # bytes; what is read takes some thirty times as much memory
MOST_NESTING = 32
MOST_WORDS = 1000  # characters of an error's sentence that come from a file


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to an .npz file; the format keeps a CRC-32 of each."""
    _replace(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def write_json(path: Path, value: Mapping[str, Any], *, version: int = FORMAT, compact: bool = False) -> None:
    """Write a JSON object with its format and a checksum over the rest.

    If `compact`, it has one line for every entry, and for every item of an entry that is a list.
    """
    content = {"format": version, **value}
    whole = {**content, "checksum": _checksum(content)}
    text = _in_lines(whole) if compact else json.dumps(whole, indent=1)
    if len(text) > MOST_JSON:
        raise InvalidInput(
            f"{path} would have {len(text):,} bytes, more than {MOST_JSON:,}: give shorter options"
        )
    _replace(path, lambda file: file.write(f"{text}\n".encode()))


def _in_lines(content: Mapping[str, Any]) -> str:
    def short(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    def entry(value: Any) -> str:
        return "[\n  " + ",\n  ".join(map(short, value)) + "]" if isinstance(value, list) else short(value)

    return "{\n " + ",\n ".join(f"{short(key)}: {entry(value)}" for key, value in content.items()) + "}"


def read_json(path: Path, *, version: int = FORMAT) -> dict[str, Any]:
    """Read what `write_json` wrote, or say that it is damaged."""
    with damage_named(path):
        with open_to_read(path) as file:
            content = parsed_json(file.read(MOST_JSON + 1))
        if not isinstance(content, dict) or content.pop("checksum", None) != _checksum(content):
            raise ValueError("its checksum does not fit")
        found = content.pop("format", None)
    require_format(path, found, version)
    return content


def parsed_json(text: bytes | str) -> Any:
    """Return a JSON value; ValueError where it is larger, deeper or stranger than anything we write."""
    if len(text) > MOST_JSON:
        raise ValueError(f"it has more than {MOST_JSON:,} bytes")
    value = json.loads(text, parse_constant=_no_constant)
    level = [value]
    for _ in range(MOST_NESTING):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    raise ValueError(f"it is nested more than {MOST_NESTING} deep")


def _inside(value: Any) -> Iterable[Any]:
    """Return what a JSON value holds, or refuse it."""
    if isinstance(value, str):
        value.encode()  # no half of a character
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it has a number beyond all limits")
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError("it has a whole number of more than 64 bits")
    elif isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else ()


def _no_constant(name: str) -> Any:
    raise ValueError(f"it has {name}, which is no JSON")


@contextmanager
def open_to_read(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, and nothing else: a pipe or a device of that name could be read forever."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") if stat.S_ISREG(os.fstat(handle).st_mode) else _not_a_file(handle) as file:
        yield file


def _not_a_file(handle: int) -> IO[bytes]:
    os.close(handle)
    raise ValueError("it is not a file")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    _replace(path, lambda file: file.write(content))


def require_folder(path: Path) -> None:
    """Say so before the work, not after it, when results could not be written into a folder."""
    there = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InvalidInput(
            f"cannot write into {str(path)!r}: {str(there)!r} is not a folder, or it is read-only"
        )


def require_writable(path: Path, *endings: str) -> None:
    """Say so before the work, not after it, when a result could not be written to a file."""
    if path.suffix not in endings:
        raise InvalidInput(f"cannot write {str(path)!r}: its name must end in {' or '.join(endings)}")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(
            f"cannot write {str(path)!r}: its folder is missing or read-only, or it is a folder"
        )


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into one sentence."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (
        OSError, ValueError, EOFError, LookupError, SyntaxError, TypeError, AttributeError, BadZipFile,
        TokenError, zlib.error, struct.error, ArithmeticError, MemoryError, RuntimeError,
    ) as error:  # fmt: skip
        reason = plain_text(str(error)) or type(error).__name__
        raise DamagedFile(f"{path} is damaged and was not used: {reason}") from None


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def plain_text(text: str) -> str:
    """Return text from a file as one line without characters that steer a terminal, and not too long."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= MOST_WORDS else f"{line[:MOST_WORDS]} ..."


def require_format(path: Path, found: object, wanted: int = FORMAT) -> None:
    """Refuse a file of an earlier or later format."""
    if isinstance(found, bool) or not isinstance(found, int):
        raise DamagedFile(f"{path} is damaged and was not used: its format is {found!r:.60}, not a number")
    if found != wanted:
        when = "an earlier" if found < wanted else "a later"
        raise DamagedFile(
            f"{path} has format {found}, of {when} qdbench; this one reads format {wanted}: it was not used"
        )


def _checksum(content: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def _sync_folder(path: Path) -> None:
    """Make sure that a new name in a folder survives a power cut, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems cannot
            os.fsync(folder)
    finally:
        os.close(folder)


def _replace(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)  # it may be a link to somewhere else
    try:
        with beside.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)
