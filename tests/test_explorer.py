"""The explorer without a browser: places, colours, values, replays, sessions, and the command."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any, get_args

import numpy as np
import pytest

import qdbench
from conftest import Cli
from noisy_runs import ALGORITHMS, SHAPES, noisy
from noisy_runs import run as noisy_run
from qdbench import InvalidInput
from qdbench.analysis.measures import PlacedRun
from qdbench.archives.geometry import Cvt, Grid
from qdbench.archives.layout import nested, nested_places
from qdbench.cli.explore import _function
from qdbench.experiments.plan import reevaluation_seeds
from qdbench.explorer import facts
from qdbench.explorer.catalogue import catalogue
from qdbench.explorer.colours import FADED, limits, picture, tiles, viridis
from qdbench.explorer.library import MOST_VIEWS, Library
from qdbench.explorer.mailbox import Mailbox
from qdbench.explorer.placement import placement_of
from qdbench.explorer.plane import STEPS, Direction
from qdbench.explorer.replays import Replay, Replays, replay_of
from qdbench.explorer.server import HOST, PORTS, free_port
from qdbench.explorer.session import Session
from qdbench.explorer.view import View, view_of
from qdbench.store.told_log import told_so_far
from qdbench.tasks.endings import NEVER
from running import rewrite
from toy_runs import edited


class Recorded:
    """A stage, or a floor, that notes what it is told to draw."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *what: self.told.append((name, what))

    def last(self, name: str) -> tuple[Any, ...]:
        return next(what for said, what in reversed(self.told) if said == name)


def session_of(*paths: Path, **how: Any) -> tuple[Session, list[Any]]:
    stages: list[Any] = [Recorded(), Recorded()]
    library = Library(catalogue(paths), **how)
    session = Session(library, stages, Recorded())
    session.open(library.first())
    return session, stages


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every algorithm in one, two, four and six dimensions."""
    out = tmp_path_factory.mktemp("planes")
    for dimensions in SHAPES:
        for algorithm in ALGORITHMS:
            noisy_run(out, noisy(dimensions), algorithm, 0, corrections=1)
    return out


@pytest.fixture(scope="module")
def ants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms on ant_omni, corrected."""
    out = tmp_path_factory.mktemp("ants")
    task = qdbench.make("ant_omni", episode_length=30, cells=(15, 15), descriptor_bounds=((-1, 1), (-1, 1)))
    for algorithm in ("map_elites", "random_search"):
        options = {"evaluations": 64, "batch_size": 32, "corrections": 1, "reevaluations": 3, "out": out}
        qdbench.run(task, algorithm, **options)  # type: ignore[arg-type]
    return out


def views(out: Path) -> list[View]:
    return [view_of(listed.path) for listed in catalogue([out]).runs]


# Where elites are


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (2, 3, 2, 4), (2, 1, 3, 2, 2, 3)])
def test_places_of_cells_are_those_of_the_picture(shape: tuple[int, ...]) -> None:
    cells = np.arange(np.prod(shape))
    columns, rows = nested_places(cells, shape)
    assert np.array_equal(nested(cells.reshape(shape))[rows, columns], cells)


