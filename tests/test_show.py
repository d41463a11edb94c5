"""What `show` tells and draws, against the files of real runs."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from numpy.typing import NDArray
from rich.console import Console

import qdbench
from conftest import Cli
from noisy_runs import TOY_SHAPES as SHAPES
from noisy_runs import KeepsAll, toy
from qdbench import InvalidInput
from qdbench.algorithms.registry import configure
from qdbench.cli import show, terminal
from qdbench.experiments.evaluators import Threads
from qdbench.experiments.interrupt import Interrupt, Interrupted
from qdbench.experiments.job import Job, Settings
from qdbench.experiments.one_run import execute
from qdbench.experiments.plan import Plan
from qdbench.reports import heatmaps
from qdbench.reports.heatmaps import Plane, draw_archive, fitness_limits, save_archive, title
from qdbench.reports.raster import PIXELS, nested, on_grid, pooled
from qdbench.reports.raster import raster as drawn_on
from qdbench.store.folder import RunFolder
from qdbench.store.loading import StoredRun
from qdbench.store.plain import as_json
from qdbench.store.record import MetricsExtent, Target

ALGORITHMS = ("map_elites", "cvt_map_elites", "map_elites_unstructured")
EVERY = list(product(ALGORITHMS, SHAPES))


Runs = Callable[[str, int], StoredRun]


def raster(run: StoredRun) -> NDArray[np.float64]:
    return drawn_on(run.archive.placed(), run.grid)


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coarser pictures, the same in all else."""
    monkeypatch.setattr(heatmaps, "DPI", 60)
    monkeypatch.setitem(PIXELS, 2, 250)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    out = tmp_path_factory.mktemp("results")

    def run(algorithm: str, dimensions: int) -> StoredRun:
        return qdbench.run(toy(dimensions), algorithm, evaluations=300, out=out, batch_size=50, initial=100)

    for algorithm, dimensions in EVERY:
        run(algorithm, dimensions)
    return run


def place(cell: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, int]:
    """Return row and column as the docstring of raster.py says, one step at a time."""
    row = column = 0
    for i, (index, n) in enumerate(zip(cell, shape, strict=True)):
        if i % 2:
            row = row * n + index
        else:
            column = column * n + index
    return row, column


