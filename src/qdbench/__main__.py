"""The `qdbench` command, also as `python -m qdbench`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. Ctrl-C while Python is still importing ends it quietly: nothing has begun."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from qdbench import cli

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
