"""Task options: read from the command line, found in a recorded run, compared with the defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdbench.checks import checked_flag
from qdbench.errors import InvalidInput, QdbenchError, require_known_options
from qdbench.sources import require_trust
from qdbench.spelling import BETWEEN, RANGE, spelled
from qdbench.tasks.contract import Task, task_options
from qdbench.tasks.reach import Follows
from qdbench.tasks.registry import NAMED, make

OURS = "qdbench.tasks."


def remade(source: str, options: Mapping[str, Any], *, trust: bool = False) -> Task:
    """Return the task of a recorded run: the one of that name, with the options it had.

    A file may name any module: only ours are imported, unless the caller trusts the file.
    """
    if ":" not in source and source not in NAMED:
        raise InvalidInput(
            f"the task {source!r} was made in Python, so its name alone does not lead to it; use a task that "
            "can be named module:attribute, or give the task itself"
        )
    if not checked_flag("trust", trust) and source not in NAMED and not source.startswith(OURS):
        require_trust("the task", source)
    task = make(source)
    wanted = {name: _as_tuples(value) for name, value in options.items()}
    changed: dict[str, Any] = {}
    for follows in (False, True):  # the others first: bounds and cells may follow from them
        own = task_options(task)
        different = (name for name, value in wanted.items() if name not in own or own[name] != value)
        changed |= {name: wanted[name] for name in different if isinstance(own.get(name), Follows) == follows}
        task = make(source, **changed) if changed else task
    return task


def changed_options(task: Task, source: str) -> dict[str, Any]:
    """Return the defaults of the options that were changed; `source` names the task with the defaults.

    Bounds and cells that follow from the episode length were not changed.
    """
    values = task_options(task)
    try:
        own = task_options(make(source))
        others = {name: value for name, value in values.items() if not isinstance(own.get(name), Follows)}
        followed = task_options(remade(source, others, trust=True))
    except QdbenchError:  # a task made in Python has no such name
        return {}
    usual = own | {name: value for name, value in followed.items() if name not in others}
    return {name: own[name] for name, value in values.items() if usual.get(name, value) != value}


def made_by_name(task: Task, source: str) -> bool:
    """Return whether that name and the task's options make the same task."""
    try:
        return remade(source, task_options(task), trust=True).fingerprint == task.fingerprint
    except QdbenchError:
        return False


def read_options(task: Task, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the options from NAME=VALUE texts, with checked types."""
    own = task_options(task)
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise InvalidInput(f"{pair!r} is not NAME=VALUE; {task.name} takes {', '.join(own) or 'none'}")
        require_known_options([name], own, task.name)
        if name in found:
            raise InvalidInput(f"{name} is given twice; give it once")
        found[name] = _read(name, text, own[name])
    return found


def _read(name: str, text: str, like: Any) -> Any:
    """Return the value of a text, with the type of the current value."""
    try:
        if isinstance(like, tuple):
            return _read_bounds(text, len(like)) if _has_pairs(like) else _read_sizes(text)
        if isinstance(like, bool):
            return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]
        return type(like)(text)
    except (ValueError, KeyError):
        raise InvalidInput(f"{name} is {text!r}; write it like {name}={spelled(like)}") from None


def _has_pairs(value: tuple[Any, ...]) -> bool:
    return bool(value) and isinstance(value[0], tuple)


def _read_sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(BETWEEN)) if text else ()


def _read_bounds(text: str, dimensions: int) -> tuple[tuple[float, float], ...]:
    """Return (low, high) for every dimension; a single pair is for all."""
    ends = [part.split(RANGE) for part in text.split(BETWEEN)]
    pairs = tuple((float(low), float(high)) for low, high in ends)
    return pairs * dimensions if len(pairs) == 1 else pairs


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, tuple | list) else value