def grid_cell(run: StoredRun, descriptor: NDArray[np.float64]) -> tuple[int, ...]:
    task, cell = run.record.task, []
    for value, (low, high), n in zip(descriptor, task.descriptor_bounds, task.cells, strict=True):
        cell.append(min(max(int((value - low) / (high - low) * n // 1), 0), n - 1))
    return tuple(cell)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=str)
def test_every_cell_appears_once_at_its_documented_place(shape: tuple[int, ...]) -> None:
    values = np.arange(float(np.prod(shape))).reshape(shape)
    image = nested(values)
    assert sorted(image.ravel()) == sorted(values.ravel())
    for cell in np.ndindex(*shape):
        assert image[place(cell, shape)] == values[cell]


@pytest.mark.parametrize(("algorithm", "dimensions"), EVERY)
def test_the_grid_holds_exactly_the_fittest_of_every_cell(
    algorithm: str, dimensions: int, runs: Runs
) -> None:
    run = runs(algorithm, dimensions)
    expected: dict[tuple[int, ...], float] = {}
    for descriptor, fitness in zip(run.archive.elites.descriptors, run.archive.elites.fitness, strict=True):
        cell = grid_cell(run, descriptor)
        expected[cell] = max(fitness, expected.get(cell, -np.inf))
    values = on_grid(run.archive.placed(), run.grid)
    assert values.shape == SHAPES[dimensions]
    assert {cell: values[cell] for cell in np.ndindex(*values.shape) if np.isfinite(values[cell])} == expected
    assert len(expected) == run.metrics["grid_coverage"][-1] > 1
    assert np.nansum(values) == pytest.approx(run.metrics["grid_sum_fitness"][-1])
    if algorithm == "map_elites" or dimensions > 2:
        np.testing.assert_array_equal(raster(run), nested(values))


@pytest.mark.parametrize("dimensions", [1, 2])
def test_a_cvt_is_drawn_as_its_true_regions(dimensions: int, runs: Runs) -> None:
    run = runs("cvt_map_elites", dimensions)
    archive, image = run.archive, raster(run)
    centroids = archive.geometry.arrays()["centroids"]
    fitness = dict(zip(archive.cells.tolist(), archive.elites.fitness, strict=True))
    assert set(image[np.isfinite(image)]) == set(fitness.values())
    generator = np.random.default_rng(0)
    for _ in range(300):
        row, column = (int(generator.integers(n)) for n in image.shape)
        share = [(column + 0.5) / image.shape[1], (row + 0.5) / image.shape[0]][:dimensions]
        nearest = int(np.square(centroids - share).sum(axis=1).argmin())
        assert image[row, column] == pytest.approx(fitness.get(nearest, np.nan), nan_ok=True)


@pytest.mark.parametrize("limits", [(100, 100), (4, 3), (3, 8), (1, 1)])
def test_pooling_keeps_the_fittest_of_every_block(limits: tuple[int, int]) -> None:
    image = np.random.default_rng(1).random((8, 10))
    image[image < 0.6] = np.nan
    small, (across, up) = pooled(image, *limits)
    assert small.shape[1] <= limits[0]
    assert small.shape[0] <= limits[1]
    for (row, column), value in np.ndenumerate(small):
        block = image[row * up : (row + 1) * up, column * across : (column + 1) * across]
        assert value == pytest.approx(np.fmax.reduce(block, axis=None), nan_ok=True)


@pytest.mark.parametrize(("algorithm", "dimensions"), EVERY)
def test_pictures_show_the_archive(algorithm: str, dimensions: int, runs: Runs, tmp_path: Path) -> None:
    run = runs(algorithm, dimensions)
    axes = Figure().add_subplot()
    colours = draw_archive(axes, run.archive.placed(), Plane.of(run), (-3.0, 1.0))
    assert (colours.norm.vmin, colours.norm.vmax) == (-3, 1)
    drawn = colours.get_array()
    if dimensions == 2 and algorithm == "map_elites_unstructured":
        np.testing.assert_array_equal(drawn, run.archive.elites.fitness)
        np.testing.assert_array_equal(colours.get_offsets(), run.archive.elites.descriptors)
    else:
        image = raster(run)
        expected = image[np.isfinite(image)] if dimensions == 1 else image
        np.testing.assert_array_equal(np.ma.filled(drawn, np.nan), expected)
    label = axes.get_xlabel()
    assert all(f"descriptor {i + 1}" in label for i in range(0, dimensions, 2))

    save_archive(run, tmp_path / "archive.png")
    red, green, blue = (imread(tmp_path / "archive.png")[..., :3] * 255).round().astype(int).T
    assert len(np.unique((red * 256 + green) * 256 + blue)) > 15


def test_the_ending_chooses_the_format(runs: Runs, tmp_path: Path) -> None:
    save_archive(runs("map_elites", 4), tmp_path / "archive.pdf")
    assert (tmp_path / "archive.pdf").read_bytes().startswith(b"%PDF")


def test_the_title_tells_what_is_shown(runs: Runs) -> None:
    run = runs("cvt_map_elites", 4)
    n, score = len(run.archive.elites), run.metrics["qd_score"][-1]
    assert title(run) == (
        "toy4, cvt_map_elites, seed 0, 300 evaluations\n"
        f"coverage {n} of 48 cells ({n / 48:.1%}), QD score {score:,.1f} on [-10, 0]\n"
        "projected onto the task's grid: the fittest elite of every cell"
    )
    assert title(runs("map_elites_unstructured", 2)).count("elites, QD score") == 1
    both = (run.archive.placed(), runs("map_elites", 1).archive.placed())
    low, high = fitness_limits(*both, if_empty=(0.0, 0.0))
    assert low == min(min(r.archive.elites.fitness) for r in (run, runs("map_elites", 1)))
    assert high == max(max(r.archive.elites.fitness) for r in (run, runs("map_elites", 1)))


def stopped_at_once(dimensions: int, algorithm: str, path: Path) -> StoredRun:
    """A run that was interrupted in its first batch."""

    def interrupted(solutions: Any) -> Any:
        raise Interrupted

    task = replace(toy(dimensions), function=interrupted)
    options = configure(algorithm, {})
    plan = Plan(task=task, task_source="toy", algorithm=algorithm, options=options, seed=0)
    job, settings = Job(plan, path, Target(100)), Settings(evaluators=Threads(1))
    outcome = execute(job, settings, Interrupt(), lambda news: None)
    assert outcome.status == "stopped", outcome.reason
    return qdbench.load(path)


@pytest.mark.parametrize(("algorithm", "dimensions"), [(a, d) for a in ALGORITHMS for d in (1, 2, 4)])
def test_an_empty_archive_is_an_empty_picture(
    algorithm: str, dimensions: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stopped_at_once(dimensions, algorithm, tmp_path / "run")
    assert np.isnan(raster(run)).all()
    show.show([run.path], out=tmp_path / "empty.svg")
    assert (tmp_path / "empty.svg").read_text().startswith("<?xml")
    printed = capsys.readouterr().out
    assert "stopped at" in printed
    assert "0 (target 100)" in printed


# The command


def copied(run: StoredRun, path: Path) -> Path:
    shutil.copytree(run.path, path)
    return path


def test_json_gives_the_numbers_of_the_files(cli: Cli, runs: Runs) -> None:
    shown = [runs(algorithm, 2) for algorithm in ALGORITHMS]
    for seed, run in zip((1, 2, 10), shown, strict=True):
        copied(run, cli.folder / f"results/seed-{seed}")
    done = cli("show", "results", "results/seed-2", "--json")
    assert done.returncode == 0, done.stderr
    summaries = json.loads(done.stdout)
    assert [got["run"] for got in summaries] == [f"results/seed-{seed}" for seed in (1, 2, 10)]
    for got, run in zip(summaries, shown, strict=True):
        for key in ("task", "algorithm", "seed", "status", "environments"):
            assert got[key] == as_json(getattr(run.record, key))
        totals, metrics = run.record.totals, run.metrics
        for key in ("evaluations", "invalid", "seconds", "simulation_seconds", "setup_seconds"):
            assert got[key] == getattr(totals, key)
        assert got["invalid"] > 0
        assert got["rest_seconds"] == pytest.approx(totals.rest_seconds)
        assert got["archive_evaluations"] == 300
        for place, prefix in (("archive", ""), ("grid", "grid_")):
            for name in ("coverage", "qd_score", "max_fitness", "min_fitness"):
                assert got[place][name] == metrics[f"{prefix}{name}"][-1]
        assert got["archive"]["kind"] == run.archive.geometry.kind
        assert got["archive"]["cells"] == run.archive.geometry.n_cells
        assert got["archive"]["coverage"] == len(run.archive.elites)
        assert got["grid"]["coverage_share"] == metrics["grid_coverage"][-1] / 80


def test_several_runs_are_a_table(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = [runs(algorithm, 4) for algorithm in ALGORITHMS]
    for run in shown:
        copied(run, tmp_path / f"results/{run.archive.geometry.kind}")
    monkeypatch.chdir(tmp_path)
    show.show([Path(f"results/{run.archive.geometry.kind}") for run in shown])
    header, first, second, third, following = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["run", "status", "evaluations"]
    for row, run in zip((first, second, third), shown, strict=True):
        assert f"{run.metrics['qd_score'][-1]:,.2f}" in row
    assert following == "Next: qdbench show results/grid"


def test_words_picture_and_the_next_step(cli: Cli, runs: Runs) -> None:
    run = runs("map_elites", 2)
    copied(run, cli.folder / "one run")
    done = cli("show", "one run")
    assert done.returncode == 0, done.stderr
    n, last = len(run.archive.elites), {name: values[-1] for name, values in run.metrics.items()}
    for words in (
        f"toy2, version 1, fingerprint {run.record.task.fingerprint}",
        "map_elites, seed 0: batch_size=50, initial=100",
        f"300 (target 300), {last['invalid']} of them invalid",
        f"simulation {last['simulation_seconds'] / last['seconds']:.1%}",
        f"{n} ({n / 80:.1%})",
        f"{last['qd_score']:,.2f}",
        "[low, high] = [-10, 0]",
        f"fitness {last['min_fitness']:,.2f} .:-=+*#%@ {last['max_fitness']:,.2f}",
        f"numpy {np.__version__}",
    ):
        assert words in done.stdout
    rows = [line.partition("|")[2].rpartition("|")[0] for line in done.stdout.splitlines() if "|" in line]
    assert (len(rows), len(rows[0])) == (8 * 3, 10 * 3 * 2)  # every cell is 3 x 3 marks, each twice
    marks = np.array([list(row[::6]) for row in rows[::-3]])
    np.testing.assert_array_equal(marks != " ", np.isfinite(raster(run)))
    best = np.nanargmax(raster(run))
    assert marks.ravel()[best] == "@"

    following = done.stdout.splitlines()[-1]
    assert following == "Next: qdbench show 'one run' --out archive.png"
    drawn = cli("show", "one run", "--out", "archive.png")
    assert drawn.stdout.splitlines()[-1] == "Written: archive.png"
    assert (cli.folder / "archive.png").stat().st_size > 10_000


def test_changed_options_of_a_task_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = qdbench.make("hopper_uni", episode_length=5, cells=(20,))
    run = qdbench.run(task, evaluations=4, batch_size=4, out=tmp_path, name="short")
    show.show([tmp_path])
    printed = " ".join(capsys.readouterr().out.split())
    assert "episode length 5 instead of 1000, cells [20] instead of [900]" in printed
    assert "map_elites (short), seed 0" in printed
    assert str(run.path.name) in printed


def test_a_terminal_gets_colours(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    run, printed = runs("map_elites", 2), StringIO()
    console = Console(file=printed, force_terminal=True, color_system="truecolor", width=100, markup=False)
    monkeypatch.setattr(terminal, "out", console)
    show.show([run.path])
    assert "\N{UPPER HALF BLOCK}" in printed.getvalue()
    brightest, darkest = "38;2;253;231;37", "38;2;71;45;123"
    assert brightest in printed.getvalue()
    assert darkest in printed.getvalue()
    console.no_color = True
    printed.truncate(0)
    show.show([run.path])
    assert "@@" in printed.getvalue()


def killed(run: StoredRun, path: Path) -> Path:
    """A run whose last checkpoint was written after its first iteration; its archive never was."""
    folder = RunFolder(copied(run, path))
    (path / "archive.npz").unlink()
    first = b"".join(folder.metrics_path.read_bytes().splitlines(keepends=True)[:2])
    folder.metrics_path.write_bytes(folder.metrics_path.read_bytes() + b"7,35")
    metrics, totals = MetricsExtent(len(first), zlib.crc32(first)), replace(run.record.totals, evaluations=50)
    folder.write_record(replace(run.record, status="running", metrics=metrics, totals=totals))
    return path


def test_a_killed_run_says_how_to_go_on(cli: Cli, runs: Runs) -> None:
    killed(runs("map_elites", 2), cli.folder / "run")
    done = cli("show", "run")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "if it was killed, the same `qdbench run` command, or `qdbench resume`" in words
    assert "continues it from evaluation 50" in words
    assert "evaluations 300" in words  # rows since the checkpoint
    assert "There is no archive yet" in words
    assert words.endswith("Next: qdbench resume run")
    drawn = cli("show", "run", "--out", "x.png")
    assert (drawn.returncode, drawn.stdout) == (2, "")
    assert drawn.stderr.strip() == "qdbench: run has no archive yet; its status is running"


BAD_COMMANDS = {
    "'nowhere' is not a folder": ("nowhere",),
    "'empty' holds no run: there is no run.json in it or below": ("empty",),
    "archive.npz is damaged and was not used": ("cut",),
    "run.json is damaged and was not used: its checksum does not fit": ("changed",),
    "must end in .png or .svg or .pdf": ("one", "--out", "x.jpg"),
    "its folder is missing or read-only": ("one", "--out", "no/such.png"),
    "--out draws one archive, but you gave 2 runs": ("one", "changed", "--out", "x.png"),
    "Missing argument 'RUN...'": (),
}


@pytest.mark.parametrize("sentence", BAD_COMMANDS)
def test_bad_input_is_one_line_and_exit_code_2(sentence: str, cli: Cli, runs: Runs) -> None:
    run = runs("map_elites", 2)
    (cli.folder / "empty").mkdir()
    for name in ("one", "cut", "changed"):
        copied(run, cli.folder / name)
    archive, record = cli.folder / "cut/archive.npz", cli.folder / "changed/run.json"
    archive.write_bytes(archive.read_bytes()[:-100])
    record.write_text(record.read_text().replace('"seed": 0', '"seed": 1'))
    done = cli("show", *BAD_COMMANDS[sentence])
    assert sentence in done.stderr
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_without_matplotlib(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'qdbench\[plot\]'"):
        show.show([runs("map_elites", 2).path], out=tmp_path / "x.png")


def test_a_collection_without_an_archive_of_its_own_is_told_to_be_projected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = replace(toy(2), cells=(2, 2))
    run = qdbench.run(task, KeepsAll, evaluations=80, out=tmp_path)
    show.show([run.path])
    words = " ".join(capsys.readouterr().out.split())
    n = len(run.archive)
    assert f"the task's grid: 2x2, its collection of {n} elites projected onto it" in words
    assert "own" not in words
