"""What a run runs on: results are exactly reproducible only where all of it is the same."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import qdbench
from qdbench.store.record import Versions


@cache
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
        blas=_blas(),
        simd=_simd(),
        mujoco_build=_build("mujoco-core"),
    )


def _simd() -> str:
    """Return which instructions NumPy may choose from on this processor."""
    found: Any = np.show_config(mode="dicts")
    extensions = found["SIMD Extensions"]
    return " ".join([*extensions["baseline"], *extensions.get("found", ())])


def _blas() -> str:
    """Return what computes NumPy's matrix products: its kernels differ from processor to processor."""
    libraries = [one for one in ThreadpoolController().info() if one["user_api"] == "blas"]
    ours = [one for one in libraries if "numpy" in one["filepath"]] or libraries
    names = ("internal_api", "version", "architecture")
    return " ".join(str(ours[0].get(name, "?")) for name in names) if ours else "unknown"


def blas_threads() -> int:
    """Return on how many threads an algorithm's matrix products are computed here; it can change a bit."""
    libraries = [one for one in ThreadpoolController().info() if one["user_api"] == "blas"]
    return max((int(one["num_threads"]) for one in libraries), default=1)


def _build(package: str) -> str:
    """Return the platform tags of an installed wheel."""
    try:
        lines = (distribution(package).read_text("WHEEL") or "").splitlines()
    except PackageNotFoundError:
        return "unknown"
    return " ".join(line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: "))


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
