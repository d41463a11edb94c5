"""Sessions of the explorer, its server and its command, and how fast it is."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import qdbench
from conftest import Cli
from exploring import session_of
from qdbench import InvalidInput
from qdbench.cli.explore import _function
from qdbench.explorer import facts
from qdbench.explorer.catalogue import catalogue
from qdbench.explorer.mailbox import Mailbox
from qdbench.explorer.replays import Replays
from qdbench.explorer.server import HOST, PORTS, free_port
from qdbench.store.told_log import told_so_far
from qdbench.tasks.endings import NEVER
from running import rewrite
from toy_runs import edited

# A session


def test_colours_threshold_and_corrected_archives(planes: Path) -> None:
    session, stages = session_of(planes / "noisy2/map_elites")
    side = session.sides[0]
    fitness = side.view.found.fitness[side.plane.elites]
    middle = float(np.median(fitness))
    session.fade_below(middle)
    assert session.counts(0) == ((fitness >= middle).sum(), len(fitness))
    (image,) = stages[0].last("recolour")
    for colouring in side.view.colourings:
        session.colour_by(colouring)
        (other,) = stages[0].last("recolour")
        known = side.view.values(colouring)[side.plane.elites]
        assert session.colour_limits == (np.nanmin(known), np.nanmax(known))
        assert colouring == "fitness" or not np.array_equal(image, other)
    session.select(int(side.plane.elites[2]))
    session.choose_which("corrected")
    assert (session.sides[0].which, session.sides[0].row) == ("corrected", side.plane.elites[2])
    corrected = side.view.fitness("corrected")[session.sides[0].plane.elites]
    assert session.counts(0) == ((corrected >= middle).sum(), len(corrected))
    assert "corrected fitness" in facts.about_elite(session.sides[0], ("a", "b"))


def test_two_elites_side_by_side_on_one_clock(ants: Path) -> None:
    session, stages = session_of(ants)
    session.compare(True)
    first, second = session.sides
    assert (first.row, first.listed) == (second.row, second.listed)
    session.open(session.library.catalogue.nearest("ant_omni", "random_search"), 1)
    assert session.sides[1].listed.algorithm != first.listed.algorithm
    session.move("left", 1)
    assert session.sides[0].row == first.row
    session.playing = False
    session.seek(0.7)
    for side, stage in zip(session.sides, stages, strict=True):
        assert side.replay is not None
        assert np.array_equal(stage.last("pose")[0].positions, side.replay.at(0.7).positions)
    placements = [stage.last("show_archive")[2] for stage in stages]
    assert placements[1].centre[0] - placements[0].centre[0] > placements[0].size[0]
    session.compare(False)
    assert len(session.sides) == 1
    assert stages[1].told[-1][0] == "hide"


def test_time_passes_only_while_it_plays_and_begins_again(ants: Path) -> None:
    session, stages = session_of(ants)
    length = session.length
    assert length == pytest.approx(30 * 0.05)
    session.advance(0.5)
    assert session.seconds == 0.5
    session.speed = 2.0
    session.advance(0.25)
    assert session.seconds == 1.0
    session.playing = False
    session.advance(0.5)
    assert session.seconds == 1.0
    session.playing = True
    session.advance(length + 10)
    assert session.seconds == 0.0
    session.follow = True
    session.seek(length)
    assert session.sides[0].replay is not None
    way = session.sides[0].replay.centre[-1] - session.sides[0].replay.centre[0]
    assert np.allclose(stages[0].last("shift")[0], -way * (1, 1, 0))


def test_a_user_s_own_drawing(planes: Path) -> None:
    session, stages = session_of(planes / "noisy2/map_elites", draw=lambda x: np.outer(x[:2], [1, 2]))
    row = session.sides[0].row
    assert np.array_equal(
        stages[0].last("draw")[0], np.outer(session.sides[0].view.solution(row)[:2], [1, 2])
    )
    assert session.length == 0
    assert not session.is_moving


def test_another_fingerprint_is_said(ants: Path) -> None:
    run = ants / "ant_omni/map_elites/seed-0"
    here = replace(qdbench.load(run).task, reset_noise=0.3)  # type: ignore[type-var]
    session, _ = session_of(run, task=here)
    said = facts.about_run(session.sides[0])
    assert f"the task here has {here.fingerprint}: replays may differ" in said
    side = session.sides[0]
    assert side.replay is not None
    said = facts.about_elite(side, ("x", "y"))
    assert f"The replay has fitness {side.replay.fitness!r}, but the run stored" in said


def test_a_run_that_goes_on_is_followed(tmp_path: Path, ants: Path) -> None:
    """Its archive is not written yet: what was told so far is shown; the archive, when it is there."""
    copy = Path(copytree(ants / "ant_omni/map_elites/seed-0", tmp_path / "copy"))
    archive, corrected = (copy / name for name in ("archive.npz", "corrected.npz"))
    kept, log = archive.read_bytes(), (copy / "told.log").read_bytes()
    archive.unlink()
    corrected.unlink()
    edited(copy, status="running")
    (copy / "told.log").write_bytes(log[: len(log) * 3 // 4])  # the last block is being written
    session, _ = session_of(copy)
    side = session.sides[0]
    record = qdbench.load(copy).record
    fitness, descriptors = told_so_far(copy / "told.log", record.determinants)
    assert len(fitness) == 32 == len(descriptors)
    assert (copy / "told.log").stat().st_size == len(log) * 3 // 4  # another process writes it
    assert side.view.found.is_live
    assert (side.replay, session.is_outdated()) == (None, False)
    assert "still going" in facts.about_run(side)
    (copy / "told.log").write_bytes(log)
    assert session.is_outdated()
    session.refresh()
    assert session.sides[0].view.found.n_evaluations == 64
    archive.write_bytes(kept)
    edited(copy, status="stopped")
    assert session.is_outdated()
    session.refresh()
    assert not session.sides[0].view.found.is_live
    assert session.sides[0].replay is not None


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)<"


def test_hostile_names_are_text(ants: Path, tmp_path: Path) -> None:
    good = copytree(ants / "ant_omni/map_elites/seed-0", tmp_path / HOSTILE / "good")
    bad = copytree(good, tmp_path / HOSTILE / "bad")
    (bad / "run.json").write_text("{")
    found = catalogue([tmp_path])
    assert len(found.runs) == len(found.skipped) == 1
    session, _ = session_of(tmp_path)
    side = session.sides[0]
    object.__setattr__(side.view.run.record, "name", HOSTILE)
    object.__setattr__(side.view.cast, "remark", HOSTILE)
    pages = [
        facts.about_run(side), facts.about_archive(session), facts.about_elite(side, (HOSTILE, HOSTILE)),
        facts.about_skipped(found), facts.failure(HOSTILE),
    ]  # fmt: skip
    assert sum("&lt;img src=x" in page for page in pages) == 4
    assert not any("<img" in page or "<script" in page for page in pages)


def test_the_last_of_several_changes_counts() -> None:
    box, done = Mailbox(), list[str]()
    for key, what in (("a", "1"), ("b", "2"), ("a", "3")):
        box.post(key, lambda what=what: done.append(what))  # type: ignore[misc]
    actions = box.take(0)
    assert actions is not None
    for action in actions:
        action()
    assert done == ["2", "3"]
    assert box.take(0.01) == []
    threading.Timer(0.05, box.close).start()
    assert box.take(None) is None


# The server and the command


def listening(port: int, host: str) -> bool:
    """Ask for a page, and read until the server closes the connection: so it has nothing left to close."""
    with socket.socket() as probe:
        probe.settimeout(20)
        if probe.connect_ex((host, port)):
            return False
        probe.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while probe.recv(2**16):
            pass
        return True


def own_addresses() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return []
        return [probe.getsockname()[0]]


def test_the_page_is_on_this_computer_only(ants: Path) -> None:
    with qdbench.explore(ants, port=0, browser=False) as explorer:
        port = int(explorer.address.rpartition(":")[2])
        assert explorer.address == f"http://{HOST}:{port}"
        assert listening(port, HOST)
        assert not any(listening(port, address) for address in own_addresses() if address != HOST)
        assert explorer._server.request_share_url() is None
        with pytest.raises(InvalidInput, match=f"port {port} cannot be used"):
            qdbench.explore(ants, port=port, browser=False)
        with socket.socket() as first:  # without a wish, the next free port
            first.bind((HOST, 0))
            assert free_port(None) in PORTS
    assert not listening(port, HOST)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"port": -1}, "port is -1; give"),
        ({"port": "x"}, "port is 'x'; give"),
        ({"browser": 3}, "browser is 3; give True or False"),
        ({"trust": "no"}, "trust is 'no'"),
        ({"task": 4}, "the task is 4; give an object"),
        ({"draw": 5}, "draw is 5"),
        ({"run": 6}, "run is 6; give a folder"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: Any, sentence: str, ants: Path) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        qdbench.explore(**{"run": ants, "browser": False, **arguments})


def test_the_command_serves_until_ctrl_c(cli: Cli, ants: Path) -> None:
    process = cli.start("explore", str(ants), "--no-browser", "--port", "0")
    assert process.stdout is not None
    first, following = process.stdout.readline(), process.stdout.readline()
    assert first.startswith("Exploring 2 runs: http://127.0.0.1:")
    assert following.startswith("Next: open this address in a browser")
    port = int(first.rpartition(":")[2])
    assert listening(port, HOST)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    # Python writes a line again that a signal interrupts between writing and forgetting it
    assert (process.returncode, out.removeprefix(following), err) == (0, "Ended.\n", "")


def test_bad_input_is_one_sentence_and_exit_code_2(cli: Cli, ants: Path) -> None:
    run = ants / "ant_omni/map_elites/seed-0"
    damaged, empty = (Path(copytree(run, cli.folder / name)) for name in ("damaged", "empty"))
    data = bytearray((damaged / "archive.npz").read_bytes())
    data[len(data) // 3] ^= 1
    (damaged / "archive.npz").write_bytes(data[: len(data) // 2])
    for name in ("archive.npz", "corrected.npz"):
        (empty / name).unlink()
    rewrite(empty / "run.json", status="failed", reason="no luck")
    (cli.folder / "nothing").mkdir()
    with socket.socket() as used:
        used.bind((HOST, 0))
        used.listen()
        port = str(used.getsockname()[1])
        for arguments, sentence in [
            (["missing"], "'missing' is not a folder"),
            (["damaged"], "archive.npz is damaged and was not used"),
            ([str(run), "--port", port], f"port {port} cannot be used"),
        ]:
            done = cli("explore", "--no-browser", *arguments)
            assert done.returncode == 2, arguments
            assert sentence in done.stderr
            assert done.stderr.count("\n") == 1
            assert done.stdout == ""
    for folder, sentence in (
        ("nothing", "holds no run"),
        ("empty", "empty cannot be explored: it has no archive; its status is failed"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            qdbench.explore(cli.folder / folder, browser=False)
    for name, sentence in (("x", "give module:function"), ("no_such:f", "cannot load --draw 'no_such:f'")):
        with pytest.raises(InvalidInput, match=sentence):
            _function(name)


# How fast


@pytest.mark.alone
def test_ten_thousand_cells_open_in_seconds_and_change_colour_at_once(tmp_path: Path) -> None:
    """Times of the server, with the encoding of the picture."""
    import imageio.v3 as imageio

    task = qdbench.FunctionTask(
        name="wide", function=lambda x: (x[:, 2], x[:, :2]), n_parameters=3, version=1, cells=(100, 100),
        descriptor_bounds=((-1, 1), (-1, 1)), fitness_bounds=(-1, 1),
    )  # fmt: skip
    out = qdbench.run(task, "random_search", evaluations=65536, batch_size=65536, corrections=1,
                      reevaluations=2, out=tmp_path).path  # fmt: skip

    def most(action: Any, times: Sequence[int] = range(3)) -> float:
        took = []
        for i in times:
            begun = time.thread_time()  # of the processor: other programs do not count
            action(i)
            took.append(time.thread_time() - begun)
        return max(took)

    begun = time.perf_counter()
    session, stages = session_of(out)
    assert len(session.sides[0].plane.elites) > 9_900
    opened = time.perf_counter() - begun
    assert opened < 5

    def encoded() -> None:
        imageio.imwrite("<bytes>", stages[0].last("recolour")[0], extension=".png")

    def recolour(i: int) -> None:
        session.colour_by(("return rate", "corrected fitness", "fitness")[i])
        encoded()

    def fade(i: int) -> None:
        session.fade_below(i / 10)
        facts.about_archive(session)
        encoded()

    slowest = most(recolour), most(fade)
    print(f"10,000 cells: {opened:.2f} s to open; colour {slowest[0]:.3f} s, threshold {slowest[1]:.3f} s")
    assert max(slowest) < 0.1


@pytest.mark.alone
@pytest.mark.parametrize(("name", "steps", "most"), [("ant_omni", 250, 1.0), ("humanoid_uni", 1000, 3.0)])
def test_the_first_frame_comes_soon(name: str, steps: int, most: float, tmp_path: Path) -> None:
    """From the choice of a cell to the first pose that is sent; no fall ends the episode."""
    task = replace(qdbench.TASKS[name], episode_length=steps, ending=NEVER)
    out = qdbench.run(task, "random_search", evaluations=8, batch_size=8, out=tmp_path).path
    session, stages = session_of(out, task=task)
    row = session.sides[0].row
    session.library.replays = Replays()
    begun = time.perf_counter()
    session.select(row)
    took = time.perf_counter() - begun
    assert session.sides[0].replay is not None
    assert session.sides[0].replay.steps == steps
    assert stages[0].last("pose")
    print(f"{name}, {steps} steps: {took:.2f} s to the first frame")
    assert took < most
