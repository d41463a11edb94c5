"""The algorithms by name, and the options each takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from qdbench.algorithms.contract import Algorithm, Problem
from qdbench.checks import checked_flag, is_number, is_whole, shown
from qdbench.errors import (
    BrokenAlgorithm,
    InvalidInput,
    QdbenchError,
    UnknownName,
    require_known_options,
)
from qdbench.sources import import_problem, require_trust

ENTRY_POINTS = "qdbench.algorithms"

BUILT_IN = {
    "map_elites": "qdbench.algorithms.map_elites:MapElites",
    "cvt_map_elites": "qdbench.algorithms.map_elites:CvtMapElites",
    "map_elites_unstructured": "qdbench.algorithms.map_elites:MapElitesUnstructured",
    "random_search": "qdbench.algorithms.random_search:RandomSearch",
    "me_random": "qdbench.algorithms.me_random:MeRandom",
    "me_sampling": "qdbench.algorithms.me_sampling:MeSampling",
    "me_weighted": "qdbench.algorithms.me_weighted:MeWeighted",
    "me_delta": "qdbench.algorithms.me_delta:MeDelta",
    "deep_grid": "qdbench.algorithms.deep_grid:DeepGrid",
    "adaptive_sampling": "qdbench.algorithms.adaptive_sampling:AdaptiveSampling",
    "archive_sampling": "qdbench.algorithms.archive_sampling:ArchiveSampling",
    "parallel_adaptive_sampling": "qdbench.algorithms.parallel_adaptive_sampling:ParallelAdaptiveSampling",
    "extract_me": "qdbench.algorithms.extract_me:ExtractMe",
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

    def checked(self, value: Any) -> Any:
        """Return a value given in Python, with NumPy's numbers as Python's own."""
        value = value.item() if isinstance(value, np.generic) else value
        union = get_origin(self.type) in (Union, UnionType)
        if not any(_fits(kind, value) for kind in (get_args(self.type) if union else (self.type,))):
            raise InvalidInput(f"{self.name} is {shown(value)}; give {self.type_name}")
        return value


def _of_extras() -> list[str]:
    return [where for names in IN_EXTRAS.values() for where in names.values()]


def algorithms() -> dict[str, str]:
    """Return the known algorithms: where the class of each name is, as module:attribute."""
    known = dict(BUILT_IN)
    for extra, names in IN_EXTRAS.items():
        if find_spec(extra) is not None:
            known |= names
    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)} | known


def find(name: str, *, trust: bool = True) -> Factory:
    """Return an algorithm's class by its name, or by `package.module:Class`.

    A name from a file is not trusted: then only our own classes and installed plug-ins are imported.
    """
    known = algorithms()
    if not checked_flag("trust", trust) and ":" in name and name not in (*BUILT_IN.values(), *_of_extras()):
        require_trust("the algorithm", name)
    if ":" not in name and name not in known:
        for extra, names in IN_EXTRAS.items():
            if name in names:
                raise InvalidInput(f"{name} needs the extra {extra}: pip install 'qdbench[{extra}]'")
        raise UnknownName("algorithm", name, known, f'"qdbench algorithms" lists all{_if_a_module(name)}')
    module_name, _, attribute = known.get(name, name).partition(":")
    try:
        factory = getattr(import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        problem = import_problem(error, module_name)
        if module_name.endswith(".py") and isinstance(error, ModuleNotFoundError):
            problem = f"write {_module_of(module_name)}:{attribute}, without .py"
        raise InvalidInput(f"cannot load the algorithm {name!r}: {problem}") from error
    if not callable(factory):
        raise InvalidInput(f"{name!r} is not a class but {type(factory).__name__}; see docs/algorithms.md")
    found: Factory = factory
    return found


def _if_a_module(name: str) -> str:
    """Return how to name a class of one's own, if this is the name of its module or file; else nothing."""
    module = _module_of(name)
    try:
        is_one = name.endswith(".py") or (name.isidentifier() and find_spec(name) is not None)
    except ValueError:  # a module without a specification, such as __main__
        is_one = False
    return f"; for a class of your own in {name} write {module}:Class" if is_one else ""


