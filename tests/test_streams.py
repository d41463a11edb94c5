"""Whatever happens to what a command prints to, its work is done and nobody sees a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import qdbench
from conftest import Cli
from qdbench.cli import terminal
from qdbench.store.files import plain_text
from running import command, finished, folder, rewrite

FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
RED = "\x1b[31mred\x07\x1b]0;title\x07\u202e"


def shell(cli: Cli, words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell, which can close and redirect what it prints to."""
    line = words.replace("qdbench", f"{sys.executable} -m qdbench")
    return subprocess.run(
        ["bash", "-c", line], cwd=cli.folder, env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True, text=True, timeout=300, encoding="utf-8", errors="replace",
    )  # fmt: skip


RUN = "qdbench run mine:task --seeds 0,1 --evaluations 96 --batch-size 48"


@pytest.mark.parametrize(
    "redirected",
    [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "| true", "2>&1 | true"]
    + [pytest.param(words, marks=FULL) for words in (">/dev/full", "2>/dev/full", ">/dev/full 2>&1")],
)
def test_runs_go_on_when_nothing_can_be_printed(redirected: str, bench: Cli) -> None:
    done = shell(bench, f"set -o pipefail; {RUN} {redirected}")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    for seed in (0, 1):
        path = folder(bench, "map_elites", seed)
        assert qdbench.load(path).status == "finished"
        assert (path / "told.log").read_bytes().startswith(b"QDTOLD")  # nothing was printed into a file
        assert len(qdbench.load(path).metrics["evaluations"]) == 2


def test_nothing_that_reads_ends_in_a_traceback(bench: Cli) -> None:
    assert bench(*command("map_elites", "--corrections", "1", "--reevaluations", "3", n=96)).returncode == 0
    path = folder(bench, "map_elites")
    for words in (f"show {path}", "compare results", "tasks", "--help", f"show {path} --json"):
        for encoding in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}):
            done = shell(bench, f"qdbench {words}", **encoding)
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr
            assert len(done.stdout) > 100
        for redirected in (">&-", "| head -c 1", "2>&-"):
            done = shell(bench, f"qdbench {words} {redirected}")
            assert done.returncode == 0, done.stderr
            assert not done.stderr


@FULL
def test_output_that_is_lost_is_told(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    done = shell(bench, f"qdbench show {folder(bench, 'map_elites')} --json >/dev/full")
    assert done.returncode == 2
    assert done.stderr == "qdbench: could not print all: No space left on device\n"


def test_names_in_files_do_not_steer_the_terminal(bench: Cli) -> None:
    assert bench(*command("map_elites", n=96)).returncode == 0
    path = folder(bench, "map_elites")
    facts = qdbench.load(path).record.facts
    changed = {**vars(facts), "remark_on_max_fitness": RED, "descriptor_names": [RED, RED]}
    rewrite(path / "run.json", facts=changed, reason=RED, status="failed")
    shown = bench("show", str(path))
    compared = bench("compare", "results")
    rewrite(path / "run.json", status=RED)
    refused = bench("show", str(path))
    assert "red" in shown.stdout
    assert "red" in compared.stderr
    assert "red" in refused.stderr
    for done in (shown, compared, refused):
        printed = (done.stdout + done.stderr).replace("\n", "").replace("\N{REPLACEMENT CHARACTER}", "?")
        assert printed.isprintable()


def test_text_loses_what_steers() -> None:
    assert terminal.plain(f"a\n{RED}\tb") == "a\n�[31mred��]0;title��\tb"
    assert plain_text(f"a\n {RED}") == "a [31mred ]0;title"
    assert len(plain_text("x" * 10**6)) < 1100


def test_a_dollar_in_a_name_breaks_no_figure(tmp_path: Path, coarse: None) -> None:
    from qdbench.reports.heatmaps import save_archive

    path = finished(tmp_path)
    facts = vars(qdbench.load(path).record.facts) | {"descriptor_names": ["$\\frac{", "$x$"]}
    rewrite(path / "run.json", facts=facts)
    save_archive(qdbench.load(path), tmp_path / "archive.svg")
    assert "$" in (tmp_path / "archive.svg").read_text()
    assert qdbench.plot(path, out=tmp_path / "figures")
