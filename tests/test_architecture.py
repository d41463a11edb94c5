"""The map in docs/design.md, enforced: who may import whom, and what is public."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import qdbench
from conftest import ROOT

SOURCE = ROOT / "src/qdbench"

# a room, and the rooms it may import from
ARROWS = {
    "errors": set(),
    "checks": {"errors"},
    "sources": {"errors"},
    "terms": {"tasks"},
    "seeds": {"errors", "checks"},
    "policy": {"errors", "checks", "seeds"},
    "robots": {"errors", "checks", "seeds"},
    "tasks": {"errors", "checks", "sources", "spelling", "seeds", "policy", "robots"},
    "simulation": {"errors", "checks", "seeds", "policy", "robots", "tasks"},
    "archives": {"errors", "checks", "seeds", "policy"},
    "algorithms": {"errors", "checks", "sources", "seeds", "policy", "archives"},
    "metrics": {"errors", "checks", "archives"},
    "spelling": set(),
    "store": {"errors", "checks", "seeds", "policy", "archives", "metrics"},
    "experiments": {
        "errors", "checks", "sources", "seeds", "policy", "tasks", "archives", "algorithms", "metrics",
        "store",
    },
    "exports": {
        "errors", "checks", "policy", "robots", "tasks", "archives", "algorithms", "store", "experiments",
    },
    "films": {
        "errors", "seeds", "robots", "tasks", "simulation", "archives", "metrics", "store", "experiments",
    },
    "analysis": {"errors", "checks", "seeds", "archives", "metrics", "store"},
    "reports": {"errors", "checks", "seeds", "spelling", "archives", "metrics", "store", "films", "analysis"},
    "explorer": {
        "errors", "checks", "robots", "tasks", "archives", "metrics", "store", "experiments", "analysis",
    },
    "paper": {
        "errors", "checks", "seeds", "tasks", "algorithms", "metrics", "store", "experiments", "analysis",
        "reports",
    },
}  # fmt: skip
EPISODES = SOURCE / "reports/episodes.py"  # draws a task's robot, and nothing that is stored
ONLY_IN = {
    "matplotlib": {"reports"},
    "rich": {"cli"},
    "typer": {"cli"},
    "threadpoolctl": {"simulation", "experiments"},
    "mujoco": {"robots", "tasks", "simulation", "reports", "exports", "explorer", "cli"},
    "scipy": {"archives", "analysis", "films", "reports"},
    "PIL": {"films"},
    "imageio_ffmpeg": {"films"},
    "filelock": {"store"},
    "ribs": {"algorithms", "exports"},
    "onnx": {"exports"},
    "safetensors": {"exports"},
    "torch": {"exports"},
    "pandas": {"store", "exports"},
    "ray": {"experiments"},
    "viser": {"explorer"},
    "trimesh": {"explorer"},
}
LAZY = {
    ("tasks", "simulation"),  # Task.evaluate reaches the engine when it is called
    ("experiments", "simulation"),  # the type of a replayed episode
    ("store", "exports"),  # a stored archive is handed to other libraries
    ("explorer", "simulation"),  # the type of a replayed episode
    ("store", "tasks"),  # a stored run makes its task again when it is asked for
}


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(tree: ast.AST, top_level: bool) -> set[str]:
    nodes = tree.body if top_level and isinstance(tree, ast.Module) else ast.walk(tree)
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            module = node.module
            names.update(f"qdbench.{alias.name}" for alias in node.names if module == "qdbench")
            if module != "qdbench":
                names.add(module)
    return names


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_arrows_point_one_way(path: Path) -> None:
    room, tree = _room(path), ast.parse(path.read_text())
    assert room in {*ARROWS, "__init__", "__main__", "cli"}, f"{room} is not on the map"
    for scope, top_level in (("anywhere", False), ("at the top", True)):
        rooms = {name.split(".")[1] for name in _imports(tree, top_level) if name.startswith("qdbench.")}
        lazy = {to for origin, to in LAZY if origin == room} if not top_level else set()
        allowed = ARROWS.get(room, rooms)  # the entry points may import everything
        allowed = allowed | ({"tasks", "simulation"} if path == EPISODES else set())
        assert rooms - {room} <= allowed | lazy, f"{path.name} imports {rooms - allowed} {scope}"
    for library, owners in ONLY_IN.items():
        used = any(name.split(".")[0] == library for name in _imports(tree, False))
        assert not used or room in owners, f"{path.name} imports {library}"


def test_the_public_names_are_exactly_the_exported_ones() -> None:
    assert sorted(qdbench.__all__) == sorted(qdbench._HOME)
    for name in qdbench.__all__:
        assert getattr(qdbench, name) is getattr(import_module(qdbench._HOME[name]), name)
    assert set(dir(qdbench)) == {*qdbench.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        qdbench.nothing  # noqa: B018
