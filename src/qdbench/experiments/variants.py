"""Algorithms with their options, as the command line names them: for one, for all, or as a sweep.

`iso_sigma=0.01` goes to every algorithm that has such an option, `map_elites.iso_sigma=0.01` to one, and
`iso_sigma=0.005,0.01` makes one variant for each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from qdbench.algorithms.registry import configure, find, options, refuse_misplaced
from qdbench.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class Setting:
    """One OPTION=VALUE of the command line."""

    algorithm: str
    """Whom it is for; empty: for all that have such an option."""
    option: str
    values: tuple[str, ...]
    """More than one make a sweep."""


@dataclass(frozen=True)
class AlgorithmVariant:
    """An algorithm with all its options, and the name that tells it apart."""

    algorithm: str
    name: str
    options: dict[str, Any]
    given: dict[str, str]
    """The options that were set, as they were written."""


def read_settings(texts: Sequence[str]) -> list[Setting]:
    """Return what OPTION=VALUE texts mean; a contradiction is refused."""
    found: dict[tuple[str, str], Setting] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        algorithm, _, option = key.rpartition(".")
        if not option or not equals:
            raise InvalidInput(f"--set {text!r} is not OPTION=VALUE")
        setting = Setting(algorithm, option, tuple(value.split(",")))
        before = found.setdefault((algorithm, option), setting)
        if before != setting:
            raise InvalidInput(f"{key} is set twice, to {','.join(before.values)!r} and to {value!r}")
    return list(found.values())


def variants(
    algorithms: Sequence[str], settings: Sequence[Setting], name: str = ""
) -> list[AlgorithmVariant]:
    """Return every algorithm with its options; a sweep gives one variant per combination of values."""
    known = {algorithm: options(find(algorithm)) for algorithm in algorithms}
    for setting in settings:
        _require_taker(setting, known)
    found = []
    for algorithm, own in known.items():
        mine = {s.option: s for s in settings if not s.algorithm and s.option in own}
        mine |= {s.option: s for s in settings if s.algorithm == algorithm}  # what is for one alone counts
        for values in product(*(setting.values for setting in mine.values())):
            given = dict(zip(mine, values, strict=True))
            swept = [f"{key}-{value}" for key, value in given.items() if len(mine[key].values) > 1]
            label = "-".join(filter(None, [name, *swept]))
            found.append(AlgorithmVariant(algorithm, label, configure(algorithm, given), given))
    return found


def _require_taker(setting: Setting, known: dict[str, dict[str, Any]]) -> None:
    """Refuse a setting that none of the algorithms has."""
    if setting.algorithm and setting.algorithm not in known:
        cure = f"--set names an algorithm that is not in this command; it has {', '.join(known)}"
        raise UnknownName("algorithm", setting.algorithm, known, cure)
    asked = {setting.algorithm: known[setting.algorithm]} if setting.algorithm else known
    everything = {option for own in asked.values() for option in own}
    if setting.option not in everything:
        for who in asked:
            refuse_misplaced(setting.option, find(who), who)
        takes = "; ".join(f"{who} takes {', '.join(own) or 'none'}" for who, own in asked.items())
        raise UnknownName("option", setting.option, everything, takes)
