"""The command line: it reads arguments and prints results, nothing else.

Heavy imports are inside the commands, so that `--help` and `tasks` are fast.
"""

from __future__ import annotations

import sys
from inspect import getdoc

import typer
from typer.models import CommandInfo

from qdbench.cli import (  # noqa: F401
    algorithms,
    bench,
    check,
    compare,
    correct,
    explore,
    export,
    film,
    leaderboard,
    plot,
    references,
    report,
    reproduce,
    run,
    show,
    simulate,
    suite,
    terminal,
    verify,
)
from qdbench.cli.app import app
from qdbench.cli.streams import make_patient
from qdbench.errors import QdbenchError

PANELS = {
    "How good is my algorithm?": ("tasks", "algorithms", "check", "suite", "leaderboard", "references"),
    "Runs": ("run", "resume", "correct", "verify", "reproduce"),
    "Results": ("show", "compare", "plot", "report", "explore", "rollout", "film", "export"),
    "Simulation": ("evaluate", "bench"),
}
"""All commands, as `qdbench --help` shows them."""
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
RESULTS_ARE_FILES = ("run", "resume", "correct", "reproduce", "suite")
"""Commands that have done their work, whatever they could print."""


def _sort_commands() -> None:
    """Give every command its panel and its place in the help."""
    panels = {command: panel for panel, commands in PANELS.items() for command in commands}
    order = list(panels)
    for command in app.registered_commands:
        command.rich_help_panel = panels[_name(command)]
        paragraphs = (getdoc(command.callback) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)  # wrapped by the terminal
    for group in app.registered_groups:
        group.rich_help_panel = panels["references"]
    app.registered_commands.sort(key=lambda command: order.index(_name(command)))


def _name(command: CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")


_sort_commands()


def main() -> None:
    """Run the command line. Bad input gives one line on stderr and exit code 2."""
    out = make_patient()
    if "" not in sys.path:
        sys.path.insert(0, "")  # users keep their own tasks in the current folder
    try:
        code = app(standalone_mode=False)
    except (QdbenchError, typer.TyperException, OSError, MemoryError) as error:
        message = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        if isinstance(error, MemoryError):
            message = f"not enough memory: {message}"
        if message:  # empty if help was shown instead
            print(f"qdbench: {terminal.plain(' '.join(message.split()))}", file=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)
    except typer.Abort:
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:  # what Typer returns after Ctrl-C
        print("qdbench: interrupted", file=sys.stderr)
    out.flush()
    if out.lost:
        print(f"qdbench: could not print all: {out.lost}", file=sys.stderr)
        if not code and sys.argv[1:2] and sys.argv[1] not in RESULTS_ARE_FILES:
            code = EXIT_BAD_INPUT
    sys.exit(code if isinstance(code, int) else 0)
