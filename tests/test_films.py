"""Films: the robot as MuJoCo has it, the elites that were stored, and files that move."""

from __future__ import annotations

import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageSequence

import qdbench
from conftest import Cli
from filmed_runs import filmed_run
from html_page import parsed, require_sound
from qdbench import InvalidInput
from qdbench.films.camera import Camera
from qdbench.films.choosing import chosen_elites
from qdbench.films.drawing import LIT
from qdbench.films.files import filmstrip
from qdbench.films.filming import Film, film_run
from qdbench.films.packing import LEVELS, packed_track, thinner
from qdbench.films.scenes import Scene, end_cell, tile_of
from qdbench.films.solids import Solid, rotations, solids
from qdbench.films.takes import Take
from qdbench.robots import Robot
from qdbench.robots.anatomy import compile_robot
from qdbench.store.loading import StoredRun

ROBOTS = ("hopper_uni", "walker_uni", "halfcheetah_uni", "ant_omni", "humanoid_omni", "hexapod_omni")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    return filmed_run(tmp_path_factory.mktemp("films"), "ant_omni", length=30)


@pytest.fixture(scope="module")
def film(run: StoredRun) -> Film:
    found = film_run(run)
    assert found is not None
    return found


# Solids


@pytest.mark.parametrize("name", ROBOTS)
def test_solids_are_where_mujoco_has_the_geoms(name: str) -> None:
    robot = qdbench.TASKS[name].anatomy
    model, data = robot.model, mujoco.MjData(robot.model)
    data.qpos[:] = robot.start_qpos + 0.3 * np.random.default_rng(1).standard_normal(model.nq)
    mujoco.mj_kinematics(model, data)
    found = solids(robot)
    geoms = [geom for geom in range(model.ngeom) if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_PLANE]
    assert len(found) == len(geoms)
    for solid, geom in zip(found, geoms, strict=True):
        turned = rotations(data.xquat[solid.body + 1])
        points = solid.points @ turned.T + data.xpos[solid.body + 1]
        np.testing.assert_allclose(points.mean(axis=0), data.geom_xpos[geom], atol=1e-9)
        along = data.geom_xmat[geom].reshape(3, 3)
        local = (points - data.geom_xpos[geom]) @ along
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE:
            half = model.geom_size[geom][1]
            np.testing.assert_allclose(local, [[0, 0, -half], [0, 0, half]], atol=1e-9)
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
            np.testing.assert_allclose(np.abs(local), np.tile(model.geom_size[geom], (8, 1)), atol=1e-9)
            assert len(solid.faces) == 6


