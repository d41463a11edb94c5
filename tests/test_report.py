"""The report: whole, valid and safe HTML, the numbers of compare, and what a real browser makes of it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

import qdbench
from conftest import Cli
from html_page import Element, browse, parsed, require_sound, rows_of
from qdbench import FunctionTask, InvalidInput, UnknownName
from qdbench.analysis.compare import compare
from qdbench.analysis.measured import Measured
from qdbench.analysis.measuring import measure
from qdbench.analysis.tables import METHOD, tables
from qdbench.cli import report as command
from qdbench.paper.findings import CAVEAT
from qdbench.reports import markup
from qdbench.reports.claims import Finding
from qdbench.reports.commands import commands
from qdbench.reports.page import report, write_page
from running import carry_out
from toy_runs import edited

EVIL = "<script>alert('x')</script>&\"\x07"


def function(solutions: NDArray[np.float32], seeds: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
    x = solutions.astype(np.float64)
    noise = np.stack([(seeds >> np.uint64(i)) % np.uint64(1000) for i in (3, 20, 40)], axis=1) / 1e3 - 0.5
    return 10 - np.square(x - 0.2).sum(axis=1) + noise[:, 0], x[:, :2] + 0.2 * noise[:, 1:]


def toy(name: str = "toy", bounds: tuple[float, float] = (-5.0, 12.0)) -> FunctionTask:
    return FunctionTask(
        name=name, function=function, n_parameters=5, descriptor_bounds=((-0.9, 0.8), (-1.0, 1.1)),
        cells=(9, 7), fitness_bounds=bounds, noisy=True,
    )  # fmt: skip


def make(
    out: Path, task: Any, algorithm: str = "map_elites", seed: int = 0, *, corrections: int = 2,
    evaluations: int = 200, source: str = "", jobs: int = 1, name: str = "", **options: str,
) -> Path:  # fmt: skip
    return carry_out(
        task, algorithm, seed, out=out, name=name, source=source, evaluations=evaluations,
        options={"batch_size": "50"} | options, jobs=jobs, corrections=corrections, reevaluations=4,
    )  # fmt: skip


def written(
    path: Path, *results: Path, title: str = "", findings: Sequence[Finding] = (), **how: Any
) -> tuple[Element, Measured]:
    found = measure(results, **how)
    write_page(found, compare(found), path, title=title, findings=findings, caveat=CAVEAT)
    root = parsed(path.read_text(encoding="utf-8"))
    require_sound(root)
    return root, found


@pytest.fixture(autouse=True, scope="module")
def _coarse() -> Iterator[None]:
    """Coarser pictures, the same in all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markup, "PNG_DPI", 60)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "my results"
    for name in ("toy", "toy2"):
        for algorithm in ("map_elites", "cvt_map_elites", "map_elites_unstructured"):
            for seed in range(3):
                make(out, toy(name), algorithm, seed)
    return out


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Element, Measured]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    finding = Finding("A <claim>.", "A criterion.", "does not hold", ("a number: 12 %",))
    return path, *written(path, results, findings=[finding])


# What it says


def test_the_numbers_are_those_of_compare(page: tuple[Path, Element, Measured], results: Path) -> None:
    _, root, _ = page
    for table in tables(compare(results)):
        shown = rows_of(root, table.title)
        assert len(shown) == len(table.rows)
        for found, expected in zip(shown, table.rows, strict=True):
            assert found[1:] == list(expected[1:])
            assert found[0] in ("", expected[0])
    said = root.text
    for sentence in METHOD:
        assert sentence in said
    assert said.count("fixed interval [-5, 12]") > 2


def test_every_run_has_a_row(page: tuple[Path, Element, Measured], results: Path) -> None:
    _, root, _ = page
    rows = rows_of(root, "All 18 runs")
    record = qdbench.load(results / "toy/map_elites/seed-1").record
    row = next(row for row in rows if row[0].endswith("toy/map_elites/seed-1"))
    assert row[1:5] == ["map_elites", "1", "finished", "200"]
    assert row[5:] == [f"{record.totals.seconds:,.1f}", "0", "4", "1"]
    (machine,) = rows_of(root, "Environments")
    where = record.environments[0]
    assert machine[1:5] == [where.cpu, where.system, "1", "1"]
    assert f"mujoco {where.mujoco}" in machine[5]
    tasks = rows_of(root, "Tasks")
    assert [row[0] for row in tasks] == ["toy", "toy2"]
    assert tasks[0][2] == toy().fingerprint


