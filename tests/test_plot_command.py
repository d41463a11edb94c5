"""`qdbench plot`: what it writes, says and refuses."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import qdbench
from conftest import Cli
from noisy_runs import noisy, run
from qdbench import InvalidInput, UnknownName
from qdbench.cli import plot
from toy_runs import edited

pytestmark = pytest.mark.usefixtures("coarse")


def test_figures_of_a_folder(cli: Cli, noisy_results: Path) -> None:
    shutil.copytree(noisy_results / "noisy2/random_search", cli.folder / "my results/noisy2/random_search")
    shutil.copytree(
        noisy_results / "noisy2/map_elites/seed-0", cli.folder / "my results/noisy2/map_elites/seed-0"
    )
    damaged = cli.folder / "my results/noisy2/random_search/seed-2/corrected.npz"
    damaged.write_bytes(damaged.read_bytes()[:-50])
    failed = cli.folder / "my results/noisy2/random_search/seed-3"
    edited(failed, status="failed", reason="the disk was full")
    done = cli("plot", "my results", "--out", "new/pictures")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"noisy2: 2 algorithms, 3 runs; QD score on the task's fixed interval [{chr(0x2212)}20, 10]",
        *(
            f"Written: new/pictures/noisy2-{name}.{{png,svg,pdf}}"
            for name in ("figure", "self-normalised", "archives", "samples", "sizes", "spreads")
        ),
        "Next: qdbench report 'my results'",
    ]
    first, second = done.stderr.splitlines()
    assert first == "skipped: my results/noisy2/random_search/seed-3: its status is failed: the disk was full"
    assert second.startswith(f"skipped: {damaged.parent.relative_to(cli.folder)}: ")
    assert "corrected.npz is damaged and was not used" in second
    files = sorted(path.name for path in (cli.folder / "new/pictures").iterdir())
    names = ("archives", "figure", "samples", "self-normalised", "sizes", "spreads")
    assert files == sorted(f"noisy2-{n}.{e}" for n in names for e in ("pdf", "png", "svg"))
    assert min(path.stat().st_size for path in (cli.folder / "new/pictures").iterdir()) > 5_000


@pytest.mark.usefixtures("only_png")
def test_without_reevaluations_the_next_step_is_to_make_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(Path("results"), noisy(1), "map_elites", 0, corrections=0)
    hopper = qdbench.make("hopper_uni", episode_length=6)
    run(Path("results"), hopper, "map_elites", 0, corrections=0, batch_size=200)
    run(Path("results"), noisy(6), "map_elites", 0, corrections=0)
    chosen = ["noisy1", "hopper_uni"]
    plot.plot([Path("results")], tasks=chosen, interval="pooled", on="grid", out=Path("figures"))
    shown = capsys.readouterr()
    *_, last, following = shown.out.splitlines()
    assert last == "Written: figures/noisy1-archives.{png}"
    assert following == "Next: qdbench correct results"
    assert "the pooled interval of these runs" in shown.out
    assert shown.out.count(", on the task's grid") == 2
    assert "warning: hopper_uni: the descriptor is a share" in shown.err
    assert not list(Path("figures").glob("*samples*"))
    assert "noisy6" not in shown.out


@pytest.mark.usefixtures("only_png")
def test_a_fitness_outside_the_interval_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run(
        tmp_path / "results", replace(noisy(2), fitness_bounds=(0.0, 1.0)), "map_elites", 0, corrections=0
    )
    plot.plot([tmp_path / "results"], out=tmp_path / "figures")
    warning = f"warning: a fitness of {path} is outside the task's fitness bounds"
    assert warning in capsys.readouterr().err


def test_refusals(noisy_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "figures"
    with pytest.raises(UnknownName, match="no task 'noisy3'; did you mean 'noisy2'"):
        plot.plot([noisy_results], tasks=["noisy3"], out=out)
    with pytest.raises(InvalidInput, match="cannot write into"):
        plot.plot([noisy_results], out=Path(__file__) / "figures")
    one = noisy_results / "noisy2/map_elites/seed-0"
    copy = shutil.copytree(one, tmp_path / "copy")
    with pytest.raises(InvalidInput, match="both seed 0 of map_elites on noisy2"):
        plot.plot([one, copy], out=out)
    other = run(tmp_path, replace(noisy(2), cells=(3, 3)), "map_elites", 1, corrections=0)
    with pytest.raises(InvalidInput, match="not of the same task"):
        plot.plot([one, other], out=out)
    few = run(tmp_path, noisy(2), "map_elites", 2, reevaluations=2)
    with pytest.raises(InvalidInput, match=r"different numbers of times: 5 \(.*seed-0\), 2 \(.*seed-2\)"):
        plot.plot([one, few], out=out)
    archive = copy / "archive.npz"
    archive.write_bytes(archive.read_bytes()[:-50])
    with pytest.raises(InvalidInput, match=r"no run can be used \(.*archive.npz is damaged"):
        plot.plot([copy], out=out)
    assert not out.exists()
    monkeypatch.setattr("qdbench.reports.style.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'qdbench\[plot\]'"):
        plot.plot([noisy_results], out=out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(("nowhere",), "'nowhere' is not a folder"), ((), "Missing argument 'RESULTS...'")],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], sentence: str, cli: Cli) -> None:
    done = cli("plot", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
