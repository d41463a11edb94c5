"""`qdbench.explore`: the server behind the page, on this computer only."""

from __future__ import annotations

import io
import logging
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qdbench.checks import checked_flag, checked_function, checked_paths, is_whole, shown
from qdbench.errors import InvalidInput
from qdbench.explorer.catalogue import catalogue
from qdbench.explorer.library import Draw, Library
from qdbench.explorer.placement import lookout
from qdbench.store.loading import StoredRun
from qdbench.tasks.contract import Task

HOST = "127.0.0.1"
PORTS = range(8080, 8180)
"""Ports that are tried if none is given."""


class Explorer:
    """A page about runs, served until `stop` is called or the program ends."""

    def __init__(self, library: Library, port: int) -> None:
        import viser

        from qdbench.explorer.viewer import Viewer

        class Private(viser.ViserServer):  # a page could ask the server for a public link: there is none
            def request_share_url(self, verbose: bool = True) -> str | None:
                return None

        self.library = library
        self._viewers: dict[int, Viewer] = {}
        self._stopped = threading.Event()
        logging.getLogger("websockets.server").setLevel(logging.CRITICAL)  # a tab closed early is no error
        with redirect_stdout(io.StringIO()):  # viser prints its address; so do we
            self._server = Private(host=HOST, port=port, label="qdbench", verbose=False)
        self.address = f"http://{HOST}:{self._server.get_port()}"
        """What a browser on this computer opens."""
        self._server.gui.configure_theme(
            dark_mode=True, show_logo=False, show_share_button=False, brand_color=(33, 144, 141)
        )
        self._server.scene.set_up_direction("+z")
        view = library.view(library.first().path)
        looked = lookout(view.plane("as found"), in_metres=view.is_in_metres)
        self._server.initial_camera.position, self._server.initial_camera.look_at = looked
        self._add_surroundings()

        @self._server.on_client_connect
        def _(client: viser.ClientHandle) -> None:
            viewer = self._viewers[client.client_id] = Viewer(client, library, looked)
            viewer.start()

        @self._server.on_client_disconnect
        def _(client: viser.ClientHandle) -> None:
            viewer = self._viewers.pop(client.client_id, None)
            if viewer is not None:
                viewer.stop()

    def _add_surroundings(self) -> None:
        scene = self._server.scene
        scene.configure_default_lights(enabled=False)  # too bright: colours of robots fade
        scene.configure_environment_map("warehouse", environment_intensity=0.7)
        scene.add_light_directional("/sun", intensity=2.6, cast_shadow=True, position=(-3.0, -4.0, 9.0))
        self._server.gui.main_panel.dock_right()

    def open_browser(self) -> bool:
        """Open the page in a browser, if there is one with windows; return whether there is."""
        return has_browser() and webbrowser.open(self.address)

    def wait(self) -> None:
        """Wait until `stop` is called; Ctrl-C stops it, too."""
        try:
            while not self._stopped.wait(1.0):
                pass
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Stop the server and all viewers."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        for viewer in list(self._viewers.values()):
            viewer.stop()
        with redirect_stdout(io.StringIO()):  # viser says that it stopped; so do we
            self._server.stop()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def explore(
    run: StoredRun | str | Path | Sequence[str | Path],
    *,
    port: int | None = None,
    browser: bool = True,
    task: Task | None = None,
    trust: bool = False,
    draw: Draw | None = None,
) -> Explorer:
    """Show runs in a browser on this computer: click a cell, and its robot walks.

    `run` is a run, its folder, or a folder with several. The page is served in the background until the
    program ends; `wait()` on what is returned serves it until Ctrl-C. `task` is only needed where the run's
    task was made in Python; `trust` allows to import a module of your own that runs name. `draw` shows a
    solution of a task without a robot: it takes the parameters and returns a line of points, (n, 2) or
    (n, 3), or an image, (height, width, 3) of bytes.
    """
    require_viser()
    browser, trust = checked_flag("browser", browser), checked_flag("trust", trust)
    paths = [run.path] if isinstance(run, StoredRun) else checked_paths("run", run)
    if task is not None and not isinstance(task, Task):
        raise InvalidInput(f"the task is {shown(task)}; give an object with the members of qdbench.Task")
    if draw is not None:
        checked_function("draw", draw)
    number = free_port(port)
    library = Library(catalogue(paths), task, trust, draw)
    library.first()  # says what is wrong before a server is started
    explorer = Explorer(library, number)
    if browser:
        explorer.open_browser()
    return explorer


def require_viser() -> None:
    """Say what is missing, before anything is read."""
    if find_spec("viser") is None:
        raise InvalidInput("the explorer needs viser: pip install 'qdbench[explore]'")


def free_port(port: int | None) -> int:
    """Return the port that was asked for, or the first free one; InvalidInput if it is in use."""
    if port is None:
        return next((number for number in PORTS if _is_free(number)), 0)
    if not is_whole(port) or not 0 <= port < 2**16:
        raise InvalidInput(f"port is {shown(port)}; give a whole number from 0 (any free one) to 65535")
    if port and not _is_free(int(port)):
        raise InvalidInput(f"port {port} cannot be used: another program uses it, or it is not allowed; "
                           "give another --port, or none")  # fmt: skip
    return int(port)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def has_browser() -> bool:
    """Return whether a page can be opened in a window: not without a display."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    try:
        found: Any = webbrowser.get()
    except webbrowser.Error:
        return False
    return found is not None
