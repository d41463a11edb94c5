"""Arguments, checked once where they enter: each function returns the plain value, or says what is wrong.

NumPy's integers, floats and booleans pass wherever Python's do, and come back as Python's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdbench.errors import InvalidInput, UnknownName

Bounds = tuple[tuple[float, float], ...]
LARGEST = 1e100
"""Evaluations with larger numbers are invalid: sums and squares of all others are finite."""
BoundsLike = Sequence[Sequence[float]] | NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

MOST_BYTES = 2**46
"""More than any machine has; of far larger arrays NumPy complains with a ValueError."""


def shown(value: object) -> str:
    """Return a value as a message shows it: on one line, and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


# Numbers


def is_whole(value: object) -> bool:
    """Return whether a value is an integer, of Python's or NumPy's; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether a value is an integer or a float, of Python's or NumPy's."""
    return isinstance(value, float | np.floating) or is_whole(value)


def checked_count(name: str, value: int, low: int = 1) -> int:
    """Return a whole number of at least `low`, or say that it is not one."""
    if not is_whole(value) or not low <= value < 2**31:
        raise InvalidInput(f"{name} is {shown(value)}; give a whole number from {low} to 2**31 - 1")
    return int(value)


def checked_number(name: str, value: float, low: float = -math.inf) -> float:
    """Return a finite number of at least `low` as a float, or say that it is not one."""
    number = _as_float(value)
    if not low <= number < math.inf or number == -math.inf:
        at_least = "" if low == -math.inf else f" of {low:g} or more"
        raise InvalidInput(f"{name} is {shown(value)}; give a finite number{at_least}")
    return number


def checked_interval(name: str, value: Sequence[float], *, finite: bool = True) -> tuple[float, float]:
    """Return (low, high) as floats in ascending order, or say that they are not."""
    ends = list(value) if _is_list(value) else []
    if len(ends) != 2 or not all(map(is_number, ends)):
        raise InvalidInput(f"{name}: {shown(value)} is not an interval; give (low, high)")
    low, high = map(_as_float, ends)
    if not low < high or (finite and not -math.inf < low < high < math.inf):
        raise InvalidInput(f"{name}: ({low}, {high}) must be {'finite and ' if finite else ''}ascending")
    return low, high


def checked_workers(workers: int | None) -> int:
    """Return the number of worker threads: as many as this process has cores, unless given."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return checked_count("workers", workers)


def _as_float(value: object) -> float:
    """Return a number as a float: NaN for what is none, infinity for an integer that no float reaches."""
    if not is_number(value):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]  # a number it is
    except OverflowError:
        return math.inf


# Words, switches and functions


def checked_text(name: str, value: str) -> str:
    """Return a text, or say that it is none."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {shown(value)}; give text")
    return str(value)


def checked_name(name: str, value: str) -> str:
    """Return a text that is not empty, or say that it is none."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} is {shown(value)}; give a name")
    return str(value)


def checked_flag(name: str, value: bool) -> bool:
    """Return True or False, or say that it is neither."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} is {shown(value)}; give True or False")
    return bool(value)


def checked_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Say so when a word is none of the known ones."""
    if not isinstance(value, str) or value not in choices:
        raise UnknownName(name, value, choices, f"use {' or '.join(map(repr, choices))}")


def checked_function(name: str, value: Function) -> Function:
    """Return something that can be called, or say that it cannot."""
    if not callable(value):
        raise InvalidInput(f"{name} is {shown(value)}; give a function")
    return value


def checked_generator(value: np.random.Generator) -> np.random.Generator:
    """Return a random generator, or say that it is none."""
    if not isinstance(value, np.random.Generator):
        raise InvalidInput(
            f"the generator is {shown(value)}; give a NumPy generator, as qdbench.stream(seed) returns"
        )
    return value


# Lists


def checked_list(name: str, value: Any, cure: str) -> list[Any]:
    """Return the items of a list, a tuple, an array or another iterable; a text or a dictionary is none."""
    if not _is_list(value):
        raise InvalidInput(f"{name} is {shown(value)}; {cure}")
    return list(value)


def checked_names(name: str, value: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; one name alone is not a list of names."""
    return tuple(checked_name(name, one) for one in checked_list(name, value, "give a list of names"))


def checked_geometry(bounds: BoundsLike, cells: Sequence[int]) -> tuple[Bounds, tuple[int, ...]]:
    """Return an archive's bounds and cells as tuples, or say what is wrong with them."""
    pairs = checked_list("descriptor_bounds", bounds, "give (low, high) for every dimension")
    box = tuple(checked_interval("descriptor_bounds", interval) for interval in pairs)
    numbers = checked_list("cells", cells, "give one number for every dimension, like (30, 30)")
    counts = tuple(checked_count("cells", n) for n in numbers)
    if len(counts) != len(box) or not counts:
        raise InvalidInput(
            f"cells {counts} are for {len(counts)} dimensions, descriptor_bounds for {len(box)}; give "
            "the same number"
        )
    if math.prod(counts) >= 2**62:
        raise InvalidInput(f"cells {counts} are {math.prod(counts):.0e} cells; give fewer than 2**62")
    return box, counts


