"""One viewer's session: what is chosen, and what follows from it. It knows nothing of the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.layout import Rows
from qdbench.explorer.catalogue import Listed
from qdbench.explorer.colours import Bytes, limits, picture, tiles, viridis
from qdbench.explorer.library import Library
from qdbench.explorer.parts import Part
from qdbench.explorer.placement import Placement, placement_of
from qdbench.explorer.plane import Direction, Plane
from qdbench.explorer.replays import Pose, Replay
from qdbench.explorer.view import Colouring, View, Which, signature
from qdbench.metrics.profile import profile

Numbers = NDArray[np.float64]
_FAR = 0.7
"""Share of elites that do not count as going far."""
PAUSE = 0.8
"""Seconds that a finished episode stays before it begins again."""


class Stage(Protocol):
    """Draws one side: an archive, and an elite with its ghosts."""

    def show_archive(self, image: Bytes, plane: Plane, placement: Placement) -> None:
        """Draw the picture of an archive."""

    def recolour(self, image: Bytes) -> None:
        """Replace the colours of the picture."""

    def mark(self, outline: Numbers | None) -> None:
        """Draw the border of the chosen cell."""

    def cast(self, parts: Sequence[Part], n_ghosts: int) -> None:
        """Make a robot and its ghosts."""

    def trace(self, path: Numbers | None, ends: Numbers) -> None:
        """Draw the path of the centre of mass, and where the ghosts ended on the archive."""

    def pose(self, pose: Pose, ghosts: Sequence[Pose]) -> None:
        """Draw one moment."""

    def draw(self, drawn: NDArray[np.generic] | None) -> None:
        """Show what a user's own function drew."""

    def shift(self, by: Numbers) -> None:
        """Move the robots' world, and an archive that lies on its floor; a standing one stays."""

    def hide(self) -> None:
        """Remove everything."""


class Floor(Protocol):
    """Draws the floor."""

    def shift(self, by: Numbers) -> None:
        """Move the floor below the robots."""


@dataclass(eq=False)
class Side:
    """One archive and the elite chosen in it."""

    listed: Listed
    view: View
    which: Which
    row: int = -1
    replay: Replay | None = None
    ghosts: tuple[Replay, ...] = ()
    drawn: NDArray[np.generic] | None = None
    """What the user's own function drew."""

    @cached_property
    def plane(self) -> Plane:
        """Where elites are."""
        return self.view.plane(self.which)

    @cached_property
    def fine(self) -> Rows:
        """Which elite is at every pixel."""
        return tiles(self.plane)

    @cached_property
    def best(self) -> int:
        """The fittest elite that can be seen, or -1."""
        seen, fitness = self.plane.elites, self.view.fitness(self.which)
        return int(seen[np.argmax(fitness[seen])]) if len(seen) else -1

    @property
    def lively(self) -> int:
        """An elite to begin with: the fittest; where that may stand still, the fittest that goes far."""
        seen, fitness = self.plane.elites, self.view.fitness(self.which)
        if not self.view.is_in_metres or not len(seen):
            return self.best
        way = np.linalg.norm(self.view.descriptors(self.which)[seen], axis=1)
        far = seen[way >= np.quantile(way, _FAR)]
        return int(far[np.argmax(fitness[far])])


