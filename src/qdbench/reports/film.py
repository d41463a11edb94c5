"""One elite on film, as a file for slides and papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import qdbench
from qdbench.checks import (
    checked_count,
    checked_flag,
    checked_function,
    checked_list,
    checked_number,
    checked_path,
    is_whole,
    shown,
)
from qdbench.errors import InvalidInput
from qdbench.films.files import Progress, filmstrip, gif, mp4, png, require_can_draw
from qdbench.films.filming import Film, film_elite
from qdbench.films.scenes import Scene
from qdbench.reports.markup import page, text
from qdbench.reports.replays import Cast, Replays, films_json
from qdbench.reports.style import looks, require_matplotlib
from qdbench.store.files import require_writable, write_bytes, write_text
from qdbench.store.loading import StoredRun, load
from qdbench.store.record import variant_label

ENDINGS = (".html", ".gif", ".mp4", ".png")
SIZE = (640, 360)
_SIZES = (64, 4096)
MOST_GHOSTS, MOST_PER_SECOND = 50, 240
THEMES = ("light", "dark")


def film(
    run: StoredRun | str | Path,
    elite: int | Literal["best"] = "best",
    *,
    cell: int | Sequence[int] | None = None,
    out: str | Path = "gait.html",
    ghosts: int = 4,
    speed: float = 1.0,
    rate: float = 25.0,
    size: Sequence[int] = SIZE,
    theme: Literal["light", "dark"] = "light",
    trust: bool = False,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Write a film of an elite: a page with a player (.html), a video (.mp4, .gif) or a filmstrip (.png).

    `elite` and `cell` choose as in `replay`. `ghosts` are episodes of the same policy under other seeds:
    those of its first re-evaluations. They are drawn translucent. `speed` is in simulated seconds per second,
    `rate` in pictures per second, `size` in pixels. The page ignores these and follows the browser's theme.
    `trust` allows to import a module of your own that the run names. Returns the path.
    """
    path = checked_path("out", out)
    require_can_film(path)
    ghosts, trust = checked_count("ghosts", ghosts, 0), checked_flag("trust", trust)
    speed, rate = checked_number("speed", speed, 0.01), checked_number("rate", rate, 1.0)
    for name, value, most in (("ghosts", ghosts, MOST_GHOSTS), ("rate", rate, MOST_PER_SECOND)):
        if value > most:
            raise InvalidInput(f"{name} is {value:,}; give at most {most}")
    width, height = _checked_size(size)
    checked_function("progress", progress)
    if not isinstance(theme, str) or theme not in THEMES:
        raise InvalidInput(f"theme is {shown(theme)}; use 'light' or 'dark'")
    stored = run if isinstance(run, StoredRun) else load(run)
    made = film_elite(stored, elite, cell, ghosts, trust=trust)
    scene = Scene(made.task, made.performers[0], width, height, theme)
    if path.suffix == ".html":
        write_text(path, _page(made))
    elif path.suffix == ".png":
        write_bytes(path, png(filmstrip(scene)))
    else:
        write_bytes(path, (gif if path.suffix == ".gif" else mp4)(scene, rate, speed, progress))
    return path


def require_can_film(path: Path) -> None:
    """Refuse, before the work starts, a film that could not be written."""
    require_writable(path, *ENDINGS)
    require_can_draw(path.suffix == ".mp4")
    if path.suffix == ".html":
        require_matplotlib()


def _checked_size(size: Sequence[int]) -> tuple[int, int]:
    cure = f"give width and height in pixels, even numbers from {_SIZES[0]} to {_SIZES[1]}, like {SIZE}"
    found = checked_list("size", size, cure)
    good = (is_whole(n) and _SIZES[0] <= n <= _SIZES[1] and n % 2 == 0 for n in found)
    if len(found) != 2 or not all(good):
        raise InvalidInput(f"size is {shown(size)}; {cure}")
    return int(found[0]), int(found[1])


def _page(film: Film) -> str:
    """Return a page with a player and nothing else."""
    record, one = film.run.record, film.performers[0]
    label = variant_label(record.algorithm.name, record.name)
    name = looks([label])[label].name
    title = f"{record.task.name}, {name}, seed {record.seed}: {one.why}"
    seeds = f"; translucent: the same policy under {len(one.ghosts)} other seeds" if one.ghosts else ""
    cast = Cast.of(film, name, 0)
    lead = f"{one.take.seconds:.1f} s. Feet are yellow when loaded{seeds}."
    return page(
        title,
        f"<p>{text(lead)}</p>",
        [("result", "Replay", cast.html)],
        f"<p>Written by qdbench {text(qdbench.__version__)}. This file is complete and opens offline.</p>",
        f"qdbench {qdbench.__version__}",
        Replays({}, {}, films_json([cast])).player,
    )