def test_a_first_figure_five_pictures_a_task_and_a_verdict(page: tuple[Path, Element, Measured]) -> None:
    _, root, _ = page
    kinds = [str(img.attributes["src"]).split(";")[0] for img in root.all("img")]
    assert len(kinds) == 11
    assert kinds[2] == kinds[5] == kinds[7] == kinds[10] == "data:image/png"  # heatmaps
    assert "CVT-MAP-Elites" in str(next(root.all("img")).attributes["alt"])
    contents = [a.text for a in next(root.all("nav")).all("a")]
    assert contents == [h2.text for h2 in root.all("h2")]
    assert "does not hold" in root.text
    assert "A <claim>." in root.text
    assert "a number: 12 %" in root.text
    assert root.text.count(CAVEAT) == 1


def test_the_same_runs_give_the_same_page(results: Path, tmp_path: Path) -> None:
    pages = []
    for _ in range(2):
        written(tmp_path / "report.html", results / "toy/map_elites")
        # Matplotlib's constrained layout may move a figure's panels by less than a pixel
        pages.append(re.sub(r'src="[^"]+"', "", (tmp_path / "report.html").read_text()))
    assert pages[0] == pages[1]
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_one_run_without_corrections(tmp_path: Path) -> None:
    path = make(tmp_path, toy(), corrections=0)
    root, found = written(tmp_path / "one.html", path, interval="pooled", on="grid", title="One & only")
    assert next(root.all("h1")).text == next(root.all("title")).text == "One & only"
    assert "Tests and aggregates" not in root.text
    assert CAVEAT not in root.text  # there are no findings
    assert len(list(root.all("img"))) == 3
    assert "no final archive was corrected" in root.text
    assert root.text.count("1 run;") == 1
    *_, first, second, third = commands(found, tmp_path / "one.html", "One & only")
    how = f"{shlex.quote(str(path))} --interval pooled --on grid"
    assert [first, second] == [f"qdbench compare {how}", f"qdbench plot {how}"]
    assert third == f"qdbench report {how} --title 'One & only' --out {tmp_path / 'one.html'}"


def test_what_must_not_be_overlooked_is_on_top(tmp_path: Path) -> None:
    make(tmp_path / "r", toy(bounds=(0.0, 1.0)))
    make(tmp_path / "r", toy(bounds=(0.0, 1.0)), seed=1, jobs=2)
    hopper = qdbench.make("hopper_uni", episode_length=6)
    make(tmp_path / "r", hopper, corrections=0, batch_size="200")
    root, found = written(tmp_path / "w.html", tmp_path / "r")
    shown = next(root.all("header")).text
    assert all(warning in shown for warning in found.warnings)
    assert "is outside the task's fitness bounds" in shown
    assert "elites have a corrected fitness above the interval of the QD score" in shown
    for words in ("seconds are left out", "hopper_uni: the descriptor is a share"):
        assert words in shown


