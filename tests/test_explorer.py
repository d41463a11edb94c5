"""The explorer without a browser: places, colours, values, replays."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from exploring import session_of, views
from noisy_runs import SHAPES
from qdbench.analysis.measures import PlacedRun
from qdbench.archives.geometry import Cvt, Grid
from qdbench.archives.layout import nested, nested_places
from qdbench.experiments.plan import reevaluation_seeds
from qdbench.explorer import facts
from qdbench.explorer.catalogue import catalogue
from qdbench.explorer.colours import FADED, limits, picture, tiles, viridis
from qdbench.explorer.library import MOST_VIEWS, Library
from qdbench.explorer.placement import placement_of
from qdbench.explorer.plane import STEPS, Direction
from qdbench.explorer.replays import Replay, Replays, replay_of
from qdbench.explorer.view import view_of

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
        assert view.values("return rate")[row] == pytest.approx(again.sum() / len(fitness))
        for name, value in {
            "corrected fitness": fitness.mean(),
            "fitness spread": fitness.std(ddof=1),
            "descriptor spread": np.sqrt(descriptors.var(axis=0, ddof=1).sum()),
        }.items():
            found = view.values(name)[row]  # type: ignore[arg-type]
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


def test_seeds_of_ghosts_are_those_of_re_evaluations(ants: Path) -> None:
    view = views(ants)[0]
    record, elite = view.run.record, int(view.run.archive.evaluations[0, 0])
    seeds = reevaluation_seeds(record.seed, record.algorithm.name, elite, 2)
    task = view.cast.task
    alone = [task.rollout(view.solution(0), int(seed)).fitness for seed in seeds]
    library = Library(catalogue([view.run.path]))
    assert [ghost.fitness for ghost in library.ghosts(view, 0, 2)] == alone