def _module_of(name: str) -> str:
    """Return what Python calls the module in a file; one outside of this folder by its own name alone."""
    parts = Path(name.removesuffix(".py")).parts
    below = parts[-1:] if Path(name).is_absolute() or ".." in parts else parts
    return ".".join(below)


def options(factory: Factory) -> dict[str, Option]:
    """Return the keywords of an algorithm's constructor that have a default."""
    target: Any = factory
    parameters = _parameters(factory)
    try:
        hints = get_type_hints(target.__init__ if isinstance(factory, type) else target)
    except Exception:  # a hint that only a type checker can see, or no function of its own
        hints = {}
    return {
        p.name: Option(p.name, hints.get(p.name, type(p.default)), p.default)
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and p.default is not p.empty
    }


def misplaced_options(factory: Factory) -> list[str]:
    """Return the keywords that stand before the `*` of a constructor: nobody can set them."""
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in _parameters(factory)[2:] if p.kind in by_place and p.default is not p.empty]


def keyword_only(names: Sequence[str]) -> str:
    """Say where options belong."""
    constructor = f"__init__(self, problem, seed, *, {', '.join(f'{name}=...' for name in names)})"
    return f"options are keyword-only; put {', '.join(names)} after *: {constructor}"


def require_options(given: Collection[str], factory: Factory, who: str) -> None:
    """Refuse options that an algorithm does not take, or that stand before the `*` of its constructor."""
    for name in given:
        refuse_misplaced(name, factory, who)
    require_known_options(given, options(factory), who)


def refuse_misplaced(option: str, factory: Factory, who: str) -> None:
    """Refuse an option that stands before the `*`."""
    if option in misplaced_options(factory):
        raise InvalidInput(f"{who} does not take {option!r}: {keyword_only([option])}")


def _parameters(factory: Factory) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(factory).parameters.values())
    except (ValueError, TypeError):
        raise InvalidInput(
            f"{shown(factory)} has no signature Class(problem, seed, *, option=default)"
        ) from None


def configure(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return all options of an algorithm: the defaults, with these settings applied."""
    factory = find(name)
    require_options(settings, factory, name)
    known = options(factory)
    return {
        key: option.parse(settings[key]) if key in settings else option.default
        for key, option in known.items()
    }


def checked_options(factory: Factory, chosen: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Return options given in Python, their types checked as on the command line."""
    require_options(chosen, factory, who)
    known = options(factory)
    return {name: known[name].checked(value) for name, value in chosen.items()}


def name_of(algorithm: str | Factory) -> str:
    """Return what an algorithm is called: a class is module:Class."""
    if isinstance(algorithm, str):
        return algorithm
    if not callable(algorithm):
        raise InvalidInput(f"{shown(algorithm)} is no algorithm; give a name, module:Class, or a class")
    where = getattr(algorithm, "__module__", "?")
    return f"{where}:{getattr(algorithm, '__qualname__', type(algorithm).__name__)}"


def build(algorithm: str | Factory, problem: Problem, seed: int, chosen: Mapping[str, Any]) -> Algorithm:
    """Return a fresh algorithm; `algorithm` is a name, module:Class, or a class."""
    factory = find(algorithm) if isinstance(algorithm, str) else algorithm
    try:
        made = factory(problem, seed, **chosen)
    except (QdbenchError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # whatever a user's constructor does
        raise BrokenAlgorithm(
            f"{name_of(algorithm)} cannot be built: {type(error).__name__}: {error}; the constructor is "
            "Class(problem, seed, *, option=default)"
        ) from error
    if not isinstance(made, Algorithm):
        raise BrokenAlgorithm(
            f"{name_of(algorithm)} lacks one of ask, tell and collection; it needs all three"
        )
    return made


def _fits(kind: Any, value: Any) -> bool:
    """Return whether a value is of the type that an option says it has; types we do not know fit all."""
    if get_origin(kind) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if kind is int:
        return is_whole(value)
    if kind is float:
        return is_number(value)
    return isinstance(value, kind) if kind in (bool, str, NoneType) else True


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