def test_every_elite_is_where_its_descriptor_is(planes: Path) -> None:
    seen = set()
    for view in views(planes):
        for which in view.whichs:
            plane = view.plane(which)
            seen.add((view.found.geometry.kind, len(plane.bounds), which))
            assert len(plane.elites), view.run.path
            points = plane.points(view.descriptors(which)[plane.elites])
            pixel = 1 / np.array(plane.rows.shape[::-1])
            for row, point, centre in zip(plane.elites, points, plane.centres, strict=True):
                inside = np.clip(point, 1e-9, 1 - 1e-9)
                if isinstance(plane.cells, Cvt):  # a region may end within a pixel
                    around = inside + pixel * [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
                    assert row in [plane.row_at(place) for place in around]
                else:
                    assert plane.row_at(inside) == row
                if isinstance(plane.cells, Grid):
                    assert plane.row_at(centre) == row
            assert plane.row_at(np.array([1.2, 0.5])) == plane.row_at(np.array([0.5, -0.1])) == -1
    assert len(seen) == 3 * len(SHAPES) * 2


def test_the_elites_on_show_are_those_that_count(planes: Path) -> None:
    for view in views(planes):
        placed, point = PlacedRun(view.run), view.run.final_point
        assert point is not None
        if view.plane("as found").cells is not view.found.geometry:
            continue  # projected onto the task's grid
        after = placed.corrected(point).elites
        assert set(view.plane("as found").elites) == set(placed.rows)
        assert set(view.plane("corrected").elites) == set(after.evaluations[:, 0])
        assert sorted(view.fitness("corrected")[view.plane("corrected").elites]) == sorted(after.fitness)


def test_arrow_keys_reach_neighbours_in_their_direction(planes: Path) -> None:
    for view in views(planes):
        plane = view.plane("as found")
        for row in plane.elites[:10]:
            for direction in get_args(Direction):
                other = plane.beside(int(row), direction)
                way = (plane.centre(other) - plane.centre(int(row))) @ np.array(STEPS[direction])
                assert way > 0 or other == row
    full = view_of(planes / "noisy2/map_elites/seed-0").plane("as found")
    right = full.beside(int(full.elites[0]), "right")
    assert right != full.elites[0] or full.centre(right)[0] > 0.8


def test_the_outline_of_a_cell_is_its_square(planes: Path) -> None:
    plane = view_of(planes / "noisy2/map_elites/seed-0").plane("as found")
    row = int(plane.elites[3])
    outline = plane.outline(row)
    assert outline.shape == (4, 2, 2)
    assert np.allclose(outline.reshape(-1, 2).mean(axis=0), plane.centre(row))
    height, width = plane.rows.shape
    assert np.allclose(np.ptp(outline.reshape(-1, 2), axis=0), (1 / width, 1 / height))


@pytest.mark.parametrize("in_metres", [True, False])
@pytest.mark.parametrize("side", [0, 1])
def test_a_click_hits_what_is_drawn_there(planes: Path, in_metres: bool, side: int) -> None:
    plane = view_of(planes / "noisy2/map_elites/seed-0").plane("as found")
    placement = placement_of(plane, side, 2, in_metres=in_metres, has_robot=True)
    eye = np.array([0.3, -9.0, 4.0])
    w, x, y, z = placement.wxyz
    turn = np.array([[1, 0, 0], [0, w * w - x * x, -2 * w * x], [0, 2 * w * x, w * w - x * x]])
    assert (y, z) == (0, 0)
    for row in plane.elites[:5]:
        there = turn @ placement.local(plane.centre(int(row))) + placement.centre
        hit = placement.hit(eye, (there - eye) / np.linalg.norm(there - eye))
        assert hit is not None
        assert hit[0] == pytest.approx(np.linalg.norm(there - eye))
        assert plane.row_at(hit[1]) == row
    assert placement.hit(eye, np.array([0.0, -1.0, 1.0])) is None


# Colours


def test_colours_are_viridis() -> None:
    from matplotlib import colormaps

    shares = np.linspace(0, 1, 101)
    theirs = np.array(colormaps["viridis"](shares))[:, :3] * 255
    assert np.abs(viridis(shares) - theirs).max() < 6
    assert viridis(np.array([np.nan])).tolist() == [[150, 150, 150]]
    assert limits(np.array([np.nan, 3.0, -1.0])) == (-1.0, 3.0)
    assert limits(np.array([np.nan])) == (0.0, 1.0)


def test_a_picture_has_the_colour_of_every_elite(planes: Path) -> None:
    view = view_of(planes / "noisy2/map_elites/seed-0")
    plane = view.plane("as found")
    n = len(view.found.fitness)
    colours = np.arange(3 * n, dtype=np.uint8).reshape(n, 3)
    faded = np.arange(n) % 2 == 0
    image = picture(tiles(plane), colours, faded)
    height, width = image.shape[:2]
    for row, (x, y) in zip(plane.elites, plane.centres, strict=True):
        pixel = image[int(y * height), int(x * width)]
        assert pixel[:3].tolist() == colours[row].tolist()
        assert pixel[3] == (FADED if faded[row] else 255)


def test_values_are_those_of_the_re_evaluations(planes: Path) -> None:
    view = view_of(planes / "noisy2/map_elites/seed-0")
    made, archive = view.run.corrections, view.run.archive
    assert made is not None
    for row in range(len(archive)):
        (here,) = np.flatnonzero(made.keys == archive.evaluations[row, 0])
        fitness, descriptors = made.fitness[here], made.descriptors[here]
        valid = np.isfinite(fitness)
        again = archive.geometry.cells(descriptors[valid]) == archive.cells[row]
        assert view.values("found again")[row] == pytest.approx(again.sum() / len(fitness))
        for name, value in {
            "corrected fitness": fitness.mean(),
            "fitness spread": fitness.std(ddof=1),
            "scatter": np.sqrt(descriptors.var(axis=0, ddof=1).sum()),
        }.items():
            found = view.values(name)[row]  # type: ignore[index, arg-type]
            assert (np.isnan(found) and not valid.all()) or found == pytest.approx(value)


# Replays


def test_a_replay_is_the_stored_episode_and_ghosts_are_the_re_evaluations(ants: Path) -> None:
    session, stages = session_of(ants / "ant_omni/map_elites")
    view = session.sides[0].view
    made = view.run.corrections
    assert made is not None
    for row in view.plane("as found").elites[:3].tolist():
        session.select(row)
        session.show_ghosts(3)
        side = session.sides[0]
        assert side.replay is not None
        assert side.replay.fitness == view.found.fitness[row]
        assert np.array_equal(side.replay.descriptor, view.found.descriptors[row])
        (here,) = np.flatnonzero(made.keys == view.run.archive.evaluations[row, 0])
        assert [ghost.fitness for ghost in side.ghosts] == made.fitness[here].tolist()
        path, ends = stages[0].last("trace")
        assert np.array_equal(path, side.replay.centre)
        assert len(ends) == 3
        assert "differ" not in facts.about_elite(side, ("x", "y"))


def test_a_robot_walks_to_its_cell(ants: Path) -> None:
    """On the floor, at true scale: the last place of the centre of mass is in the chosen cell."""
    session, stages = session_of(ants / "ant_omni/map_elites")
    for row in session.sides[0].plane.elites[:5].tolist():
        session.select(row)
        session.playing = False
        session.seek(1e9)
        pose, _ = stages[0].last("pose")
        _, plane, placement = stages[0].last("show_archive")
        hit = placement.hit(placement.start + pose.centre + (0, 0, 5), np.array([0.0, 0.0, -1.0]))
        assert hit is not None
        low, high = plane.bounds.T
        there = np.clip(hit[1], 0, 1 - 1e-9) if ((hit[1] < 0) | (hit[1] > 1)).any() else hit[1]
        assert plane.row_at(there) == row
        assert np.allclose(low + hit[1] * (high - low), pose.centre[:2])


def test_poses_are_those_of_the_episode_and_in_between_they_are_unit_quaternions(ants: Path) -> None:
    view = views(ants)[0]
    task, row = view.cast.task, 0
    episode = task.rollout(view.solution(row), view.seed(row))
    replay = replay_of(episode, task.robot.control_step)
    for step in (0, 7, episode.steps):
        pose = replay.at(step * replay.step_seconds)
        assert np.allclose(pose.positions[:-1], episode.body_positions[step], atol=1e-5)
        same = (pose.orientations[:-1] * episode.body_orientations[step]).sum(axis=1)
        assert np.allclose(np.abs(same), 1, atol=1e-5)
        assert np.allclose(pose.centre, episode.centre_of_mass[step])
    between = replay.at(7.5 * replay.step_seconds)
    assert np.allclose(np.linalg.norm(between.orientations, axis=1), 1, atol=1e-5)
    assert np.allclose(between.positions[:-1], episode.body_positions[7:9].mean(axis=0), atol=1e-5)
    assert np.array_equal(between.loaded, episode.contacts[7])
    assert np.array_equal(replay.at(1e9).positions, replay.at(replay.seconds).positions)


def test_a_diverged_episode_ends_before_its_last_state(ants: Path) -> None:
    view = views(ants)[0]
    episode = view.cast.task.rollout(view.solution(0), view.seed(0))
    broken = replace(episode, valid=False)
    for array in (broken.body_positions, broken.body_orientations, broken.centre_of_mass):
        array[-1] = np.nan
    replay = replay_of(broken, 0.05)
    assert np.isfinite(replay.positions).all()
    assert np.isfinite(replay.at(1e9).centre).all()
    assert all(len(values) == episode.steps - 1 for values in replay.terms.values())


def a_replay(n: int) -> Replay:
    nothing = np.zeros((n, 1), np.bool_)
    return Replay(1.0, np.zeros((n, 1, 3), np.float32), np.zeros((n, 1, 4), np.float32), nothing,
                  np.zeros((n, 3)), {}, 0.0, np.zeros(2), n, True)  # fmt: skip


def test_the_cache_of_replays_is_bounded_and_makes_each_once() -> None:
    one = a_replay(100).nbytes
    cache, made = Replays(most_bytes=5 * one), list[int]()

    def make(key: int) -> list[Replay]:
        made.append(key)
        return [a_replay(100)]

    for key in range(20):
        cache.get(key, lambda key=key: make(key))  # type: ignore[misc]
        cache.get(0, lambda: make(0))  # used again and again: it stays
        assert cache.nbytes <= 5 * one
    assert made == list(range(20))
    threads = [threading.Thread(target=cache.get, args=(99, lambda: make(99))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.count(99) == 1


def test_only_a_few_runs_stay_open(planes: Path) -> None:
    library = Library(catalogue([planes]))
    for listed in library.catalogue.runs:
        library.view(listed.path)
        assert len(library._views) <= MOST_VIEWS


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
    session.choose_which("corrected")
    assert session.sides[0].which == "corrected"
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
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((host, port)) == 0


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
    assert (process.returncode, out, err) == (0, "Ended.\n", "")


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
        session.colour_by(("found again", "corrected fitness", "fitness")[i])  # type: ignore[arg-type]
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
    task = replace(qdbench.make(name, episode_length=steps), ending=NEVER)
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


def test_seeds_of_ghosts_are_those_of_re_evaluations(ants: Path) -> None:
    view = views(ants)[0]
    record, elite = view.run.record, int(view.run.archive.evaluations[0, 0])
    seeds = reevaluation_seeds(record.seed, record.algorithm.name, elite, 2)
    task = view.cast.task
    alone = [task.rollout(view.solution(0), int(seed)).fitness for seed in seeds]
    library = Library(catalogue([view.run.path]))
    assert [ghost.fitness for ghost in library.ghosts(view, 0, 2)] == alone
