"""Replays inside the report: the stored gaits, in a real browser with the network cut, small and safe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

import qdbench
from filmed_runs import filmed_run
from html_page import CHROMIUM, parsed, require_sound
from qdbench.analysis.compare import compare
from qdbench.analysis.measuring import measure
from qdbench.films.filming import film_run
from qdbench.films.packing import packed_robot, packed_track
from qdbench.films.takes import Take
from qdbench.reports import markup, replays
from qdbench.reports.page import film_page, write_page
from qdbench.reports.replays import Replays, player
from toy_runs import edited, make, toy

EVIL = "</script><script>document.title='taken'</script><b>"


@pytest.fixture(autouse=True, scope="module")
def _coarse() -> Iterator[None]:
    """Coarser pictures, the same in all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markup, "PNG_DPI", 60)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("replays")
    for algorithm in ("map_elites", "random_search"):
        filmed_run(out, "ant_omni", algorithm, length=30)
    filmed_run(out, "hopper_uni", "map_elites")
    return out


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qdbench.report(results, out=tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome on the PATH")
    silent = ["background-networking", "component-update", "sync", "gpu"]
    with sync_playwright() as started:
        running = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--no-first-run", *(f"--disable-{what}" for what in silent)],
        )
        yield running
        running.close()


def opened(browser: Any, path: Path, problems: list[str], **how: Any) -> Any:
    """Open a page from disk, without a network; whatever it asks for or complains about is a problem."""
    shown = browser.new_context(offline=True, reduced_motion="reduce", **how).new_page()
    shown.on("console", lambda message: problems.append(message.text))
    shown.on("pageerror", lambda error: problems.append(str(error)))
    own = path.as_uri()
    shown.on("request", lambda asked: problems.append(asked.url) if asked.url != own else None)
    shown.goto(own)
    return shown


PIXELS = "canvas => canvas.toDataURL()"


def test_it_plays_without_a_network(browser: Any, page: Path) -> None:
    problems: list[str] = []
    shown = opened(browser, page, problems, viewport={"width": 1200, "height": 900})
    canvas, play = shown.locator("canvas").first, shown.locator(".play").first
    scrub, clock = shown.locator("input[type=range]").first, shown.locator("output").first
    canvas.scroll_into_view_if_needed()
    expect(shown.locator("output").first).to_have_text("0.0 s")
    before = canvas.evaluate(PIXELS)
    assert (
        play.get_attribute("aria-label") == "play"
    )  # the reader wants less motion: nothing starts by itself
    play.click()
    expect(clock).to_have_text(re.compile(r"0\.[3-9] s|1\.\d s"))
    assert canvas.evaluate(PIXELS) != before
    scrub.fill("1.0")  # it stops, and shows that moment
    assert play.get_attribute("aria-label") == "play"
    assert clock.text_content() == "1.0 s"
    at_one = canvas.evaluate(PIXELS)
    scrub.fill("0.2")
    assert canvas.evaluate(PIXELS) != at_one
    scrub.fill("1.0")
    assert canvas.evaluate(PIXELS) == at_one
    shown.locator(".card").nth(2).click()  # one elite, followed, with ghosts
    alone = canvas.evaluate(PIXELS)
    assert alone != at_one
    shown.locator("input[type=checkbox]").first.uncheck()
    assert canvas.evaluate(PIXELS) != alone
    shown.locator("input[type=checkbox]").first.check()
    assert canvas.evaluate(PIXELS) == alone
    box = canvas.bounding_box()
    shown.mouse.move(box["x"] + 200, box["y"] + 200)
    shown.mouse.down()
    shown.mouse.move(box["x"] + 300, box["y"] + 230)
    shown.mouse.up()
    assert canvas.evaluate(PIXELS) != alone  # seen from another side
    shown.locator(".spot").nth(1).click()
    assert shown.locator(".card").nth(1).get_attribute("aria-pressed") == "true"
    canvas.focus()
    shown.keyboard.press("Space")
    assert play.get_attribute("aria-label") == "pause"
    assert problems == []