ODD = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1 .2 .2 .2"/></asset><worldbody>
<geom name="floor" type="plane" size="1 1 1"/><geom type="box" size=".1 .2 .3" pos="2 0 0"/>
<body pos="0 0 1"><joint name="j"/><geom type="cylinder" size=".1 .4" quat=".7 .7 0 0"/>
<geom type="ellipsoid" size=".1 .2 .4"/><geom type="mesh" mesh="m"/></body></worldbody>
<actuator><motor joint="j" ctrlrange="-1 1"/></actuator></mujoco>"""


def test_every_kind_of_solid_is_convex_and_faces_outwards() -> None:
    robot = compile_robot(Robot(name="odd", mjcf=ODD, control_step=0.02, physics_steps=1))
    found = solids(robot)
    assert [solid.body for solid in found] == [-1, 0, 0, 0]
    for solid in found:
        assert solid.radius == 0
        _require_convex(solid)
    assert len(found[1].faces) == 14  # two ends and twelve sides
    assert len(found[3].faces) == 4  # the inner vertex of the mesh is no corner


def _require_convex(solid: Solid) -> None:
    used = solid.points[sorted({i for face in solid.faces for i in face})]
    for face in solid.faces:
        a, b, c = solid.points[list(face[:3])]
        normal = np.cross(b - a, c - b)
        assert ((used - a) @ normal).max() < 1e-9


# Which elites


def test_the_best_the_median_and_the_farthest(run: StoredRun) -> None:
    archive = run.archive
    chosen = chosen_elites(archive)
    rows = [row for row, _ in chosen]
    assert [why for _, why in chosen] == ["best", "median", *["diverse"] * 4]
    assert len(set(rows)) == 6
    assert archive.fitness[rows[0]] == archive.fitness.max()
    assert archive.fitness[rows[1]] == np.sort(archive.fitness)[(len(archive) - 1) // 2]
    low, high = np.asarray(archive.geometry.bounds).T
    places = (archive.descriptors - low) / (high - low)
    for i, row in enumerate(rows[2:], 2):
        apart = np.linalg.norm(places[:, None] - places[rows[:i]], axis=2).min(axis=1)
        assert apart[row] == apart.max()


def test_few_elites_are_all_shown(run: StoredRun) -> None:
    archive = run.archive
    for n in range(4):
        few = replace(
            archive,
            **{
                name: getattr(archive, name)[:n]
                for name in ("fitness", "descriptors", "evaluations", "seeds", "cells", "steps")
            },
        )
        assert sorted(row for row, _ in chosen_elites(few)) == list(range(n))


# What they show


def test_a_film_is_of_the_stored_episodes(run: StoredRun, film: Film) -> None:
    assert run.corrections is not None
    point = run.final_point
    assert point is not None
    for one in film.performers:
        assert one.same
        assert one.take.fitness == one.stored == run.archive.fitness[one.row]
        episode = qdbench.replay(run, one.row)
        apart = round(1 / (one.take.rate * float(episode.time[1])))
        np.testing.assert_array_equal(one.take.qpos, episode.qpos[::apart].astype(np.float32))
        np.testing.assert_array_equal(one.take.path, episode.centre_of_mass[::apart].astype(np.float32))
        again = run.corrections.fitness[point.rows[one.row]]
        assert [ghost.fitness for ghost in one.ghosts] == again[: len(one.ghosts)].tolist()
        assert one.again is not None
        assert one.again.fitness == pytest.approx(again.mean())
        there = run.corrections.descriptors[point.rows[one.row]]
        assert one.again.returned == (run.geometry.cells(there) == run.archive.cells[one.row]).sum()
        assert tuple(one.cell) == np.unravel_index(run.archive.cells[one.row], run.grid.shape)


def test_without_corrections_there_are_no_ghosts(tmp_path: Path) -> None:
    found = film_run(filmed_run(tmp_path, corrections=0))
    assert found is not None
    assert all(one.ghosts == () and one.again is None for one in found.performers)


def test_what_was_not_simulated_as_it_was_is_said(run: StoredRun) -> None:
    other = replace(run.archive, fitness=run.archive.fitness + 1)
    changed = StoredRun(run.path, run.record)
    vars(changed).update(archive=other, corrections=None)
    found = film_run(changed, [(0, "best")], ghosts=0)
    assert found is not None
    assert not found.performers[0].same


def test_a_diverged_episode_ends_before_it_diverged(run: StoredRun) -> None:
    episode = qdbench.replay(run)
    broken = episode.qpos.copy()
    broken[-1] = np.nan
    take = Take.of(replace(episode, valid=False, qpos=broken))
    assert np.isfinite(take.qpos).all()
    assert len(take) == len(Take.of(episode)) - 1


def test_packed_tracks_lose_less_than_a_step(film: Film) -> None:
    take = film.performers[0].take
    packed = packed_track(take)
    columns, feet = unpacked(packed, take.qpos.shape[1] + 3)
    given = np.concatenate([take.qpos, take.path], axis=1)
    width = np.ptp(given, axis=0)
    assert (np.abs(columns - given) <= 0.51 * width / LEVELS + 2e-5).all()
    np.testing.assert_array_equal(feet, take.contacts)


def unpacked(packed: dict[str, Any], n_columns: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What the player does, in NumPy."""
    n = packed["frames"]
    content = np.frombuffer(zlib.decompress(b64decode(packed["data"])), np.uint8).astype(np.int64)
    numbers = content[: n * n_columns] + 256 * content[n * n_columns : 2 * n * n_columns]
    signed = np.where(numbers % 2, -(numbers + 1) // 2, numbers // 2).reshape(n_columns, n)
    columns = np.array(packed["low"]) + signed.cumsum(axis=1).T * np.array(packed["step"])
    return columns, content[2 * n * n_columns :].reshape(-1, n).T > 0


def test_thinner_films_are_smaller(film: Film) -> None:
    sizes = [
        sum(len(packed_track(take)["data"]) for one in thin for take in (one.take, *one.ghosts))
        for thin in thinner(film.performers)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 4


# How they are drawn


def test_the_camera_projects() -> None:
    camera = Camera(np.array([1.0, 2.0, 0.5]), 3.0, 30.0, 20.0, 200, 100)
    np.testing.assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
    places, depths = camera.project(camera.target + camera.axes * [[0.5], [0.5], [1.0]])
    half = float(0.5 * camera.scale / 3)
    np.testing.assert_allclose(places, np.array([[100 + half, 50], [100, 50 - half], [100, 50]]))
    np.testing.assert_allclose(depths, [3, 3, 4])


@pytest.mark.parametrize("name", ["halfcheetah_uni", "hexapod_omni"])
def test_a_loaded_foot_is_lit(name: str) -> None:
    task = replace(qdbench.TASKS[name], episode_length=20)
    solution = task.random_solutions(1, qdbench.stream(3, "film"))
    take = Take.of(task.rollout(solution, 0))
    lit = []
    for contacts in (np.zeros_like(take.contacts), np.ones_like(take.contacts)):
        scene = Scene(task, _alone(replace(take, contacts=contacts)), 320, 200)
        pixels = np.asarray(scene.picture(0)).astype(int)
        lit.append(int((np.abs(pixels - LIT).sum(axis=2) < 60).sum()))
    assert lit[0] == 0
    assert lit[1] > 8


def _alone(take: Take) -> Any:
    from qdbench.films.filming import Performer

    return Performer(0, "best", take, (), (0,), take.fitness, True, None)


def test_pictures_change_with_time_theme_and_ghosts(film: Film) -> None:
    one = film.performers[0]
    shown = [np.asarray(Scene(film.task, one, 160, 90).picture(time)) for time in (0.0, 1.0)]
    dark = np.asarray(Scene(film.task, one, 160, 90, "dark").picture(0.0))
    alone = np.asarray(Scene(film.task, replace(one, ghosts=()), 160, 90).picture(1.0))
    assert shown[0].shape == (90, 160, 3)
    assert (shown[0] != shown[1]).any()
    assert dark.mean() < 100 < 180 < shown[0].mean()
    assert (alone != shown[1]).any()


def test_the_cell_that_an_omni_elite_walks_to(film: Film) -> None:
    one = film.performers[0]
    corners = end_cell(film.task, one)
    assert corners is not None
    inside = (corners.min(axis=0) <= one.take.descriptor) & (one.take.descriptor <= corners.max(axis=0))
    assert inside.all()
    assert end_cell(qdbench.TASKS["ant_uni"], one) is None


def test_tiles_fit_the_robot() -> None:
    assert [tile_of(size) for size in (0.66, 1.6, 1.9, 40.0)] == [0.2, 0.5, 1.0, 20.0]


def test_a_filmstrip_has_as_many_pictures_as_asked_for(film: Film) -> None:
    strip = filmstrip(Scene(film.task, film.performers[0], 80, 60), 5, columns=3)
    assert strip.size == (3 * 84 - 4, 2 * 64 - 4)


# Files


def test_film_writes_what_the_name_says(run: StoredRun, tmp_path: Path) -> None:
    import imageio_ffmpeg

    how: dict[str, Any] = {"size": (96, 64), "rate": 10, "ghosts": 1}
    seen: list[tuple[int, int]] = []
    gif = qdbench.film(run, out=tmp_path / "a.gif", progress=lambda *n: seen.append(n), **how)
    with Image.open(gif) as moving:
        assert moving.size == (96, 64)
        assert (
            sum(1 for _ in ImageSequence.Iterator(moving)) == seen[-1][0] == 16
        )  # 30 steps of 0.05 s, 10 pictures per second
        assert moving.info["duration"] == 100
    mp4 = qdbench.film(run, cell=run.archive.cells[3], out=tmp_path / "a.mp4", speed=0.5, **how)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(mp4))
    assert frames == 31
    assert seconds == pytest.approx(3.1, abs=0.05)
    with Image.open(qdbench.film(run, 2, out=tmp_path / "a.png", **how)) as strip:
        assert strip.size == (3 * 100 - 4, 2 * 68 - 4)
    root = parsed(qdbench.film(run, out=tmp_path / "a.html").read_text())
    require_sound(root)
    assert next(root.all("h1")).text == "ant_omni, MAP-Elites, seed 0: best"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gif", "a.html", "a.mp4", "a.png"]


def test_the_command(cli: Cli, run: StoredRun) -> None:
    done = cli(
        "film", str(run.path), "--elite", "1", "--out", "gait.png", "--size", "96x64", "--theme", "dark"
    )
    assert done.returncode == 0, done.stderr
    first, following = done.stdout.splitlines()
    assert first.startswith("Written: gait.png (")
    assert following == f"Next: open gait.png in a viewer; qdbench report {run.path} shows more elites"
    assert (cli.folder / "gait.png").stat().st_size > 1000


REFUSED = {
    "no folder": (["film", "nowhere"], "nowhere"),
    "both": (["film", "RUN", "--elite", "1", "--cell", "2"], "give --elite or --cell, not both"),
    "no elite": (["film", "RUN", "--elite", "99999"], "elite is 99999"),
    "no number": (["film", "RUN", "--cell", "a,b"], "'a,b' is not an elite"),
    "ending": (["film", "RUN", "--out", "gait.avi"], "its name must end in .html or .gif or .mp4 or .png"),
    "size": (["film", "RUN", "--size", "640"], "size is [640]; give width and height"),
    "odd size": (["film", "RUN", "--size", "641x360"], "even numbers"),
    "words": (["film", "RUN", "--size", "large"], "--size is 'large'; write it like 640x360"),
    "rate": (
        ["film", "RUN", "--rate", "0", "--out", "a.gif"],
        "rate is 0.0; give a finite number of 1 or more",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(
    case: str, run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from qdbench import cli as command_line

    words, expected = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["qdbench", *(str(run.path) if word == "RUN" else word for word in words)]
    )
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_task_without_a_robot_cannot_be_filmed(tmp_path: Path) -> None:
    found = qdbench.run("arm", "map_elites", evaluations=64, out=tmp_path, batch_size=32)
    with pytest.raises(InvalidInput, match="has no robot"):
        qdbench.film(found, out=tmp_path / "a.gif")


def test_what_is_missing_is_named(run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qdbench.films.files.find_spec", lambda name: None if name == "imageio_ffmpeg" else 1)
    with pytest.raises(InvalidInput, match=r"needs imageio-ffmpeg: pip install 'qdbench\[film\]'"):
        qdbench.film(run, out=tmp_path / "a.mp4")
    monkeypatch.setattr("qdbench.films.files.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="films need Pillow"):
        qdbench.film(run, out=tmp_path / "a.png")
