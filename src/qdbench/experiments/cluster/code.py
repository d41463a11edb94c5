"""A user's own modules, as Ray ships them: copied into a folder that becomes the nodes' working directory."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

INSTALLED = tuple(
    Path(path).resolve() for key, path in sysconfig.get_paths().items() if key.endswith(("lib", "stdlib"))
)


def own_modules(names: Iterable[str]) -> list[str]:
    """Return the modules of `module:attribute` names that are not installed packages of this machine.

    Modules beside them that were imported too come along: a task may be made of several files.
    """
    tops = {name.partition(":")[0].partition(".")[0] for name in names if ":" in name}
    roots = {place.parent for top in tops - {"qdbench"} if (place := _place(sys.modules.get(top)))}
    found = {
        name
        for name, module in list(sys.modules.items())
        if "." not in name and name not in ("qdbench", "__main__", "__mp_main__")
        if (place := _place(module)) and place.parent in roots
    }
    return sorted(found)


def _place(module: ModuleType | None) -> Path | None:
    """Return the file or the folder of a module, unless it is an installed one or has none."""
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    if any(path.is_relative_to(installed) for installed in INSTALLED):
        return None
    return path.parent if path.stem == "__init__" else path


@contextmanager
def copied(modules: Iterable[str]) -> Iterator[Path | None]:
    """Copy modules into a folder of their own; None if there are none."""
    places = [place for name in modules if (place := _place(sys.modules[name]))]
    if not places:
        yield None
        return
    with TemporaryDirectory(prefix="qdbench-code-") as folder:
        for place in places:
            if place.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(place, Path(folder) / place.name, ignore=ignored)
            else:
                shutil.copy(place, folder)
        yield Path(folder)
