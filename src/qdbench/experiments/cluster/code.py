"""A user's own modules, as Ray ships them: copied into a folder that becomes the nodes' working directory."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from qdbench.experiments.cluster.left_over import remove_left_over

FOLDER = "qdbench-code-"
"""How the folders with copies begin; the number of the process follows."""
INSTALLED = ("site-packages", "dist-packages")
STANDARD = tuple(Path(sysconfig.get_path(key)).resolve() for key in ("stdlib", "platstdlib"))


def own_modules() -> list[Path]:
    """Return the files and folders of all modules that were imported, but are not installed packages."""
    found = {
        place
        for name, module in list(sys.modules.items())
        if "." not in name and name not in ("qdbench", "__main__", "__mp_main__")
        if (place := _place(module)) is not None
    }
    return sorted(found)


def _place(module: ModuleType | None) -> Path | None:
    """Return the file or the folder of a module, unless it is an installed one or has none."""
    file = getattr(module, "__file__", None)
    if file is None:  # built in, or a package without __init__.py
        file = next(iter(getattr(module, "__path__", ())), None)
    if file is None:
        return None
    path = Path(file).resolve()
    if set(INSTALLED) & set(path.parts) or any(path.is_relative_to(standard) for standard in STANDARD):
        return None
    place = path.parent if path.stem == "__init__" else path
    return place if place.exists() else None


@contextmanager
def copied(places: list[Path]) -> Iterator[Path | None]:
    """Copy modules into a folder of their own; None if there are none."""
    if not places:
        yield None
        return
    remove_left_over(FOLDER)
    with TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-") as folder:
        for place in places:
            if place.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(place, Path(folder) / place.name, ignore=ignored)
            else:
                shutil.copy(place, folder)
        yield Path(folder)
