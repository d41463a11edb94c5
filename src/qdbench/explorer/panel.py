"""The controls beside the scene. Each change is posted to the session; the page then shows its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import viser
from viser import uplot

from qdbench.explorer import facts
from qdbench.explorer.catalogue import Listed
from qdbench.explorer.mailbox import Mailbox
from qdbench.explorer.plane import Direction
from qdbench.explorer.session import Session

SPEEDS = {"1/4": 0.25, "1/2": 0.5, "1": 1.0, "2": 2.0, "4": 4.0}
MOST_GHOSTS = 16
_TERM_COLOURS = ("#4dabf7", "#ffa94d", "#69db7c", "#da77f2", "#ffd43b", "#ff8787")

# viser's own camera listens for arrow keys, too. Here they choose cells, so they must not reach it. It
# listens on the document, commands on the element below.
# A control that was clicked gives the keyboard back: else space would press it again.
_KEYS = """<img src="data:," style="display:none" onerror="
if (!window.qdbenchKeys) { window.qdbenchKeys = true; const page = document.documentElement;
page.addEventListener('keydown', e => { if (e.code.startsWith('Arrow')) e.stopPropagation(); });
page.addEventListener('click', e => {
if (e.target.closest('[type=checkbox],button,[role=slider],[role=option]')) document.activeElement.blur();
}); }">"""


