"""What a comparison shows: which metrics, under which labels, and which pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qdbench.analysis.measured import Measured, MeasuredTask
from qdbench.checks import checked_names, shown
from qdbench.errors import InvalidInput, UnknownName
from qdbench.metrics.metric import METRICS


def chosen_metrics(metrics: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the chosen metrics, each once; a text may have several, separated by commas."""
    words = [word.strip() for word in metrics.split(",")] if isinstance(metrics, str) else metrics
    names = checked_names("metrics", [word for word in words if word] if isinstance(metrics, str) else words)
    for name in names:
        if name not in METRICS:
            raise UnknownName("metric", name, METRICS, f"use {', '.join(METRICS)}")
    return tuple(dict.fromkeys(names))


def read_labels(words: Iterable[str]) -> dict[str, str]:
    """Return labels by name. A word is name=Label, or a file with such lines (# begins a comment)."""
    labels: dict[str, str] = {}
    for word in words:
        path = Path(word)
        if "=" in word:
            lines = [word]
        elif path.is_file():
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError:
                raise InvalidInput(f"labels: {word!r} is not a text file with lines name=Label") from None
        else:
            raise InvalidInput(f"labels: {word!r} is neither name=Label nor a file with such lines")
        for line in map(str.strip, lines):
            if not line or line.startswith("#"):
                continue
            name, equals, label = map(str.strip, line.partition("="))
            if not (name and equals and label):
                raise InvalidInput(f"labels: {line!r} is not name=Label")
            labels[name] = label
    return labels


def relabelled(measured: Measured, labels: Mapping[str, str]) -> Measured:
    """Return the measurements with other labels of the variants."""
    if not isinstance(labels, Mapping):
        raise InvalidInput(f"labels are {shown(labels)}; give a dictionary of names and labels")
    known = list(dict.fromkeys(variant.label for _, variant in measured.variants))
    for name, label in labels.items():
        if name not in known:
            raise UnknownName("algorithm", name, known, f"there are runs of {', '.join(known)}")
        if not isinstance(label, str) or not label.strip():
            raise InvalidInput(f"the label of {name} is {shown(label)}; give text")
    new = Counter(labels.get(name, name) for name in known)
    twice = next((label for label, n in new.items() if n > 1), None)
    if twice is not None:
        raise InvalidInput(f"two algorithms have the label {twice!r}; give each its own")
    return replace(measured, tasks=tuple(_relabelled(task, labels) for task in measured.tasks))


def _relabelled(task: MeasuredTask, labels: Mapping[str, str]) -> MeasuredTask:
    def renamed(words: str) -> str:
        name, colon, rest = words.partition(":")
        return f"{labels.get(name, name)}{colon}{rest}"

    variants = tuple(replace(one, label=labels.get(one.label, one.label)) for one in task.variants)
    return replace(task, variants=variants, changed_code=tuple(map(renamed, task.changed_code)))


def chosen_opponent(measured: Measured, labels: Mapping[str, str], against: str) -> str:
    """Return the label of the algorithm that all others are compared with; empty if it is none.

    `against` is a name or a label.
    """
    known = list(dict.fromkeys(variant.label for _, variant in measured.variants))
    if against == "" or against in known:
        return against
    if isinstance(against, str) and labels.get(against) in known:
        return labels[against]
    names = [*known, *labels]
    raise UnknownName("algorithm", against, names, f"there are runs of {', '.join(known)}")