def test_what_was_left_out_is_named_and_nothing_of_it_is_markup(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("archive_file", "corrections_file"):  # the arrays are of a run without such an option
        monkeypatch.setattr(f"qdbench.store.{module}.require_same_run", lambda *_, **__: None)
    copy = shutil.copytree(results / "toy/map_elites", tmp_path / "<b>r&amp;")
    edited(copy / "seed-0", status="failed", reason=EVIL)
    damaged = copy / "seed-1/corrected.npz"
    damaged.write_bytes(damaged.read_bytes()[:-50])
    (copy / "foreign").mkdir()
    (copy / "foreign/run.json").write_text("{}")
    edited(
        copy / "seed-2",
        name=EVIL.strip("\x07"),
        algorithm__options={"batch_size": EVIL},
    )
    finding = Finding(EVIL, EVIL, "undecided", (EVIL,))
    root, found = written(tmp_path / "evil.html", copy, title=EVIL, findings=[finding])
    assert not list(root.all("b"))
    safe = EVIL.replace("\x07", "\N{REPLACEMENT CHARACTER}")
    assert next(root.all("h1")).text == safe
    skipped = dict(rows_of(root, "Skipped: 3 runs that could not be used"))
    assert skipped[str(copy / "seed-0")] == f"its status is failed: {safe}"
    assert "corrected.npz is damaged and was not used" in skipped[str(copy / "seed-1")]
    assert "run.json" in skipped[str(copy / "foreign")]
    assert len(found.runs) == 1
    assert f"batch_size={safe}" in root.text


# The commands


def test_the_commands_give_the_same_runs(cli: Cli) -> None:
    bounds = ((-5.0, 5.0), (-4.0, 4.5))
    options: dict[str, Any] = {"cells": (7, 9), "hidden": (8, 4), "descriptor_bounds": bounds}
    ant = qdbench.make("ant_omni", episode_length=5, reset_noise=0.0, **options)
    for seed in (0, 1, 3):
        out = cli.folder / "my results"
        make(out, ant, "random_search", seed, corrections=3, source="ant_omni", name="mine", init="uniform")
    remark, line, *_ = commands(measure(cli.folder / "my results"), Path("report.html"))
    assert remark.startswith(f"# qdbench {qdbench.__version__}, mujoco ")
    words = shlex.split(line)
    assert words[-2:] == ["--seeds", "0-1,3"]
    assert words[words.index("--corrections") + 1] == "3"
    words[words.index("--out") + 1] = "again"
    done = cli(*words[1:])
    assert done.returncode == 0, done.stderr
    for seed in (0, 1, 3):
        one, other = (
            qdbench.load(cli.folder / name / f"ant_omni/random_search-mine/seed-{seed}")
            for name in ("my results", "again")
        )
        for key in ("determinants", "target", "name", "facts"):
            assert getattr(one.record, key) == getattr(other.record, key)
        np.testing.assert_array_equal(one.archive.fitness, other.archive.fitness)
        assert one.corrections is not None
        assert other.corrections is not None
        for a, b in zip(one.corrections.points, other.corrections.points, strict=True):
            assert a.evaluations == b.evaluations
            again = one.corrections.reevaluations(a), other.corrections.reevaluations(b)
            np.testing.assert_array_equal(again[0].fitness, again[1].fitness)


def test_what_no_command_can_do_is_said(results: Path, tmp_path: Path) -> None:
    made_here = commands(measure(results / "toy/map_elites"), Path("report.html"))
    assert "# toy was made in Python; the command line cannot make it" in made_here
    small = qdbench.make("ant_omni", episode_length=5, cells=(7, 7))
    path = make(tmp_path, small, source="ant_omni", corrections=0)
    by_options = commands(measure(path), Path("report.html"))
    assert not [line for line in by_options if "made in Python" in line]
    (line,) = (line for line in by_options if line.startswith("qdbench run"))
    assert "--task-set episode_length=5 --task-set cells=7x7" in line


def test_corrections_that_no_run_makes_are_made_afterwards(results: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(results / "toy/map_elites", tmp_path / "copy")
    for seed in range(3):
        edited(copy / f"seed-{seed}", target={"evaluations": None, "seconds": 5.0})
    lines = commands(measure(copy), Path("late.html"))
    line, late = (line for line in lines if line.startswith(("qdbench run", "qdbench correct")))
    assert "--seconds 5.0" in line
    assert "--corrections" not in line
    assert late == f"qdbench correct {shlex.quote(str(copy))} --reevaluations 4"


def test_corrections_are_those_that_were_asked_for(results: Path) -> None:
    lines = commands(measure(results / "toy/map_elites"), Path("report.html"))
    (line,) = (line for line in lines if line.startswith("qdbench run"))
    assert "--corrections 2 --reevaluations 4" in line
    assert not [line for line in lines if line.startswith("qdbench correct")]


# From Python


def test_python_does_what_the_command_does(results: Path, tmp_path: Path) -> None:
    path = report(
        [str(results)], tasks="toy", interval="pooled", on="grid", out=tmp_path / "r.html", title="T"
    )
    root = parsed(path.read_text())
    assert next(root.all("h1")).text == "T"
    assert f"--task toy --interval pooled --on grid --title T --out {path}" in root.text
    again = measure(results, tasks=["toy"], interval="pooled", on="grid")
    assert report(again, out=tmp_path / "again.html", title="T") == tmp_path / "again.html"
    with pytest.raises(InvalidInput, match="belong to `measure`: these runs are measured already"):
        report(again, interval="pooled", out=path)
    with pytest.raises(InvalidInput, match="interval is 'mine'; use 'fixed' or 'pooled'"):
        report(results, interval=cast(Any, "mine"), out=path)
    with pytest.raises(InvalidInput, match="on is 'cvt'; use 'own' or 'grid'"):
        report(results, on=cast(Any, "cvt"), out=path)
    with pytest.raises(InvalidInput, match="results is None; give a folder"):
        report(cast(Any, None), out=path)


# The command


def test_report(cli: Cli, results: Path) -> None:
    shutil.copytree(results, cli.folder / "my results")
    edited(cli.folder / "my results/toy/map_elites/seed-0", status="stopped")
    done = cli("report", "my results", "--task", "toy", "--out", "toy.html")
    assert done.returncode == 0, done.stderr
    first, following = done.stdout.splitlines()
    assert re.fullmatch(r"Written: toy.html \(8 runs, \d+\.\d MB\)", first)
    assert following == "Next: open toy.html in a browser"
    assert done.stderr == "skipped: my results/toy/map_elites/seed-0: its status is stopped\n"
    root = parsed((cli.folder / "toy.html").read_text())
    assert "qdbench report 'my results' --task toy --out toy.html" in root.text
    assert "toy2" not in root.text


def test_refusals(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "report.html"
    with pytest.raises(UnknownName, match="no task 'toy3'; did you mean 'toy"):
        command.report([results], tasks=["toy3"], out=out)
    with pytest.raises(InvalidInput, match=r"its name must end in .html"):
        command.report([results], out=tmp_path / "report.pdf")
    with pytest.raises(InvalidInput, match="is not a folder"):
        command.report([tmp_path / "nowhere"], out=out)
    copy = shutil.copytree(results / "toy/map_elites/seed-0", tmp_path / "copy")
    (copy / "archive.npz").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"no run can be used \(.*archive.npz is damaged"):
        command.report([copy], out=out)
    assert not out.exists()
    monkeypatch.setattr("qdbench.reports.style.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'qdbench\[plot\]'"):
        command.report([results], out=out)


def test_the_next_step_is_to_correct(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path, toy(), corrections=0)
    command.report([path], out=tmp_path / "report.html")
    assert capsys.readouterr().out.splitlines()[-1] == f"Next: qdbench correct {path}"


# A browser


def test_a_browser_shows_it(page: tuple[Path, Element, Measured], tmp_path: Path) -> None:
    path, root, _ = page
    shown = parsed(browse(path, tmp_path, "--dump-dom"))
    require_sound(shown)
    assert [h.text for h in shown.all("h2")] == [h.text for h in root.all("h2")]
    assert len(list(shown.all("td"))) == len(list(root.all("td")))  # it had nothing to mend
    assert asked_for(tmp_path) == set()
    page_with_request = tmp_path / "other.html"
    page_with_request.write_text('<!DOCTYPE html><title>x</title><img src="http://elsewhere.invalid/x.png">')
    browse(page_with_request, tmp_path, "--dump-dom")
    assert asked_for(tmp_path) == {"http://elsewhere.invalid/x.png"}  # it would have been seen


def asked_for(folder: Path) -> set[str]:
    """Return what the page asked the network for; the browser's own requests are of no origin."""
    events = json.loads((folder / "net.json").read_text())["events"]
    requests = [event["params"] for event in events if "initiator" in event.get("params", {})]
    return {one["url"] for one in requests if one["initiator"] != "not an origin"}


@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_draws_it(page: tuple[Path, Element, Measured], tmp_path: Path, width: int) -> None:
    picture = tmp_path / "page.png"
    browse(page[0], tmp_path, f"--window-size={width},1500", f"--screenshot={picture}")
    pixels = imread(picture)
    assert pixels.shape[1] == width
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50
    margin = pixels[:, -8:, :3]
    assert float(np.abs(margin - margin[0, 0]).max()) == 0  # nothing reaches over the edge


PROBE = """<script>
for (const hidden of document.querySelectorAll("details")) hidden.open = true
const cut = [...document.querySelectorAll(".scroll")].filter(table => table.scrollWidth > table.clientWidth)
const names = cut.map(table => table.querySelector("caption").textContent)
document.body.innerHTML = "<pre>" + document.querySelectorAll(".scroll").length + names.join() + "</pre>"
</script></body>"""


def test_no_table_is_cut_off(page: tuple[Path, Element, Measured], tmp_path: Path) -> None:
    path, root, _ = page
    allowed = path.read_text().replace("style-src", "script-src 'unsafe-inline'; style-src", 1)
    (tmp_path / "probe.html").write_text(allowed.replace("</body>", PROBE))
    shown = browse(tmp_path / "probe.html", tmp_path, "--window-size=1300,1000", "--dump-dom")
    assert f"<pre>{len(list(root.all('table')))}</pre>" in shown


def test_a_browser_prints_it(page: tuple[Path, Element, Measured], tmp_path: Path) -> None:
    browse(page[0], tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}", "--no-pdf-header-footer")
    printed = (tmp_path / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 3
