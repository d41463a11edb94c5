from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

import qdbench
from noisy_runs import ALGORITHMS, SHAPES, noisy, run
from running import TASKS

LONG = ("test_cluster.py", "test_docs.py", "test_interruptions.py", "test_suite.py", "test_reproduce.py")
"""These come first, so that no process waits for them at the end."""

settings.register_profile("qdbench", deadline=None, derandomize=True, max_examples=15, print_blob=True)
settings.load_profile("qdbench")

ROOT = Path(__file__).parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first, in the order of `LONG`."""
    order = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))


@pytest.fixture(params=list(qdbench.TASKS))
def any_task(request: pytest.FixtureRequest) -> qdbench.RobotTask:
    """Each of the nine tasks, with episodes short enough for a test."""
    return replace(qdbench.TASKS[request.param], episode_length=60)


class Cli:
    """The real command in a subprocess, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "qdbench", *arguments],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "200", "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # a shell's background jobs ignore Ctrl-C, and so would everything they start
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def bench(cli: Cli) -> Cli:
    """The command in a folder with `mine:task`, the task of `running`."""
    (cli.folder / "mine.py").write_text(TASKS)
    return cli


@pytest.fixture(scope="session")
def noisy_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four algorithms on a plane, four seeds each; to be copied before it is changed."""
    out = tmp_path_factory.mktemp("results")
    for algorithm in ALGORITHMS:
        for seed in range(4):
            run(out, noisy(2), algorithm, seed)
    return out


@pytest.fixture(scope="session")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four algorithms in one, two, four and six dimensions, corrected; not to be changed."""
    out = tmp_path_factory.mktemp("planes")
    for dimensions in SHAPES:
        for algorithm in ALGORITHMS:
            run(out, noisy(dimensions), algorithm, 0, corrections=1)
    return out


@pytest.fixture(scope="session")
def ants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms on ant_omni, corrected; not to be changed."""
    out = tmp_path_factory.mktemp("ants")
    task = qdbench.make("ant_omni", episode_length=30, cells=(15, 15), descriptor_bounds=((-1, 1), (-1, 1)))
    for algorithm in ("map_elites", "random_search"):
        qdbench.run(task, algorithm, evaluations=64, batch_size=32, corrections=1, reevaluations=3, out=out)
    return out


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coarser pictures, the same in all else."""
    from qdbench.reports import style
    from qdbench.reports.raster import PIXELS

    monkeypatch.setattr(style, "DPI", 50)
    monkeypatch.setitem(PIXELS, 2, 100)


@pytest.fixture
def only_png(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qdbench.reports.style.FORMATS", ("png",))
