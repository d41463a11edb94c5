"""The explorer in a real browser: what a viewer does, and what becomes of it."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from threading import Event
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import qdbench
from html_page import CHROMIUM
from qdbench.explorer.server import Explorer
from qdbench.explorer.session import Session

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH"),
    pytest.mark.alone,  # software draws the scene: it needs the processor
]

FLAGS = [
    "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
WIDTH, HEIGHT, PANEL = 720, 400, 330
SCALE = 0.5
"""Small: software draws it. The panel is at the right."""
THRESHOLD, TIME = 0, 1
"""Sliders, from top to bottom."""
HOSTILE = "<img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms, corrected; and a damaged run in a folder with a hostile name."""
    out = tmp_path_factory.mktemp("explored")
    task = qdbench.make("ant_omni", episode_length=40, cells=(9, 9), descriptor_bounds=((-2, 2), (-2, 2)))
    for algorithm in ("map_elites", "random_search"):
        found = qdbench.run(
            task, algorithm, evaluations=64, batch_size=32, corrections=1, reevaluations=2, out=out
        )
    damaged = copytree(found.path, out / HOSTILE)
    (damaged / "run.json").write_text("{")
    return out


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    with qdbench.explore(folder, port=0, browser=False) as serving:
        yield serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


class Tab:
    """A browser tab, and the session behind it."""

    def __init__(self, browser: Any, explorer: Explorer) -> None:
        known = set(explorer._viewers)
        self.page: Page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE
        )
        self.page.set_default_timeout(90_000)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(explorer.address)
        self.until(lambda: bool(set(explorer._viewers) - known))
        (number,) = set(explorer._viewers) - known
        self.viewer = explorer._viewers[number]
        self.until(lambda: bool(self.session.sides) and self.session.sides[0].replay is not None)
        self.session.playing = False  # as long as it plays, software draws without a rest

    @property
    def session(self) -> Session:
        return self.viewer.session

    def until(self, condition: Callable[[], bool], seconds: float = 90) -> float:
        begun = time.perf_counter()
        while not condition():
            assert time.perf_counter() - begun < seconds, "it did not come"
            self.page.wait_for_timeout(20)
        return time.perf_counter() - begun

    def pixels(self) -> NDArray[np.int16]:
        """Return what the scene looks like."""
        shot = Image.open(io.BytesIO(self.page.screenshot()))
        return np.asarray(shot.convert("RGB"), np.int16)[:, : round(SCALE * (WIDTH - PANEL))]

    def changed(self, before: NDArray[np.int16]) -> Callable[[], bool]:
        """Return whether many pixels are not as they were."""
        return lambda: bool((np.abs(self.pixels() - before).max(axis=2) > 30).sum() > 12)

    def slide(self, which: int, key: str) -> None:
        """Move a slider by the keyboard: End is its right end."""
        self.page.get_by_role("slider").nth(which).focus()
        self.page.keyboard.press(key)

    def click_elite(self, row: int, number: int = 0) -> None:
        """Click where the camera shows the middle of an elite's cell."""
        side, camera = self.session.sides[number], self.viewer._client.camera
        placement = self.session._placement(number)
        place = placement.local(side.plane.centre(row)) + placement.centre
        w, *axis = camera.wxyz
        back = place - camera.position  # turned by the inverse of the camera's quaternion
        across = np.cross(axis, back)
        x, y, z = back - 2 * w * across + 2 * np.cross(axis, across)
        scale = camera.image_height / 2 / np.tan(camera.fov / 2)
        box = self.page.locator("canvas").first.bounding_box()
        assert box is not None
        self.page.mouse.click(
            box["x"] + box["width"] / 2 + scale * x / z, box["y"] + box["height"] / 2 + scale * y / z
        )


@pytest.fixture(scope="module")
def tab(browser: Any, explorer: Explorer) -> Iterator[Tab]:
    opened = Tab(browser, explorer)
    opened.page.get_by_text("Threshold").wait_for()
    yield opened
    opened.page.close()


def paused(tab: Tab) -> None:
    if tab.session.playing:
        tab.page.keyboard.press("Space")
        tab.until(lambda: not tab.session.playing)


def another(tab: Tab, number: int = 0) -> int:
    """Return an elite that is not chosen, not under the robot, and not at the edge."""
    side = tab.session.sides[number]
    away = [row for row in side.plane.elites if row != side.row and side.plane.centre(row)[1] < 0.45]
    return int(away[0])