def _is_list(value: object) -> bool:
    return np.iterable(value) and not isinstance(value, str | bytes | bytearray | Mapping | Set)


# Results


def usable(fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which evaluations are valid, (n,): with numbers that are not NaN and not too large."""
    fits: NDArray[np.bool_] = np.abs(fitness) <= LARGEST
    return fits & (np.abs(descriptors) <= LARGEST).all(axis=-1)


# Paths


def checked_path(name: str, value: str | os.PathLike[str]) -> Path:
    """Return a path, or say that it cannot be one."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInput(f"{name} is {shown(value)}; give a path, as text or a pathlib.Path")
    return Path(value)


def checked_paths(name: str, value: Any) -> list[Path]:
    """Return one path or several as a list of them; none at all is refused."""
    if isinstance(value, str | os.PathLike):
        return [checked_path(name, value)]
    paths = [checked_path(name, one) for one in checked_list(name, value, "give a folder or several")]
    if not paths:
        raise InvalidInput(f"{name} are {shown(value)}; give a folder or several")
    return paths


# Arrays


def checked_column(name: str, value: ArrayLike, dtype: type[np.generic], ndim: int) -> NDArray[Any]:
    """Return an array of this type and so many axes: as it is, or converted where no number can change."""
    _refuse_masked(name, value)
    array = value if isinstance(value, np.ndarray) else _as_array(name, value)
    if array.dtype != dtype:
        if array.size and not _converts(array, dtype):
            raise InvalidInput(f"{name} is an array of {array.dtype}; give {np.dtype(dtype)}")
        array = array.astype(dtype)
    if array.ndim != ndim:
        raise InvalidInput(f"{name} has the shape {array.shape}; give {ndim} axes, one row per solution")
    return array


def _refuse_masked(name: str, value: object) -> None:
    if isinstance(value, np.ma.MaskedArray):  # a masked value is no number
        raise InvalidInput(f"{name} is a masked array; give one without a mask, such as .filled(…) returns")


def _as_array(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} is {shown(value)}; give an array") from None


def _converts(array: NDArray[Any], dtype: type[np.generic]) -> bool:
    """Return whether numbers stay the same in another type; of integers the sign has to be looked at."""
    if np.can_cast(array.dtype, dtype, "safe"):
        return True
    to_unsigned = np.issubdtype(dtype, np.unsignedinteger) and array.dtype.kind == "i"
    return bool(to_unsigned and array.min() >= 0)


def require_equal_lengths(what: str, columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays that have not one row for every solution."""
    if len(set(map(len, columns.values()))) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise InvalidInput(f"the arrays of {what} differ in length: {lengths}; give one row per solution")


def require_room(n: int, n_parameters: int) -> None:
    """Refuse a batch of solutions that no machine can hold."""
    if 8 * n * n_parameters > MOST_BYTES:
        raise InvalidInput(f"{n:,} solutions of {n_parameters:,} parameters are too many for any memory")


def checked_solutions(task: str, solutions: NDArray[np.float32], n_parameters: int) -> NDArray[np.float32]:
    """Return the solutions, or say what is wrong with them."""
    _refuse_masked("solutions", solutions)
    if not isinstance(solutions, np.ndarray) or solutions.dtype != np.float32:
        found = solutions.dtype if isinstance(solutions, np.ndarray) else type(solutions).__name__
        raise InvalidInput(f"solutions must be a float32 NumPy array, not {found}; use .astype(np.float32)")
    if solutions.ndim != 2 or solutions.shape[1] != n_parameters:
        raise InvalidInput(
            f"solutions have shape {solutions.shape}; {task} takes (n, {n_parameters}), one row per solution"
        )
    for start in range(0, len(solutions), 256):  # in chunks, because the mask of a large batch is large, too
        bad = ~np.isfinite(solutions[start : start + 256]).all(axis=1)
        if bad.any():
            row = start + int(bad.argmax())
            raise InvalidInput(f"solution {row} has NaN or infinity; every parameter must be finite")
    return solutions


def checked_seeds(seeds: ArrayLike, n: int) -> NDArray[np.uint64]:
    """Return the seeds as an array, or say what is wrong with them."""
    _refuse_masked("seeds", seeds)
    try:
        array = seeds if isinstance(seeds, np.ndarray) else np.array(seeds, object)
    except (TypeError, ValueError):
        raise InvalidInput(f"seeds are {shown(seeds)}; give integers from 0 to 2**64 - 1") from None
    if array.shape != (n,):
        raise InvalidInput(
            f"seeds have shape {array.shape} for {n} solutions; give one seed per solution, shape ({n},)"
        )
    # Python integers are objects: NumPy alone would make floats of large ones
    integers = all(map(is_whole, array)) if array.dtype == object else array.dtype.kind in "iu"
    if not integers:
        raise InvalidInput(
            f"seeds are not all integers: {shown(array.tolist()[:5])}; give integers from 0 to 2**64 - 1"
        )
    if n and not 0 <= int(array.min()) <= int(array.max()) < 2**64:
        raise InvalidInput(
            f"seeds reach from {array.min()} to {array.max()}; give integers from 0 to 2**64 - 1"
        )
    return array.astype(np.uint64)
