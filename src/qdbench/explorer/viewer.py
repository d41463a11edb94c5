"""One browser that looks: its session, in a thread of its own, so that nobody waits for another."""

from __future__ import annotations

import logging
import threading
import time

import numpy as np
import viser
from numpy.typing import NDArray

from qdbench.errors import QdbenchError
from qdbench.explorer.library import Library
from qdbench.explorer.mailbox import Action, Mailbox
from qdbench.explorer.panel import Panel
from qdbench.explorer.placement import Lookout, lookout
from qdbench.explorer.scene import ViserFloor, ViserStage
from qdbench.explorer.session import Session

Numbers = NDArray[np.float64]

FRAME = 1 / 30
"""Seconds between two drawn moments."""
LOOK_AGAIN = 2.0
"""Seconds after which the files of runs on show are looked at again."""
_TELL_TIME = 0.25
"""Seconds between two updates of the time slider."""
_logger = logging.getLogger(__name__)


class Viewer:
    """The thread behind one browser tab."""

    def __init__(self, client: viser.ClientHandle, library: Library, looked: Lookout) -> None:
        """`looked` is where the camera is when the page opens."""
        self._client = client
        self._mailbox = Mailbox()
        stages = ViserStage(client, "/first"), ViserStage(client, "/second")
        self.session = Session(library, stages, ViserFloor(client))
        self._panel = Panel(client, self.session, self._mailbox)
        self._looked = looked
        self._thread = threading.Thread(target=self._live, name="qdbench viewer", daemon=True)

    def start(self) -> None:
        """Begin with the first run."""
        client = self._client

        @client.scene.on_click()
        def _(event: viser.SceneClickEvent) -> None:
            origin, direction = np.array(event.ray_origin), np.array(event.ray_direction)
            self._mailbox.post("click", lambda: self._pick(origin, direction))

        self._mailbox.post("open", self._open)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._mailbox.close()

    def _open(self) -> None:
        self.session.open(self.session.library.first())

    def _look(self) -> None:
        """Put the camera where everything can be seen, if it is about another archive than before."""
        side = self.session.sides[0]
        wanted = lookout(side.plane, in_metres=side.view.is_in_metres)
        if wanted != self._looked:
            self._client.camera.position, self._client.camera.look_at = wanted
        self._looked = wanted

    def _pick(self, origin: Numbers, direction: Numbers) -> None:
        side = self.session.pick(origin, direction)
        if side is not None:
            self._panel.active = side

    def _live(self) -> None:
        """Do what the viewer asks for, and let time pass, until the browser is closed."""
        then = looked = told = time.monotonic()
        while True:
            moving = bool(self.session.sides) and self.session.is_moving
            wait = max(0.0, FRAME - (time.monotonic() - then)) if moving else LOOK_AGAIN
            actions = self._mailbox.take(wait)
            if actions is None:
                return
            for action in actions:
                self._try(action)
            now = time.monotonic()
            if actions:
                then = now  # what took long is not skipped of the episode
            elif moving:
                self._try(lambda: self.session.advance(now - then), refresh=False)  # noqa: B023
            if now - told > _TELL_TIME and moving:
                self._panel.tick()
                told = now
            then = now
            if now - looked > LOOK_AGAIN:
                looked = now
                if self.session.sides and self.session.is_outdated():
                    self._try(self.session.refresh)

    def _try(self, action: Action, *, refresh: bool = True) -> None:
        """Do something; what goes wrong is said on the page."""
        try:
            action()
            if refresh and self.session.sides:
                self._look()
                self._panel.refresh()
                self._panel.fail("")
        except (QdbenchError, OSError) as error:
            self._panel.fail(str(error))
        except Exception as error:
            _logger.exception("the explorer could not do what was asked for")
            self._panel.fail(f"{type(error).__name__}: {error}")