def test_a_click_on_a_cell_shows_its_robot_walking(tab: Tab) -> None:
    row = another(tab)
    tab.click_elite(row)
    tab.until(lambda: tab.session.sides[0].row == row and tab.session.sides[0].replay is not None)
    side = tab.session.sides[0]
    assert side.replay is not None
    assert side.replay.fitness == side.view.found.fitness[row]
    tab.page.get_by_text(str(side.view.seed(row))).wait_for()
    first = tab.pixels()
    tab.page.keyboard.press("Space")
    tab.until(lambda: tab.session.playing and tab.session.seconds > 0.3)
    paused(tab)
    assert not np.array_equal(side.replay.at(tab.session.seconds).positions, side.replay.at(0).positions)
    tab.until(tab.changed(first))


def test_time_can_be_scrubbed(tab: Tab) -> None:
    paused(tab)
    tab.slide(TIME, "Home")
    tab.until(lambda: tab.session.seconds == 0)
    start = tab.pixels()
    tab.slide(TIME, "End")
    tab.until(lambda: tab.session.seconds == tab.session.length)
    assert not tab.session.playing
    tab.until(tab.changed(start))


def test_colours_and_threshold(tab: Tab) -> None:
    paused(tab)
    before = tab.pixels()
    tab.page.get_by_label("Colour").first.click()
    tab.page.get_by_role("option", name="return rate").click()
    tab.until(lambda: tab.session.colouring == "return rate")
    tab.until(tab.changed(before))
    tab.slide(THRESHOLD, "End")
    tab.until(lambda: np.isfinite(tab.session.threshold))
    reached, n = tab.session.counts(0)
    assert reached < n
    tab.page.get_by_text(f"{reached:,} of {n:,}").wait_for()
    row = tab.session.sides[0].row
    tab.page.get_by_label("Elites").first.click()
    tab.page.get_by_role("option", name="corrected").click()
    tab.until(lambda: tab.session.sides[0].which == "corrected" and tab.session.sides[0].row == row)


def test_ghosts_and_keys(tab: Tab) -> None:
    paused(tab)
    tab.session.seek(tab.session.length)
    before = tab.pixels()
    tab.page.keyboard.press("g")
    tab.until(lambda: len(tab.session.sides[0].ghosts) == 8)
    tab.until(tab.changed(before))
    tab.page.get_by_text("8 ghosts: the same policy under other seeds").wait_for()
    camera, row = np.array(tab.viewer._client.camera.position), tab.session.sides[0].row
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        tab.page.keyboard.press(key)
    tab.until(lambda: tab.session.sides[0].row != row)
    tab.page.wait_for_timeout(300)
    assert np.allclose(camera, tab.viewer._client.camera.position), "arrow keys must not turn the camera"
    assert not tab.session.playing


def test_two_algorithms_side_by_side(tab: Tab) -> None:
    paused(tab)
    before = tab.pixels()
    tab.page.get_by_label("Second elite, side by side").click()
    tab.until(lambda: len(tab.session.sides) == 2)
    tab.until(tab.changed(before))
    tab.page.get_by_label("Algorithm").nth(1).click()
    tab.page.get_by_role("option", name="random_search").click()
    tab.until(lambda: tab.session.sides[1].listed.algorithm == "random_search")
    tab.page.keyboard.press("Space")  # the menu gave the keyboard back
    tab.until(lambda: tab.session.playing and tab.session.seconds > 0.2)
    paused(tab)
    first, second = tab.session.sides
    assert first.listed.algorithm == "map_elites"
    assert first.replay is not None
    assert second.replay is not None
    tab.page.get_by_label("Second elite, side by side").click()
    tab.until(lambda: len(tab.session.sides) == 1)


def test_nothing_of_a_name_is_executed_and_nothing_is_asked_of_the_network(tab: Tab) -> None:
    tab.page.get_by_text(HOSTILE).first.wait_for()
    assert tab.page.evaluate("window.hacked") is None
    assert tab.errors == []
    here = tab.page.url.rstrip("/")
    assert all(url.startswith((here, "data:", "blob:")) for url in tab.asked), tab.asked


def test_a_slow_viewer_does_not_block_another(tab: Tab, browser: Any, explorer: Explorer) -> None:
    held = Event()

    def slow() -> None:
        held.wait(30)

    tab.viewer._mailbox.post("slow", slow)
    try:
        other = Tab(browser, explorer)
        row = another(other)
        other.viewer._mailbox.post("select", lambda: other.session.select(row))
        other.until(lambda: other.session.sides[0].row == row and other.session.sides[0].replay is not None)
        assert other.session is not tab.session
        other.page.close()
        tab.until(lambda: len(explorer._viewers) == 1)
    finally:
        held.set()
