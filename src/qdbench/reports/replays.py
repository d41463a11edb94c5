"""Elites that walk inside the page: films of every algorithm, small enough for one file."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from qdbench.analysis.measured import Measured, MeasuredTask, Progress
from qdbench.archives.geometry import Grid
from qdbench.errors import QdbenchError
from qdbench.films.files import png
from qdbench.films.filming import Film, Performer, film_run
from qdbench.films.packing import packed_robot, packed_track, size_of, thinner
from qdbench.films.scenes import Scene, end_cell, tile_of, walks_to_cell
from qdbench.reports.figures import Looks, in_order
from qdbench.reports.heatmaps import COLOURS, Plane, fitness_limits
from qdbench.reports.maps import archive_map
from qdbench.reports.markup import Player, text
from qdbench.reports.raster import on_grid
from qdbench.store.loading import StoredRun

MOST_BYTES = 5_000_000
"""What the replays of a page add to it, at most."""
_STILL = (320, 200)
_STILL_COLOURS = 48
_STILL_ZOOM = 1.15
_LEVELS = 32
"""Colours of the archive on the floor."""


@dataclass(frozen=True, eq=False)
class Cast:
    """The elites of one algorithm on film, and the archive they are of."""

    number: int
    """Of all casts of the page: the player finds its films by it."""
    name: str
    """Of the algorithm, as readers know it."""
    film: Film
    floor: dict[str, Any] | None
    """The archive as it lies on the floor, packed; None if its cells are no places there."""
    html: str
    """Everything but what moves: pictures and words."""

    @classmethod
    def of(cls, film: Film, name: str, number: int) -> Cast:
        """Return a cast; the arrays of its run, which can be a gigabyte, are released."""
        html, floor = watch_block(film, name, number), packed_floor(film)
        released = replace(film, run=StoredRun(film.run.path, film.run.record))
        return cls(number, name, released, floor, html)


@dataclass(frozen=True, eq=False)
class Replays:
    """All films of a page."""

    casts: dict[str, list[Cast]]
    """By task."""
    reasons: dict[str, str]
    """Why a task has none, by task. A task without a robot has neither."""
    films: str = ""
    """What the player reads, as JSON; empty if there is nothing to play."""

    @property
    def player(self) -> Player | None:
        """What plays them; None if there is nothing to play."""
        return Player(*player(), self.films) if self.films else None

    def html(self, task: str) -> str:
        """Return the replays of a task; a sentence if there are none; empty without a robot."""
        found, why = self.casts.get(task, []), self.reasons.get(task)
        missing = "Some replays are missing" if found else "No replays"
        sentence = f'<p class="soft">{missing}: {text(why)}</p>\n' if why else ""
        tabs = '<div class="tabs"></div>\n' if len(found) > 1 else ""
        return sentence + tabs + "\n".join(cast.html for cast in found)


@cache
def player() -> tuple[str, str]:
    """Return the script and the style sheet of the player."""
    here = files("qdbench.reports") / "player"
    parts = [(here / name).read_text(encoding="utf-8") for name in ("tracks.js", "painter.js", "stage.js")]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
    return script, (here / "player.css").read_text(encoding="utf-8")


def make_replays(measured: Measured, looks: Looks, progress: Progress, *, trust: bool = False) -> Replays:
    """Film the best, the median and the most diverse elites of every algorithm's median replication."""
    casts: dict[str, list[Cast]] = {}
    reasons: dict[str, str] = {}
    wanted = [(task, variant) for task in measured.tasks for variant in in_order(task.variants, looks)]
    for number, (task, variant) in enumerate(wanted):
        if _has_body(task):
            typical = variant.typical.run
            try:
                film = film_run(StoredRun(typical.path, typical.record), trust=trust)
                if film is not None:
                    cast = Cast.of(film, looks[variant.label].name, number)
                    casts.setdefault(task.task, []).append(cast)
            except (QdbenchError, OSError) as error:
                reasons[task.task] = str(error)
        progress(number + 1, len(wanted))
    return _fitted(casts, reasons)


def _has_body(task: MeasuredTask) -> bool:
    """Return whether its episodes have steps: a function has none."""
    return task.runs[0].record.task.episode_length is not None


def packed_floor(film: Film) -> dict[str, Any] | None:
    """Return the archive as it lies on the floor: the colour of every cell; None if cells are no places."""
    if not walks_to_cell(film.task):
        return None
    archive, grid = film.run.archive.placed(), film.run.grid
    if isinstance(archive.geometry, Grid):
        grid = archive.geometry
    fitness = on_grid(archive, grid)
    filled = np.isfinite(fitness)
    worst, best = fitness_limits(archive, if_empty=(0.0, 1.0))
    share = np.where(filled, (fitness - worst) / max(best - worst, 1e-12), 0.0)
    levels = np.where(filled, 1 + np.rint(share * (_LEVELS - 1)), 0).astype(np.uint8)
    low, high = np.asarray(grid.bounds, np.float64).T
    return {
        "low": low.round(4).tolist(),
        "width": ((high - low) / grid.shape).round(5).tolist(),
        "shape": list(grid.shape),
        "data": b64encode(zlib.compress(levels.tobytes(), 9)).decode(),
    }


