"""Arrays out of an .npz file, every size checked against the file before anything is allocated.

Our files hold arrays as they are, so that what is read never takes more memory than the file has bytes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from qdbench.checks import LARGEST
from qdbench.store.files import FORMAT, damage_named, open_to_read, parsed_json, require_format

Arrays = Mapping[str, NDArray[Any]]

LOCAL_HEADER = 30  # bytes of a member before its name
CHUNK = 2**20
MOST_MEMBERS = 20_000
ENDING = ".npy"


def read_npz(
    path: Path, *, without: str = "", only: Collection[str] = (), version: int = FORMAT
) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file, all but one or only some, or say that it is damaged."""
    with damage_named(path), open_to_read(path) as raw, ZipFile(raw) as file:
        members = _members(file, os.fstat(raw.fileno()).st_size)
        missing = [name for name in (*only, "format") if name not in members]
        if missing:
            raise ValueError(f"it has no {missing[0]!r}")
        wanted = {*only, "format"} if only else members.keys() - {without}
        arrays = {name: _read(file, info) for name, info in members.items() if name in wanted}
        found = whole_number(arrays, "format")
    require_format(path, found, version)
    del arrays["format"]
    return arrays


def require_intact(path: Path) -> None:
    """Compare the checksums of all arrays, without keeping any of them."""
    with damage_named(path), open_to_read(path) as raw, ZipFile(raw) as file:
        for info in _members(file, os.fstat(raw.fileno()).st_size).values():
            with file.open(info) as member:
                while member.read(CHUNK):
                    pass


def _members(file: ZipFile, size: int) -> dict[str, ZipInfo]:
    """Return the members by the names of their arrays; ValueError where they cannot be what we wrote."""
    infos = sorted(file.infolist(), key=lambda info: info.header_offset)
    if len(infos) > MOST_MEMBERS:
        raise ValueError(f"it has more than {MOST_MEMBERS:,} members")
    end = 0
    for info in infos:
        if info.compress_type != ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
            raise ValueError("a member is compressed or encrypted")
        if info.header_offset < end:
            raise ValueError("its members overlap")
        end = info.header_offset + LOCAL_HEADER + len(info.orig_filename) + info.file_size
    if end > size:
        raise ValueError("it is cut short")
    members = {info.filename.removesuffix(ENDING): info for info in infos if info.filename.endswith(ENDING)}
    if len(members) != len(infos):
        raise ValueError("it has a name twice, or a member that is no array")
    return members


def _read(file: ZipFile, info: ZipInfo) -> NDArray[Any]:
    """Read one array; its header must promise exactly the bytes that are there."""
    with file.open(info) as member:
        shape, by_columns, dtype = _header(member)
        count = 1
        for length in shape:
            if isinstance(length, bool) or not 0 <= length < 2**62:
                raise ValueError("an array has an impossible shape")
            count *= length
        if dtype.hasobject or not dtype.itemsize or count * dtype.itemsize != info.file_size - member.tell():
            raise ValueError("an array is not of the size that its header says")
        array = np.empty(count, dtype)
        data = array.view(np.uint8)
        for start in range(0, len(data), CHUNK):
            data[start : start + CHUNK] = np.frombuffer(member.read(CHUNK), np.uint8)
        if member.read(1):  # at the end the checksum is compared
            raise ValueError("an array is longer than its header says")
    return array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of types that NumPy is about to forget
        version = npy.read_magic(member)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"an array has the unknown version {version}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(member)
    return shape, by_columns, dtype


def whole_number(arrays: Arrays, name: str, low: int = 0, high: int = 2**63 - 1) -> int:
    """Return the whole number of that name; ValueError where it is none, or out of range."""
    array = array_of(arrays, name, np.int64, ())
    if not low <= array <= high:
        raise ValueError(f"{name} is {array}, not from {low} to {high:,}")
    return int(array)


def text(arrays: Arrays, name: str) -> str:
    """Return the text of that name."""
    array = _named(arrays, name)
    if array.dtype.kind != "U" or array.shape:
        raise ValueError(f"{name} is not text")
    return str(array)


def json_value(arrays: Arrays, name: str) -> Any:
    """Return the JSON value of that name."""
    return parsed_json(text(arrays, name))


def array_of(
    arrays: Arrays, name: str, dtype: type[np.generic], shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return the array of that name if it has this type and shape; None stands for any length."""
    array = _named(arrays, name)
    same = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not same:
        wanted = f"{np.dtype(dtype)} ({', '.join('any' if n is None else str(n) for n in shape)})"
        raise ValueError(f"{name} is {array.dtype.str} {array.shape}, not {wanted}")
    return array


def finite(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return an array of numbers that can be computed with."""
    array = array_of(arrays, name, np.float64, shape)
    if not (np.abs(array) <= LARGEST).all():
        raise ValueError(f"{name} has numbers that are not finite, or too large")
    return array


def finite_or_nan(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return an array of such numbers and NaN, which stands for invalid."""
    array = array_of(arrays, name, np.float64, shape)
    if (np.abs(array) > LARGEST).any():
        raise ValueError(f"{name} has numbers that are too large")
    return array


def within(
    arrays: Arrays, name: str, shape: tuple[int | None, ...], low: int, high: int
) -> NDArray[np.int64]:
    """Return an array of whole numbers from `low` to below `high`."""
    array = array_of(arrays, name, np.int64, shape)
    if array.size and not (array.min() >= low and array.max() < high):
        raise ValueError(f"{name} has numbers outside {low} to {high - 1:,}")
    return array


def unsigned(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of unsigned whole numbers of any width, as `compact` makes them."""
    array = _named(arrays, name)
    if array.dtype.kind != "u" or array.shape != shape:
        raise ValueError(f"{name} is {array.dtype.str} {array.shape}, not unsigned {shape}")
    return array


def compact(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers of 0 or more as the narrowest unsigned integers that hold them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def require_names(arrays: Arrays, known: Collection[str]) -> None:
    """Refuse arrays that nobody wrote."""
    strange = [name for name in arrays if name not in known]
    if strange:
        raise ValueError(f"it has an unknown array {strange[0]!r:.60}")


def _named(arrays: Arrays, name: str) -> NDArray[Any]:
    if name not in arrays:
        raise ValueError(f"it has no {name!r}")
    return arrays[name]