def test_algorithms_are_tabs(browser: Any, page: Path) -> None:
    problems: list[str] = []
    shown = opened(browser, page, problems)
    tabs = shown.locator(".hero .tabs button")
    assert tabs.all_text_contents() == ["MAP-Elites", "Random Search"]
    visible = [shown.locator(".hero .watch").nth(i) for i in range(2)]
    assert [one.is_visible() for one in visible] == [True, False]
    tabs.nth(1).click()
    assert [one.is_visible() for one in visible] == [False, True]
    expect(shown.locator("output").nth(1)).to_have_text("0.0 s")
    shown.locator("#task-2 canvas").scroll_into_view_if_needed()  # the other task has its own stage
    expect(shown.locator("output").last).to_have_text("0.0 s")
    assert problems == []


def test_it_moves_by_itself_unless_asked_not_to(browser: Any, page: Path) -> None:
    context = browser.new_context(offline=True)
    shown = context.new_page()
    shown.goto(page.as_uri())
    shown.locator("canvas").first.scroll_into_view_if_needed()
    expect(shown.locator("output").first).to_have_text(re.compile(r"0\.[2-9] s|1\.\d s"))
    context.close()
    still = browser.new_context(offline=True, reduced_motion="reduce")
    shown = still.new_page()
    shown.goto(page.as_uri())
    shown.locator("canvas").first.scroll_into_view_if_needed()
    shown.wait_for_timeout(700)
    assert shown.locator("output").first.inner_text().startswith("0.0")
    still.close()


@pytest.mark.parametrize("width", [390, 1200])
def test_without_scripts_it_is_readable(browser: Any, page: Path, width: int) -> None:
    problems: list[str] = []
    shown = opened(
        browser, page, problems, java_script_enabled=False, viewport={"width": width, "height": 800}
    )
    assert shown.locator(".stage").first.is_hidden()
    cards = shown.locator(".card")
    assert cards.count() == 18
    for i in (0, 7, 17):
        assert cards.nth(i).locator("img").is_visible()
        assert "fitness" in cards.nth(i).text_content()
    assert shown.locator(".who").nth(1).is_visible()
    for i in range(shown.locator(".card img").count()):
        assert re.match("data:image/png", shown.locator(".card img").nth(i).get_attribute("src"))
    assert [one for one in problems if "script" not in one.lower()] == []


def test_print_shows_all_algorithms_and_no_controls(browser: Any, page: Path) -> None:
    shown = opened(browser, page, [])
    shown.emulate_media(media="print")
    assert shown.locator(".controls").first.is_hidden()
    assert shown.locator(".watch").nth(1).locator(".card").first.is_visible()
    assert shown.pdf().startswith(b"%PDF-")


KINEMATICS = """async ([tracks, robot, track, frames]) => {
  const made = new Function(tracks + "; return { unpacked, sampled, placed };")();
  const read = await made.unpacked(track, robot);
  const pose = f => made.placed(robot, made.sampled(read, f / track.rate).q);
  return frames.map(f => pose(f).map(body => [body.pos, body.quat]));
}"""


