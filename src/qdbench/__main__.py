"""The `qdbench` command, also as `python -m qdbench`."""

from __future__ import annotations

import gc
import signal

GARBAGE = 20_000
"""Imports make many objects and hardly any garbage: looking for it less often saves a tenth of the start."""


def main() -> None:
    """Run the command line. Ctrl-C while Python is still importing ends it quietly: nothing has begun."""
    gc.set_threshold(GARBAGE)
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from qdbench import cli

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
