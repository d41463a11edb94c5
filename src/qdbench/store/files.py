"""Files that are whole or absent: written beside and renamed over, checked when read, without pickles."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from qdbench.errors import DamagedFile, InvalidInput

FORMAT = 2
"""The version of every file of a run."""


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to an .npz file; the format keeps a CRC-32 of each."""
    _replace(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def read_npz(path: Path, *, without: str = "", only: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file, all but one or only some, or say that it is damaged."""
    with damage_named(path), path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        arrays = {name: file[name] for name in only or file.files if name != without}
    _require_format(path, int(arrays.pop("format", np.array(0))))
    return arrays


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with its format and a checksum over the rest."""
    content = {"format": FORMAT, **value}
    text = json.dumps({**content, "checksum": _checksum(content)}, indent=1)
    _replace(path, lambda file: file.write(f"{text}\n".encode()))


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote, or say that it is damaged."""
    with damage_named(path):
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or content.pop("checksum", None) != _checksum(content):
            raise ValueError("its checksum does not fit")
    _require_format(path, content.pop("format"))
    return content


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    _replace(path, lambda file: file.write(text.encode()))


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
        OSError, ValueError, EOFError, KeyError, SyntaxError, TypeError, BadZipFile, TokenError, zlib.error,
        NotImplementedError, OverflowError, MemoryError, RuntimeError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFile(f"{path} is damaged and was not used: {reason}") from None


def _require_format(path: Path, found: int) -> None:
    if found != FORMAT:
        when = "an earlier" if found < FORMAT else "a later"
        raise DamagedFile(
            f"{path} has format {found}, of {when} qdbench; this one reads format {FORMAT}: it was not used"
        )


def _checksum(content: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def _replace(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
