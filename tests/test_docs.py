"""Every command and every Python snippet in the docs is run."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

import qdbench
from conftest import ROOT, Cli
from docs.plugins import tutorial_notebook
from qdbench.paper.findings import (
    ALIKE,
    FEWEST_TO_BE_ALIKE,
    HIGH_LOSS,
    MORE_TIME,
    NOT_FAR_BELOW,
    PAPERS_LOSS,
)
from qdbench.paper.protocol import CONTENDERS, OFFICIAL, SCALES, VERSION, Scale
from qdbench.paper.references import findings_on_references, usable_references
from qdbench.paper.suite_scales import SUITE_SCALES

TUTORIAL = ROOT / "docs/tutorial.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def prepare(page: Path, folder: Path) -> None:
    """Give a page's snippets the files that the page itself shows."""
    if page.name == "own-tasks.md":
        (folder / "runner.xml").write_text(blocks(page, "xml")[0])
        (folder / "my_tasks.py").write_text(blocks(page, "python")[0])
        (folder / "my_robots.py").write_text(blocks(page, "python")[1])
    if page.name == "runs.md":  # stand-ins for packages that qdbench does not need
        (folder / "torch/utils").mkdir(parents=True)
        for package in ("torch", "torch/utils"):  # so that they come before PyTorch, if it is installed
            (folder / package / "__init__.py").touch()
        (folder / "torch/utils/tensorboard.py").write_text(WRITER)
        (folder / "wandb.py").write_text(WANDB)
    if page.name == "exporting.md":
        copytree(ROOT / "examples", folder / "examples")
        run = qdbench.run(qdbench.make("hopper_uni", episode_length=50), evaluations=64, out=folder / "made")
        for to, ending in (("npz", "npz"), ("onnx", "onnx"), ("torch", "safetensors")):
            qdbench.export(run, to=to, out=folder / f"policy.{ending}")  # type: ignore[arg-type]
    if page.name == "algorithms.md":
        (folder / "my_algorithms.py").write_text(blocks(page, "python")[0])
        copytree(ROOT / "examples", folder / "examples")


WRITER = """
class SummaryWriter:
    def __init__(self, folder): self.rows = []
    def add_scalar(self, tag: str, value: float, step: float) -> None:
        assert isinstance(tag, str) and isinstance(value, float) and step >= 1
        self.rows.append(tag)
        print(tag)
"""
WANDB = """
def init(project, mode): assert mode == "offline"
def log(numbers):
    assert all(isinstance(name, str) and isinstance(x, float) for name, x in numbers.items())
    print(numbers["evaluations"])
"""
RUN_ALONE = [page for page in PAGES if page != TUTORIAL]  # the tutorial's blocks run in order, as a notebook
SNIPPETS = [(page, code) for page in RUN_ALONE for code in blocks(page, "python")]
SESSIONS = [(page, block) for page in RUN_ALONE for block in blocks(page, "console")]