def _fitted(casts: dict[str, list[Cast]], reasons: dict[str, str]) -> Replays:
    """Return films that fit into the page: thinner ones, and if need be fewer."""
    around = len("".join(player()))
    while casts:
        every = [cast for found in casts.values() for cast in found]
        words = sum(len(cast.html.encode()) for cast in every)
        for films in zip(*(thinner(cast.film.performers) for cast in every), strict=True):
            shown = [
                replace(cast, film=replace(cast.film, performers=film))
                for cast, film in zip(every, films, strict=True)
            ]
            written = films_json(shown)
            if around + words + len(written) <= MOST_BYTES:
                return Replays(casts, reasons, written)
        last = next(reversed(casts))
        casts.pop(last)
        reasons[last] = (
            f"the replays of this page would need more than {MOST_BYTES / 1e6:g} MB; write a page of this "
            f"task alone, with --task {last}"
        )
    return Replays(casts, reasons)


def films_json(casts: Sequence[Cast]) -> str:
    """Return what the player reads, safe inside a script element."""
    from matplotlib import colormaps

    robots: dict[str, int] = {}
    packed_robots = []
    for cast in casts:
        task = cast.film.task
        if task.name not in robots:
            robots[task.name] = len(robots)
            packed_robots.append(packed_robot(task.anatomy))
    shades = colormaps[COLOURS](np.linspace(0, 1, _LEVELS))[:, :3]
    found = {
        "palette": np.rint(255 * shades).astype(int).tolist(),
        "robots": packed_robots,
        "casts": {cast.number: _packed_cast(cast, robots[cast.film.task.name]) for cast in casts},
    }
    written = json.dumps(found, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed_cast(cast: Cast, robot: int) -> dict[str, Any]:
    task, performers = cast.film.task, cast.film.performers
    cells = [end_cell(task, one) for one in performers]
    return {
        "robot": robot,
        "label": f"{cast.name} on {task.name}: elites walking",
        "tile": tile_of(size_of(task.anatomy)),
        "onFloor": walks_to_cell(task),
        "floor": cast.floor,
        "elites": [
            {
                "track": packed_track(one.take),
                "ghosts": [packed_track(ghost) for ghost in one.ghosts],
                "cell": None if cell is None else cell.round(4).tolist(),
            }
            for one, cell in zip(performers, cells, strict=True)
        ],
    }


# Pictures and words


def watch_block(film: Film, name: str, number: int) -> str:
    """Return the replays of one algorithm: a stage that the player fills, cards, and the archive."""
    cards = "\n".join(_card(film, one, i) for i, one in enumerate(film.performers))
    places = [(one.take.descriptor, one.take.fitness) for one in film.performers]
    seed = film.run.record.seed
    content, (width, height), spots = archive_map(film.run.archive.placed(), Plane.of(film.run), places)
    buttons = "\n".join(
        f'<button type="button" class="spot" data-elite="{i}" style="left:{100 * x:.2f}%;top:{100 * y:.2f}%">'
        f"{i + 1}</button>"
        for i, (x, y) in enumerate(spots)
    )
    map_alt = f"{name}: the archive of seed {seed}, fitness by descriptor. The numbers are the elites shown."
    return (
        f'<div class="watch" data-name="{text(name)}">\n<h3 class="who">{text(name)}, seed {seed}</h3>\n'
        f'<div class="replay" data-cast="{number}">\n<div class="stage"></div>\n'
        f'<div class="chosen">\n<div class="map">\n<div class="spots">'
        f'<img src="{_data(content)}" alt="{text(map_alt)}" width="{width}" height="{height}">\n'
        f"{buttons}</div>\n"
        f'</div>\n<div class="cards">\n{cards}\n</div>\n</div>\n</div>\n</div>'
    )


def _card(film: Film, one: Performer, number: int) -> str:
    picture = Scene(film.task, one, *_STILL, zoom=_STILL_ZOOM).picture(0.6 * one.take.seconds)
    alt = f"Elite {number + 1}, {one.why}: the robot in the middle of its episode."
    lines = "".join(f"<span>{text(line)}</span>" for line in elite_words(one))
    return (
        f'<button type="button" class="card" data-elite="{number}">'
        f'<img src="{_data(png(picture, _STILL_COLOURS))}" alt="{text(alt)}" '
        f'width="{_STILL[0]}" height="{_STILL[1]}">'
        f"<strong><b>{number + 1}</b> {text(one.why)}</strong>{lines}</button>"
    )


def elite_words(one: Performer) -> list[str]:
    """Return what is said of an elite: fitness, place, and what re-evaluations made of it."""
    place = ", ".join(f"{x:.2f}".replace("-", "\N{MINUS SIGN}") for x in one.take.descriptor)
    words = [f"fitness {_number(one.stored)}, at ({place})"]
    if one.again is not None:
        fitness = "invalid" if np.isnan(one.again.fitness) else _number(one.again.fitness)
        words.append(f"{one.again.n} re-evaluations: mean {fitness}, {one.again.returned} back in its cell")
    if not one.same:
        words.append(f"simulated here: {_number(one.take.fitness)}, not the stored episode")
    return words


def _number(value: float) -> str:
    return f"{value:,.4g}".replace("-", "\N{MINUS SIGN}")


def _data(content: bytes) -> str:
    return f"data:image/png;base64,{b64encode(content).decode()}"
