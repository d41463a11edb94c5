"""Folders that a killed process left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def remove_left_over(prefix: str, inside: str | None = None) -> None:
    """Remove our folders PREFIX-PID-… whose process is gone."""
    for folder in Path(inside or tempfile.gettempdir()).glob(f"{prefix}*"):
        process = folder.name.removeprefix(prefix).partition("-")[0]
        try:
            if process.isdecimal() and folder.stat().st_uid == os.getuid():
                os.kill(int(process), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # it is somebody else's
            continue
