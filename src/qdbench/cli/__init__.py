"""The command line: arguments in, tables and files out, nothing else.

Heavy imports happen inside the commands, so that `--help` and `tasks` answer at once.
"""

from __future__ import annotations

import sys

import typer

from qdbench.cli import compare, correct, experiment, plot, report, reproduce, show, simulate  # noqa: F401
from qdbench.cli.app import app
from qdbench.errors import QdbenchError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # a user's own task lies in the current folder
    try:
        code = app(standalone_mode=False)
    except (QdbenchError, typer.TyperException, OSError, MemoryError) as error:
        message = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        if isinstance(error, MemoryError):
            message = f"not enough memory: {message}"
        if message:  # empty where help was shown instead
            print(f"qdbench: {' '.join(message.split())}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    except typer.Abort:
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:  # what Typer makes of Ctrl-C
        print("qdbench: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)
