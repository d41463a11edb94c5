"""compare.tex, read back: a table of a paper."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from qdbench.analysis.compare import Comparison, compare
from qdbench.analysis.paper_table import escaped, latex
from toy_runs import ALGORITHMS, TASKS, entries, make, make_all, toy

CELL = re.compile(
    r"(\\textbf\{)?([\d.,]+)(\\%)?\}? \{\\scriptsize \[([\d.,]+)(?:\\%)?, ([\d.,]+)(?:\\%)?\]\}"
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_all(tmp_path_factory.mktemp("paper") / "results")


@pytest.fixture(scope="module")
def comparison(results: Path) -> Comparison:
    return compare(results, metrics="corrected_qd_score,qd_score_loss,fitness_deviation")


def rows(text: str) -> list[list[str]]:
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    lines = [line.removesuffix(r" \\") for line in body.splitlines() if line.endswith(r"\\")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", line)] for line in lines]


def test_tasks_are_rows_and_algorithms_columns(comparison: Comparison) -> None:
    head, *body = rows(latex(comparison))
    assert head == ["Task", *map(escaped, ALGORITHMS)]
    titles = [row[0] for row in body if len(row) == 1]
    assert titles == [
        rf"\multicolumn{{4}}{{l}}{{\emph{{{title}}}}}"
        for title in ("corrected QD score", "QD score loss", "deviation of re-evaluated fitness")
    ]
    numbers = iter(row for row in body if len(row) > 1)
    for metric, better in (("corrected_qd_score", max), ("qd_score_loss", min), ("fitness_deviation", None)):
        for task, row in zip(TASKS, numbers, strict=False):
            assert row[0] == escaped(task)
            found = [entries(comparison, task=task, variant=a, metric=metric)[0].estimate for a in ALGORITHMS]
            best = None if better is None else better(one.iqm for one in found)
            for cell, one in zip(row[1:], found, strict=True):
                match = CELL.fullmatch(cell)
                assert match, cell
                bold, iqm, percent, low, high = match.groups()
                scale = 100 if percent else 1
                assert [float(x) for x in (iqm, low, high)] == pytest.approx(
                    [scale * one.iqm, scale * one.low, scale * one.high], rel=6e-3, abs=0.06 if percent else 0
                )
                assert bool(bold) == (one.iqm == best)


def test_by_default_it_shows_the_primary_metric(results: Path, tmp_path: Path) -> None:
    text = latex(compare(results))
    assert r"\emph{corrected QD score}" in text
    assert text.count(r"\emph{") == 1
    make(tmp_path / "one", toy("toy_a"), corrections=0)
    assert r"\emph{QD score}" in latex(compare(tmp_path))


def test_it_is_balanced_and_says_how_to_read_it(comparison: Comparison) -> None:
    text = latex(comparison)
    comments = [line for line in text.splitlines() if line.startswith("%")]
    assert text.startswith("% Written by `qdbench compare`. Needs \\usepackage{booktabs}.")
    assert any("Bold: the best of a row by the interquartile mean" in line for line in comments)
    assert "% toy_a: 4 replications; QD score on the fixed interval [-2, 12]" in comments
    table = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    bare = re.sub(r"\\[\\{}]", "", table)
    assert bare.count("{") == bare.count("}")
    layout = re.findall(r"\\begin\{tabular\}\{(l r*|lr*)\}", table)
    assert layout == ["lrrr"]
    assert all(len(row) in (1, 4) for row in rows(text))
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"):
        assert rule in table


def test_what_is_missing_or_negative(comparison: Comparison) -> None:
    first, second = comparison.tasks
    gone = replace(first, entries=tuple(e for e in first.entries if e.variant != "map_elites"))
    (entry, *others) = second.entries
    below = replace(entry, estimate=replace(entry.estimate, iqm=-0.5, low=-1.0))
    text = latex(replace(comparison, tasks=(gone, replace(second, entries=(below, *others)))))
    assert rows(text)[2][2] == "--"
    assert rows(text)[3][1].startswith(r"$-$0.500 {\scriptsize [$-$1.00, ")


def test_comments_stay_comments(comparison: Comparison) -> None:
    task = replace(comparison.tasks[0], task="evil\n\\input{x}")
    text = latex(replace(comparison, tasks=(task,), aggregate=None))
    assert "\n\\input" not in text
    assert r"evil \textbackslash{}input\{x\} &" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
def test_latex_takes_it(results: Path, tmp_path: Path) -> None:
    compare(results, labels={"map_elites": r"50%&$#{x}~^\_<>|\""}, out=tmp_path)
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{compare}\\end{document}"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=tmp_path, check=False
    )
    assert done.returncode == 0
