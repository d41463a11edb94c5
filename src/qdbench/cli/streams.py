"""Where the command line prints to: whatever happens there, the work goes on."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, TextIO


class Patient:
    """A stream whose failures end nothing: what cannot be written is lost, and `lost` says why."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, if that is possible."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError) as error:
            return self._give_up(error, len(text))

    def flush(self) -> None:
        """Pass on what was written, if that is possible."""
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._give_up(error, 0)

    def _give_up(self, error: Exception, n: int) -> int:
        """Write to nowhere from now on; a reader that went away (as `head` does) is no loss."""
        if getattr(error, "errno", None) != errno.EPIPE:
            self.lost = self.lost or getattr(error, "strerror", None) or str(error)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())  # also for what is still waiting to be written
        except (OSError, ValueError):
            self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        finally:
            os.close(nowhere)
        return n


def make_patient() -> Patient:
    """Make stdout and stderr patient, and able to print every character somehow; return stdout."""
    for number in range(3):  # else the next file that is opened becomes stdout
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)
    return sys.stdout


def _patient(stream: TextIO | None) -> Patient:
    if isinstance(stream, Patient):
        return stream
    if stream is None or stream.closed:
        return Patient(open(os.devnull, "w", encoding="utf-8"))
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return Patient(stream)