class Panel:
    """The controls of one viewer."""

    def __init__(self, client: viser.ClientHandle, session: Session, mailbox: Mailbox) -> None:
        self._gui: Any = client.gui  # its handles' types forbid assignments that it is made for
        self._session, self._mailbox = session, mailbox
        self.active = 0
        """The side that arrow keys move on."""
        self._plot: Any = None
        self._plotted: tuple[str, ...] = ()
        self._add_runs()
        self._add_archive()
        self._add_player()
        self._add_elite()
        self._add_second()
        self._add_keys()

    # What there is

    def _add_runs(self) -> None:
        gui, catalogue = self._gui, self._session.library.catalogue
        self._failure = gui.add_html("", visible=False)
        with gui.add_folder("Run"):
            self._run = gui.add_html("")
            self._choices = self._add_choices(0)
            skipped = facts.about_skipped(catalogue)
            if skipped:
                gui.add_html(skipped)

    def _add_choices(self, number: int) -> dict[str, Any]:
        """Add menus for task, algorithm and seed; the second run is of the same task."""
        first = self._session.library.catalogue.runs[0]
        names = ("task", "algorithm", "seed")[number:]
        menus = {
            name: self._gui.add_dropdown(name.capitalize(), (getattr(first, name),), visible=number == 0)
            for name in names
        }

        def choose() -> None:
            wanted = {name: menu.value for name, menu in menus.items()}
            task = wanted.pop("task", self._session.sides[0].listed.task)
            self._session.open(self._session.library.catalogue.nearest(task, **wanted), number)
            if number == 0 and len(self._session.sides) > 1:
                same = self._session.sides[1].listed.task == task
                if not same:
                    self._session.open(self._session.sides[0].listed, 1)

        for menu in menus.values():
            self._on(menu, choose)
        return menus

    def _add_archive(self) -> None:
        gui, session = self._gui, self._session
        with gui.add_folder("Archive"):
            self._which = gui.add_dropdown("Elites", ("as found",))
            self._colouring = gui.add_dropdown("Colour", ("fitness",))
            self._threshold = gui.add_slider("Threshold", 0.0, 1.0, 0.01, 0.0)
            self._archive = gui.add_html("")
        self._on(self._which, lambda: session.choose_which(self._which.value))
        self._on(self._colouring, lambda: session.colour_by(self._colouring.value))

        def fade() -> None:
            value = self._threshold.value
            session.fade_below(value if value > self._threshold.min else -np.inf)

        self._on(self._threshold, fade)

    def _add_player(self) -> None:
        gui, session = self._gui, self._session
        with gui.add_folder("Replay") as self._player:
            self._play = gui.add_button("Pause", icon=viser.Icon.PLAYER_PAUSE, hint="Space")
            self._time = gui.add_slider("Time (s)", 0.0, 1.0, 0.01, 0.0)
            self._speed = gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1")
            self._ghosts = gui.add_slider(
                "Ghosts", 0, MOST_GHOSTS, 1, 0, hint="The same policy under other seeds"
            )
            self._follow = gui.add_checkbox("Follow", False)
            self._path = gui.add_checkbox("Path of the centre of mass", True)
        self._play.on_click(lambda _: self._mailbox.post("play", self.toggle))

        def scrub() -> None:
            session.playing = False
            session.seek(self._time.value)

        self._on(self._time, scrub)
        self._on(self._speed, lambda: setattr(session, "speed", SPEEDS[self._speed.value]))
        self._on(self._ghosts, lambda: session.show_ghosts(self._ghosts.value))
        self._on(self._follow, lambda: setattr(session, "follow", self._follow.value))
        self._on(self._path, lambda: session.show_paths(self._path.value))

    def _add_elite(self) -> None:
        with self._gui.add_folder("Elite") as self._elite_folder:
            self._elite = self._gui.add_html("")

    def _add_second(self) -> None:
        gui = self._gui
        with gui.add_folder("Compare"):
            self._second = gui.add_checkbox("Second elite, side by side", False)
            self._choices_2 = self._add_choices(1)
            self._elite_2 = gui.add_html("", visible=False)
            gui.add_html(_KEYS)

        def compare() -> None:
            self._session.compare(self._second.value)
            self.active = int(self._second.value)

        self._on(self._second, compare)

    def _add_keys(self) -> None:
        for direction in get_args(Direction):
            command = self._gui.add_command(
                f"Next cell: {direction}", hotkey=f"arrow{direction}"
            )  # fmt: skip

            def move(_: Any, direction: Direction = direction) -> None:
                self._mailbox.post(("move", direction), lambda: self._session.move(direction, self.active))

            command.on_trigger(move)
        keys: dict[str, tuple[str, Callable[[], None]]] = {
            "space": ("Play or pause", self.toggle),
            "B": ("Best elite", lambda: self._session.select(self._session.sides[0].best)),
            "G": ("Ghosts on or off", lambda: self._session.show_ghosts(0 if self._session.n_ghosts else 8)),
            "F": ("Follow the robot", lambda: setattr(self._session, "follow", not self._session.follow)),
        }
        for key, (label, action) in keys.items():
            command = self._gui.add_command(label, hotkey=key)
            command.on_trigger(lambda _, key=key, action=action: self._mailbox.post(key, action))

    def _on(self, control: Any, action: Callable[[], None]) -> None:
        """Post an action when the viewer, not we, changed a control."""

        def changed(event: Any) -> None:
            if event.client is not None:
                self._mailbox.post(id(control), action)

        control.on_update(changed)

    # What it says

    def toggle(self) -> None:
        """Play or pause."""
        self._session.playing = not self._session.playing

    def fail(self, sentence: str) -> None:
        """Say what went wrong; nothing, if the sentence is empty."""
        self._failure.content = facts.failure(sentence)
        self._failure.visible = bool(sentence)

    def tick(self) -> None:
        """Show the time."""
        self._time.value = min(self._session.seconds, self._time.max)

    def refresh(self) -> None:
        """Show the session's state."""
        session, catalogue = self._session, self._session.library.catalogue
        first = session.sides[0]
        task, algorithm = first.listed.task, first.listed.algorithm
        options = (catalogue.tasks(), catalogue.algorithms(task), catalogue.seeds(task, algorithm))
        _set_menus(self._choices, options, first.listed)
        self._run.content = facts.about_run(first)
        _set_menu(self._which, first.view.whichs, first.which)
        _set_menu(self._colouring, first.view.colourings, session.colouring)
        self._refresh_threshold()
        self._archive.content = facts.about_archive(session)
        self._refresh_player()
        names = first.view.run.record.facts.descriptor_names
        self._elite.content = facts.about_elite(first, names)
        two = len(session.sides) > 1
        self._second.value = two
        for menu in self._choices_2.values():
            menu.visible = False
        self._elite_2.visible = two
        if two:
            second = session.sides[1]
            seeds = catalogue.seeds(task, second.listed.algorithm)
            _set_menus(self._choices_2, (catalogue.algorithms(task), seeds), second.listed)
            self._elite_2.content = facts.about_run(second) + facts.about_elite(second, names)

    def _refresh_threshold(self) -> None:
        """Let the slider cover the fitness of the archive; its left end is no threshold."""
        slider, (low, high) = self._threshold, self._session.fitness_limits
        digits = 1 - int(np.floor(np.log10(max(high - low, 1e-9))))
        step = 10.0**-digits / 2
        low, high = (round(float(edge), digits + 1) for edge in (np.floor(low / step) * step, high + step))
        if (slider.min, slider.max) != (low, high):
            slider.min, slider.max, slider.step = low, high, step
        slider.value = min(max(self._session.threshold, low), high)

    def _refresh_player(self) -> None:
        session = self._session
        self._player.visible = session.length > 0
        self._play.label = "Pause" if session.playing else "Play"
        self._play.icon = viser.Icon.PLAYER_PAUSE if session.playing else viser.Icon.PLAYER_PLAY
        if session.length and self._time.max != session.length:
            self._time.value = 0.0
            self._time.max = session.length
        self._ghosts.value = session.n_ghosts
        self._follow.value = session.follow
        self._draw_terms()
        self.tick()

    def _draw_terms(self) -> None:
        """Plot the rewards of the first elite, summed up over time; with two, the fitness of both."""
        curves = _curves(self._session)
        if tuple(curves) != self._plotted and self._plot is not None:
            self._plot.remove()
            self._plot = None
        self._plotted = tuple(curves)
        if not curves:
            return
        length = max(len(values) for values in curves.values())
        step = self._session.sides[0].replay.step_seconds  # type: ignore[union-attr]
        data = (
            np.arange(1, length + 1) * step,
            *(np.pad(values, (0, length - len(values)), mode="edge") for values in curves.values()),
        )
        if self._plot is not None:
            self._plot.data = data
            return
        colours = [_TERM_COLOURS[i % len(_TERM_COLOURS)] for i in range(len(curves))]
        series = [
            uplot.Series(label=name, stroke=c, width=2) for name, c in zip(curves, colours, strict=True)
        ]
        with self._elite_folder:
            self._plot = self._gui.add_uplot(
                data,
                (uplot.Series(label="time (s)"), *series),
                scales={"x": uplot.Scale(time=False)},
                axes=(uplot.Axis(label="time (s)"), uplot.Axis(label="reward so far")),
                height=210,
            )


def _curves(session: Session) -> dict[str, Any]:
    replays = [side.replay for side in session.sides]
    if len(replays) > 1 and all(replays):
        totals = [np.cumsum(np.sum(list(replay.terms.values()), axis=0)) for replay in replays if replay]
        return {f"fitness of the {name}": total for name, total in zip(facts.SIDES, totals, strict=True)}
    if replays[0] is None or not replays[0].steps:
        return {}
    return {name: np.cumsum(values) for name, values in replays[0].terms.items()}


def _set_menu(menu: Any, options: Sequence[str], value: str) -> None:
    if tuple(menu.options) != tuple(options):
        menu.options = tuple(options)
    menu.value = value


def _set_menus(menus: dict[str, Any], options: Sequence[Sequence[str]], listed: Listed) -> None:
    """Show what can be chosen; a menu without a choice is hidden."""
    for (name, menu), some in zip(menus.items(), options, strict=True):
        _set_menu(menu, some, getattr(listed, name))
        menu.visible = len(some) > 1