@pytest.mark.parametrize(("page", "code"), SNIPPETS, ids=lambda x: x.name if isinstance(x, Path) else "")
def test_snippets_run(page: Path, code: str, tmp_path: Path) -> None:
    if page.name == "exporting.md" and "import torch" in code:
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'qdbench[torch]'")
    prepare(page, tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if "on_iteration=" in code:
        assert len(done.stdout.splitlines()) >= 8  # 2000 evaluations are 8 iterations


@pytest.mark.parametrize(("page", "session"), SESSIONS, ids=lambda x: x.name if isinstance(x, Path) else "")
def test_commands_run(page: Path, session: str, cli: Cli, tmp_path: Path) -> None:
    """The commands of a block, one after the other in one folder."""
    prepare(page, tmp_path)
    for line in session.splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        if program == "python":
            subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
        else:
            assert program == "qdbench"
            done = ended(cli, *arguments) if arguments[0] == "explore" else cli(*arguments)
            assert done.returncode == 0, done.stderr


def ended(cli: Cli, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start a command that serves a page, and end it by Ctrl-C."""
    process = cli.start(*arguments)
    assert process.stdout is not None
    while (line := process.stdout.readline()) and "Ctrl-C" not in line:
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def test_the_table_of_tasks_is_the_code_s() -> None:
    text = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    for task in qdbench.TASKS.values():
        low, high = task.fitness_bounds
        row = next(line for line in text.splitlines() if line.startswith(f"| {task.name} "))
        assert f"| {task.policy.sizes[0]} | {task.policy.sizes[-1]} | {task.n_parameters:,} |" in row
        assert f"| [{low:,.10g}, {high:,.10g}] |" in row
        if task.descriptor.name == "final position":
            assert task.reach is not None
            assert f"±{task.reach.speed * 1000 * task.robot.control_step:g} m" in row
        robot = next(
            line
            for line in text.splitlines()
            if line.startswith(f"| {task.robot.name} | {task.robot.control_step} ")
        )
        assert robot.split(" | ")[2] == str(task.robot.physics_steps)
        assert robot.endswith(f"| {task.reset_noise} |")


def test_the_protocol_and_the_criteria_are_the_code_s() -> None:
    text = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    for name, scale in SCALES.items():
        more, fewer = len(scale.seeds(CONTENDERS[0])), scale.replications
        assert [len(scale.seeds(contender)) for contender in CONTENDERS] == [more, more, fewer, fewer]
        numbers = (fewer, more, scale.evaluations, scale.episode_length, scale.corrections)
        assert f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} | {scale.reevaluations} |" in text
    assert f"## Protocol, version {VERSION}\n" in text
    for task, scale in OFFICIAL.items():
        row = next(
            line for line in text.splitlines() if line.startswith("| ") and task in line.split(" | ")[0]
        )
        sizes = (scale.evaluations, scale.batch_size, scale.episode_length)
        seeds = f"0\N{EN DASH}{scale.replications - 1}"
        expected = [*(f"{n:,}" for n in sizes), seeds, str(scale.reevaluations), str(scale.corrections)]
        assert row.split(" | ")[1:7] == expected
    low, high = ALIKE
    for criterion in (
        f"lie within {low} to {high}, with {FEWEST_TO_BE_ALIKE} replications of each",
        f"seconds per evaluation lies above {MORE_TIME:.0%}",
        f"the intervals of the mean losses lie above {HIGH_LOSS:.0%}",
        f"reach {PAPERS_LOSS:.0%} and lie above {NOT_FAR_BELOW:.0%}; it does not hold if one ends below "
        f"{PAPERS_LOSS:.0%}",
    ):
        assert criterion.replace("%", " %") in text


def test_the_verdicts_on_the_references_are_shown_as_they_are() -> None:
    text = (ROOT / "docs/reproduction.md").read_text()
    section = text.partition("## What the reference results say")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| [^|]+ \| \**(holds|does not hold|undecided)\** \|", section, re.MULTILINE)
    found = findings_on_references(usable_references())
    assert shown == [one.verdict for one in found.findings]


def test_the_scales_of_the_suite_are_the_code_s() -> None:
    text = (ROOT / "docs/suite.md").read_text(encoding="utf-8")
    for scale in SUITE_SCALES.values():
        sizes: dict[Scale, list[str]] = {}
        for task, size in scale.tasks.items():
            sizes.setdefault(size, []).append(task)
        for size, tasks in sizes.items():
            most = len(tasks) > len(scale.tasks) / 2
            which = ("all" if len(sizes) == 1 else "all others") if most else ", ".join(tasks)
            seeds = f"0\N{EN DASH}{size.replications - 1}"
            numbers = (f"{size.evaluations:,}", size.batch_size, f"{size.episode_length:,}", seeds)
            row = (scale.name, scale.version, which, *numbers, size.reevaluations, size.corrections)
            assert f"| {' | '.join(map(str, row))} |" in text, row


def test_the_notebook_is_the_tutorial_and_runs(cli: Cli) -> None:
    """Its cells are run in order by plain exec and subprocesses: no notebook server is needed for that."""
    page = TUTORIAL.read_text(encoding="utf-8")
    stored = (ROOT / "docs/tutorial.ipynb").read_text(encoding="utf-8")
    assert stored == tutorial_notebook.text(page), "run: python docs/plugins/tutorial_notebook.py"
    cells = ["".join(cell["source"]) for cell in json.loads(stored)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == len(blocks(TUTORIAL, "python")) + len(blocks(TUTORIAL, "console"))
    for cell in cells:
        if cell.startswith("%%writefile"):
            head, _, code = cell.partition("\n")
            (cli.folder / head.split()[1]).write_text(code)
        elif cell.startswith("!"):
            for line in cell.splitlines():
                program, *arguments = shlex.split(line[1:])
                assert program == "qdbench"
                done = cli(*arguments)
                assert done.returncode == 0, done.stderr
        else:
            ran = subprocess.run([sys.executable, "-c", cell], cwd=cli.folder, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    linked = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if target.startswith("https://"):
                continue
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
            linked.add((page.parent / target).resolve())
    assert {page.resolve() for page in PAGES[1:]} <= linked
