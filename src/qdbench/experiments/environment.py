"""What a run runs on: results are exactly reproducible only where all of it is the same."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import qdbench
from qdbench.store.record import Versions


def versions() -> Versions:
    """Return versions and CPU, as far as they can change a bit of a result."""
    return Versions(
        qdbench=qdbench.__version__,
        mujoco=version("mujoco"),
        numpy=version("numpy"),
        scipy=version("scipy"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
