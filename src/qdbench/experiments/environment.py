"""What a run ran on: results are the same bits only where all of it is the same."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import qdbench

PACKAGES = ("mujoco", "numpy", "scipy")


def environment() -> dict[str, Any]:
    """Return versions and CPU, as far as they can change a bit of a result."""
    return {
        "qdbench": qdbench.__version__,
        **{package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
