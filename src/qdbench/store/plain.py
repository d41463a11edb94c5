"""Records as plain JSON values, and back with every type checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def as_json(value: Any) -> Any:
    """Return a record or value as JSON holds it: dictionaries, lists, and null instead of NaN."""
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def from_json(kind: type[Record], value: Any, where: str = "") -> Record:
    """Return the record that a JSON value describes; ValueError says which entry is wrong."""
    record: Record = _read(kind, value, where or kind.__name__)
    return record


def differences(recorded: Any, wanted: Any, prefix: str = "") -> list[str]:
    """Return in words where two records differ."""
    old, new = as_json(recorded), as_json(wanted)
    found = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += differences(before, after, f"{prefix}{key} ")
        elif before != after:
            found.append(f"{prefix}{key} {before!r}, here {after!r}")
    return found


def as_tuples(value: Any) -> Any:
    """Return the lists that JSON made of tuples as tuples again."""
    return tuple(as_tuples(item) for item in value) if isinstance(value, tuple | list) else value


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_record(kind, value, where)
    if origin in (Union, UnionType):
        if value is None and NoneType in parts:
            return None
        return _read(next(part for part in parts if part is not NoneType), value, where)
    if origin is Literal:
        return _required(value in parts, value, where, " or ".join(map(repr, parts)))
    if origin is tuple:
        _required(isinstance(value, list), value, where, "a list")
        kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
        _required(len(kinds) == len(value), value, where, f"a list of {len(kinds)}")
        return tuple(_read(each, item, where) for each, item in zip(kinds, value, strict=True))
    if origin is dict:
        _required(isinstance(value, dict), value, where, "an object")
        return {key: _read(parts[1], item, f"{where} {key}") for key, item in value.items()}
    if kind is float:
        if value is None:
            return math.nan
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(_required(is_number, value, where, "a number"))
    exact = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    return _required(exact, value, where, {int: "a whole number", str: "text"}.get(kind, kind.__name__))


def _read_record(kind: Any, value: Any, where: str) -> Any:
    _required(isinstance(value, dict), value, where, "an object")
    hints = _types(kind)
    known = {}
    for field in fields(kind):
        if field.name in value:
            known[field.name] = _read(hints[field.name], value[field.name], f"{where} {field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{where} has no {field.name}")
    strange = [name for name in value if name not in hints]
    if strange:
        raise ValueError(f"{where} has an unknown entry {strange[0]!r:.60}")
    return kind(**known)


@cache
def _types(kind: Any) -> dict[str, Any]:
    """The types of a record's fields: evaluated once, as there are thousands of records in the references."""
    return get_type_hints(kind)


def _required(fits: bool, value: Any, where: str, wanted: str) -> Any:
    if not fits:
        raise ValueError(f"{where} is {value!r:.60}, not {wanted}")
    return value
