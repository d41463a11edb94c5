"""The algorithms by name, and the options each takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.errors import BrokenAlgorithm, InvalidInput, UnknownName, require_known_options

ENTRY_POINTS = "qdbench.algorithms"

BUILT_IN = {
    "map_elites": "qdbench.algorithms.map_elites:MapElites",
    "cvt_map_elites": "qdbench.algorithms.map_elites:CvtMapElites",
    "map_elites_unstructured": "qdbench.algorithms.map_elites:MapElitesUnstructured",
    "random_search": "qdbench.algorithms.random_search:RandomSearch",
}
IN_EXTRAS = {
    "ribs": {
        "ribs_map_elites": "qdbench.algorithms.ribs:RibsMapElites",
        "cma_me": "qdbench.algorithms.ribs:CmaMe",
        "cma_mae": "qdbench.algorithms.ribs:CmaMae",
    },
}
"""Algorithms that need an extra of this package, by its name, which is also the library's."""

Factory = Callable[..., Algorithm]
Value = int | float | bool | str | None


@dataclass(frozen=True)
class Option:
    """A keyword of an algorithm's constructor."""

    name: str
    type: Any
    default: Any

    @property
    def type_name(self) -> str:
        """The type as a user would say it."""
        origin, choices = get_origin(self.type), get_args(self.type)
        if origin is Literal:
            return " or ".join(map(str, choices))
        if origin not in (None, Union, UnionType):
            return f"{self.type} (which --set cannot give)"
        names = [getattr(kind, "__name__", str(kind)) for kind in choices or (self.type,)]
        return " or ".join("none" if name == "NoneType" else name for name in names)

    def parse(self, text: str) -> Value:
        """Return the value that a text on the command line means."""
        union = get_origin(self.type) in (Union, UnionType)
        for kind in get_args(self.type) if union else (self.type,):
            try:
                return _parsed(kind, text)
            except ValueError:
                continue
        raise InvalidInput(f"{self.name} is {text!r}; give {self.type_name}")


def algorithms() -> dict[str, str]:
    """Return the known algorithms: where the class of each name is, as module:attribute."""
    known = dict(BUILT_IN)
    for extra, names in IN_EXTRAS.items():
        if find_spec(extra) is not None:
            known |= names
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)} | known


def find(name: str) -> Factory:
    """Return an algorithm's class by its name, or by `package.module:Class`."""
    known = algorithms()
    if ":" not in name and name not in known:
        for extra, names in IN_EXTRAS.items():
            if name in names:
                raise InvalidInput(f"{name} needs the extra {extra}: pip install 'qdbench[{extra}]'")
        raise UnknownName("algorithm", name, known, '"qdbench algorithms" lists all')
    module_name, _, attribute = known.get(name, name).partition(":")
    try:
        factory = getattr(import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        kind = type(error).__name__
        raise InvalidInput(
            f"cannot load the algorithm {name!r}: {kind}: {error}; is its folder on PYTHONPATH?"
        ) from error
    if not callable(factory):
        raise InvalidInput(f"{name!r} is not a class but {type(factory).__name__}; see docs/algorithms.md")
    found: Factory = factory
    return found


def options(factory: Factory) -> dict[str, Option]:
    """Return the keywords of an algorithm's constructor that have a default."""
    target: Any = factory
    try:
        hints = get_type_hints(target.__init__ if isinstance(factory, type) else target)
        parameters = inspect.signature(factory).parameters.values()
    except (ValueError, TypeError):
        raise InvalidInput(f"{factory!r} has no signature Class(problem, seed, *, option=default)") from None
    except Exception:  # a hint that only a type checker can see
        hints = {}
        parameters = inspect.signature(factory).parameters.values()
    return {
        p.name: Option(p.name, hints.get(p.name, type(p.default)), p.default)
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and p.default is not p.empty
    }


def configure(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return all options of an algorithm: the defaults, with these settings applied."""
    known = options(find(name))
    require_known_options(settings, known, name)
    return {
        key: option.parse(settings[key]) if key in settings else option.default
        for key, option in known.items()
    }


def name_of(algorithm: str | Factory) -> str:
    """Return what an algorithm is called: a class is module:Class."""
    if isinstance(algorithm, str):
        return algorithm
    if not callable(algorithm):
        raise InvalidInput(f"{algorithm!r} is no algorithm; give a name, module:Class, or a class")
    where = getattr(algorithm, "__module__", "?")
    return f"{where}:{getattr(algorithm, '__qualname__', type(algorithm).__name__)}"


def build(algorithm: str | Factory, problem: Problem, seed: int, chosen: Mapping[str, Any]) -> Algorithm:
    """Return a fresh algorithm; `algorithm` is a name, module:Class, or a class."""
    factory = find(algorithm) if isinstance(algorithm, str) else algorithm
    made = factory(problem, seed, **chosen)
    if not isinstance(made, Algorithm):
        raise BrokenAlgorithm(
            f"{name_of(algorithm)} lacks one of ask, tell, collection, state and restore; it needs all five"
        )
    return made


def _parsed(kind: Any, text: str) -> Value:
    if get_origin(kind) is Literal:
        for choice in get_args(kind):
            if str(choice) == text:
                value: Value = choice
                return value
    elif kind is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() in words:
            return words[text.lower()]
    elif kind is NoneType:
        if text.lower() == "none":
            return None
    elif kind is int:
        return int(text)
    elif kind is float:
        number = float(text)
        if number - number == 0:  # neither NaN nor infinite
            return number
    elif kind is str:
        return text
    raise ValueError(text)