@dataclass(eq=False)
class Session:
    """What one viewer has chosen. Every method leaves the stages up to date."""

    library: Library
    stages: Sequence[Stage]
    floor: Floor
    sides: list[Side] = field(default_factory=list)
    which: Which = "as found"
    colouring: Colouring = "fitness"
    threshold: float = -np.inf
    n_ghosts: int = 0
    show_path: bool = True
    follow: bool = False
    playing: bool = True
    speed: float = 1.0
    seconds: float = 0.0

    # What is shown

    def open(self, listed: Listed, number: int = 0) -> None:
        """Show a run on one side, with its fittest elite."""
        view = self.library.view(listed.path)
        side = Side(listed, view, self.which if self.which in view.whichs else "as found")
        side.plane, side.fine  # noqa: B018  # may fail: before anything is changed
        self.sides[number : number + 1] = [side]
        if number == 0:
            if self.colouring not in view.colourings:
                self.colouring = "fitness"
            self.threshold = -np.inf
            self.follow = not view.is_in_metres and view.cast.task is not None
        self._draw_archives()
        self.select(side.lively, number)

    def compare(self, on: bool) -> None:
        """Show a second elite beside the first: of the same run, to begin with."""
        if on and len(self.sides) == 1:
            first = self.sides[0]
            self.open(first.listed, 1)
            self.select(first.row, 1)
        elif not on and len(self.sides) == 2:
            self.sides.pop()
            self.stages[1].hide()
            self._draw_archives()

    def choose_which(self, which: Which) -> None:
        """Show archives as found, or corrected."""
        self.which = which
        rows = [side.row for side in self.sides]
        self.sides = [
            Side(old.listed, old.view, which if which in old.view.whichs else "as found")
            for old in self.sides
        ]
        self._draw_archives()
        for number, (row, side) in enumerate(zip(rows, self.sides, strict=True)):
            self.select(side.best if row < 0 else row, number)

    def colour_by(self, colouring: Colouring) -> None:
        """Colour the cells by another value."""
        self.colouring = colouring
        self._recolour()

    def fade_below(self, threshold: float) -> None:
        """Fade the cells whose fitness is below a threshold."""
        self.threshold = threshold
        self._recolour()

    # The elite

    def select(self, row: int, number: int = 0) -> None:
        """Choose an elite: its episode begins."""
        side = self.sides[number]
        side.row, side.replay, side.ghosts, side.drawn = row, None, (), None
        stage = self.stages[number]
        seen = row >= 0 and row in side.plane.elites
        stage.mark(side.plane.outline(row) if seen else None)
        if row < 0:
            return stage.cast((), 0)
        if side.view.cast.task is not None:
            side.replay = self.library.replay(side.view, row)
            side.ghosts = self.library.ghosts(side.view, row, self.n_ghosts)
        elif self.library.draw is not None and not side.view.found.is_live:
            side.drawn = np.asarray(self.library.draw(side.view.solution(row).copy()))
        stage.draw(side.drawn)
        self._cast(number)
        self.seconds = 0.0
        return self.show_moment()

    def pick(self, origin: Numbers, direction: Numbers) -> int | None:
        """Choose the elite that a click hits; return on which side, or None if it hits none."""
        hits = []
        for number, side in enumerate(self.sides):
            lying = self._shift if side.view.is_in_metres else 0.0
            hit = self._placement(number).hit(origin - lying, direction)
            row = -1 if hit is None else side.plane.row_at(hit[1])
            if hit is not None and row >= 0:
                hits.append((hit[0], number, row))
        if not hits:
            return None
        _, number, row = min(hits)
        self.select(row, number)
        return number

    def move(self, direction: Direction, number: int = 0) -> None:
        """Choose the next elite in a direction."""
        side = self.sides[number]
        if side.row >= 0:
            start = side.row if side.row in side.plane.elites else side.best
            self.select(side.plane.beside(start, direction), number)

    def show_ghosts(self, n: int) -> None:
        """Show the chosen elites under `n` other seeds, too."""
        self.n_ghosts = n
        for number, side in enumerate(self.sides):
            if side.replay is not None:
                side.ghosts = self.library.ghosts(side.view, side.row, n)
                self._cast(number)
        self.show_moment()

    def show_paths(self, on: bool) -> None:
        """Show the path of the centre of mass, or not."""
        self.show_path = on
        for number in range(len(self.sides)):
            self._trace(number)

    # The clock, the same for both sides

    @property
    def length(self) -> float:
        """How long the longest episode lasts, in seconds."""
        replays = [replay for side in self.sides for replay in (side.replay, *side.ghosts) if replay]
        return max((replay.seconds for replay in replays), default=0.0)

    @property
    def is_moving(self) -> bool:
        """Whether time goes on."""
        return self.playing and self.length > 0

    def advance(self, seconds: float) -> None:
        """Let time pass. At the end it begins again after a pause."""
        if self.is_moving:
            self.seconds += seconds * self.speed
            if self.seconds > self.length + PAUSE * self.speed:
                self.seconds = 0.0
            self.show_moment()

    def seek(self, seconds: float) -> None:
        """Go to a time of the episode."""
        self.seconds = min(max(seconds, 0.0), self.length)
        self.show_moment()

    def show_moment(self) -> None:
        """Draw the robots as they are now."""
        for side, stage in zip(self.sides, self.stages, strict=False):
            if side.replay is not None:
                stage.pose(side.replay.at(self.seconds), [ghost.at(self.seconds) for ghost in side.ghosts])
        for moving in (self.floor, *self.stages[: len(self.sides)]):
            moving.shift(self._shift)

    @property
    def _shift(self) -> Numbers:
        """How far the world is moved, so that the first robot stays in view if it is followed, (3,)."""
        replay = self.sides[0].replay
        if replay is None or not self.follow:
            return np.zeros(3)
        back: Numbers = replay.centre[0] - replay.at(self.seconds).centre
        return back * (1, 1, 0)

    def is_outdated(self) -> bool:
        """Whether a run on show has changed on the disk."""
        return any(side.view.signature != signature(side.listed.path) for side in self.sides)

    def refresh(self) -> None:
        """Read runs again that have changed; the chosen elites stay, if they are still there."""
        for number, side in enumerate(list(self.sides)):
            row = side.row
            threshold, follow = self.threshold, self.follow
            self.open(side.listed, number)
            self.threshold, self.follow = threshold, follow
            if row in self.sides[number].plane.elites and not self.sides[number].view.found.is_live:
                self.select(row, number)
        self._recolour()

    # Numbers for the page

    @property
    def fitness_limits(self) -> tuple[float, float]:
        """The lowest and the highest fitness of the first archive."""
        side = self.sides[0]
        return limits(side.view.fitness(side.which)[side.plane.elites])

    @property
    def colour_limits(self) -> tuple[float, float]:
        """The values of the darkest and the brightest colour, the same for both sides."""
        return limits(np.concatenate([self._values(side)[side.plane.elites] for side in self.sides]))

    def counts(self, number: int) -> tuple[int, int]:
        """Return how many elites of a side reach the threshold, and how many there are: its profile."""
        side = self.sides[number]
        fitness = side.view.fitness(side.which)[side.plane.elites]
        return int(profile(fitness)(self.threshold)), len(fitness)

    # Drawing

    def _values(self, side: Side) -> Numbers:
        known = self.colouring in side.view.colourings
        return side.view.values(self.colouring) if known else np.full(len(side.view.found.fitness), np.nan)

    def _image(self, side: Side) -> Bytes:
        low, high = self.colour_limits
        shares = (self._values(side) - low) / ((high - low) or 1.0)
        faded = ~(side.view.fitness(side.which) >= self.threshold)
        return picture(side.fine, viridis(np.clip(shares, 0, 1)), faded)

    def _placement(self, number: int) -> Placement:
        side = self.sides[number]
        has_robot = side.view.cast.task is not None
        return placement_of(
            side.plane, number, len(self.sides), in_metres=side.view.is_in_metres, has_robot=has_robot
        )

    def _draw_archives(self) -> None:
        for number, (side, stage) in enumerate(zip(self.sides, self.stages, strict=False)):
            stage.show_archive(self._image(side), side.plane, self._placement(number))
            stage.shift(self._shift)
            stage.mark(side.plane.outline(side.row) if side.row in side.plane.elites else None)
            if side.replay is not None:
                self._cast(number)

    def _recolour(self) -> None:
        for side, stage in zip(self.sides, self.stages, strict=False):
            stage.recolour(self._image(side))

    def _cast(self, number: int) -> None:
        side = self.sides[number]
        self.stages[number].cast(self.library.parts(side.view), len(side.ghosts))
        self._trace(number)

    def _trace(self, number: int) -> None:
        side = self.sides[number]
        path = side.replay.centre if side.replay is not None and self.show_path else None
        valid = [ghost.descriptor for ghost in side.ghosts if ghost.valid]
        ends = side.plane.points(np.array(valid)) if valid else np.empty((0, 2))
        self.stages[number].trace(path, ends)