@pytest.mark.parametrize("name", ["walker_uni", "ant_omni", "humanoid_uni", "hexapod_uni"])
def test_the_player_s_robot_is_mujoco_s(browser: Any, name: str) -> None:
    task = replace(qdbench.TASKS[name], episode_length=30)
    episode = task.rollout(task.random_solutions(1, qdbench.stream(2, "film")), 5)
    take = Take.of(episode)
    frames = [0, len(take) // 2, len(take) - 1]
    tracks = (Path(replays.__file__).parent / "player/tracks.js").read_text()
    robot = json.loads(json.dumps(packed_robot(task.anatomy)))
    shown = browser.new_page()
    found = shown.evaluate(KINEMATICS, [tracks, robot, packed_track(take), frames])
    apart = round(1 / (take.rate * float(episode.time[1])))
    for frame, bodies in zip(frames, found, strict=True):
        positions = np.array([body[0] for body in bodies])
        np.testing.assert_allclose(positions, episode.body_positions[frame * apart], atol=2e-3)
        turned = np.array([body[1] for body in bodies])
        same = np.abs((turned * episode.body_orientations[frame * apart]).sum(axis=1))
        np.testing.assert_allclose(same, 1, atol=1e-4)
    shown.close()


# What is in the page


def test_the_films_are_those_of_the_median_replication(page: Path, results: Path) -> None:
    root = parsed(page.read_text())
    require_sound(root)
    cards = [card for card in root.all("button") if card.attributes["class"] == "card"]
    assert len(cards) == 18
    films = json.loads(next(one for one in root.all("script") if one.attributes).text)
    assert list(films["casts"]) == ["0", "1", "2"]
    assert [len(robot["solids"]) for robot in films["robots"]] == [25, 9]
    film = film_run(qdbench.load(results / "ant_omni/map_elites/seed-0"))
    assert film is not None
    cast = films["casts"]["0"]
    assert [elite["track"] for elite in cast["elites"]] == [packed_track(one.take) for one in film.performers]
    assert {len(elite["ghosts"]) for elite in cast["elites"]} == {4}
    best = film.performers[0]
    assert best.again is not None
    said = cards[0].text
    assert f"fitness {best.stored:,.4g}".replace("-", "\N{MINUS SIGN}") in said
    assert f"{best.again.returned} back in its cell" in said


def test_replays_never_need_more_than_allowed(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measure(results / "ant_omni")
    films = film_page(found, quiet)
    sizes = []
    for limit in (600_000, 300_000, 250_000):
        monkeypatch.setattr(replays, "MOST_BYTES", limit)
        fitted = replays._fitted(dict(films.casts), {})
        sizes.append(added(fitted))
        assert fitted.films
        assert sizes[-1] <= limit
    assert sizes[0] > sizes[2]  # thinner, not only fewer
    monkeypatch.setattr(replays, "MOST_BYTES", 60_000)
    none = replays._fitted(dict(films.casts), {})
    assert none.films == ""
    path = write_page(found, compare(found), tmp_path / "r.html", replays=none)
    assert "No replays: the replays of this page would need more than 0.06 MB" in _said(path)
    without = path.stat().st_size
    write_page(found, compare(found), path, replays=films)
    assert abs(path.stat().st_size - without - added(films)) < 2000  # and a few words around them


def added(films: Replays) -> int:
    """Return how many bytes films add to a page."""
    html = "".join(cast.html for casts in films.casts.values() for cast in casts)
    return len("".join((html, films.films, *player())).encode())


def test_without_replays_there_is_no_script(results: Path, tmp_path: Path) -> None:
    path = qdbench.report(results / "hopper_uni", out=tmp_path / "r.html", replays=False)
    root = parsed(path.read_text())
    require_sound(root)
    assert not list(root.all("script", "canvas"))
    assert 'class="card"' not in path.read_text()


def test_names_are_words_and_nothing_else(browser: Any, tmp_path: Path) -> None:
    run = filmed_run(tmp_path, name="evil")
    edited(run.path, name=EVIL)
    path = qdbench.report(run.path, out=tmp_path / "r.html")
    require_sound(parsed(path.read_text()))
    problems: list[str] = []
    shown = opened(browser, path, problems)
    expect(shown.locator("output").first).to_have_text("0.0 s")
    assert EVIL in shown.title()
    assert shown.locator("canvas").count() == 1
    page = qdbench.film(run.path, out=tmp_path / "gait.html")
    require_sound(parsed(page.read_text()))
    assert EVIL in opened(browser, page, problems).title()
    assert problems == []


# Where there are none


def _said(path: Path) -> str:
    root = parsed(path.read_text())
    require_sound(root)
    return next(section for section in root.all("section") if section.attributes["id"] == "result").text


def test_functions_have_no_replays_and_no_excuse(tmp_path: Path) -> None:
    make(tmp_path / "runs/toy_a/map_elites/seed-0", toy("toy_a"))
    films = film_page(measure(tmp_path / "runs"), quiet)
    assert films.html("toy_a") == films.films == ""
    assert films.player is None


def test_another_fingerprint_is_said(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mujoco.mj_versionString", lambda: "9.9.9")
    films = film_page(measure(results / "hopper_uni"), quiet)
    assert films.player is None
    assert films.html("hopper_uni").startswith('<p class="soft">No replays: ')
    assert "its episodes cannot be simulated in the same way" in films.html("hopper_uni")


MINE = """
from dataclasses import replace
import qdbench
task = replace(qdbench.make("hopper_uni", episode_length=30), name="mine")
"""


def test_an_own_module_is_imported_only_if_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "walks_of_mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    filmed_run(tmp_path / "runs", "walks_of_mine:task", length=20)
    found = measure(tmp_path / "runs")
    films = film_page(found, quiet)
    assert films.player is None
    assert "--trust" in films.html("mine")
    trusted = film_page(found, quiet, trust=True)
    assert trusted.films
    assert not trusted.reasons


def quiet(done: int, total: int) -> None:
    """Show no progress."""
