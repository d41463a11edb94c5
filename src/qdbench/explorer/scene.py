"""The scene in the browser: archives, robots, ghosts, paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from qdbench.explorer.colours import Bytes
from qdbench.explorer.parts import Part
from qdbench.explorer.placement import Placement
from qdbench.explorer.plane import Plane
from qdbench.explorer.replays import Pose

Numbers = NDArray[np.float64]

LIT = (255, 236, 64)
"""Colour of a foot that the floor pushes against."""
MARK, PATH, END = (255, 255, 255), (255, 120, 40), (255, 70, 130)
GHOST, GHOST_OPACITY = (255, 110, 160), 0.4
_TILE, _BELOW = 5.0, -0.002
"""Metres between strong lines of the floor, and how far it is below archives."""
_DRAWN_WIDTH = 2.4
"""Width of what a user's own function draws, in metres."""


def _linear(colour: tuple[int, int, int]) -> Bytes:
    """Return a colour as the browser takes those of many copies: proportional to light."""
    return np.rint(255 * (np.array(colour) / 255) ** 2.2).astype(np.uint8)


class Troupe:
    """Several copies of one robot: each part is one mesh that is drawn at several places."""

    def __init__(
        self, scene: viser.SceneApi, name: str, parts: Sequence[Part], n: int, *, ghostly: bool
    ) -> None:
        self._parts = parts
        self._colours = [_linear(GHOST if ghostly else part.colour) for part in parts]
        self._lit = [b""] * len(parts)
        still = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        self._meshes = [
            scene.add_batched_meshes_simple(
                f"{name}/{i}", part.vertices, part.faces, still, np.zeros((n, 3)),
                batched_colors=colour, opacity=GHOST_OPACITY if ghostly else None, lod="off",
                cast_shadow=not ghostly, receive_shadow=False,
            )
            for i, (part, colour) in enumerate(zip(parts, self._colours, strict=True))
        ]  # fmt: skip

    def pose(self, poses: Sequence[Pose]) -> None:
        """Draw every copy as it is at one moment; loaded feet light up."""
        positions = np.stack([pose.positions for pose in poses])
        orientations = np.stack([pose.orientations for pose in poses])
        loaded = np.stack([pose.loaded for pose in poses])
        together = zip(self._parts, self._colours, self._meshes, strict=True)
        for i, (part, colour, mesh) in enumerate(together):
            mesh.batched_positions = positions[:, part.body]
            mesh.batched_wxyzs = orientations[:, part.body]
            lit = loaded[:, part.foot] if part.foot >= 0 else None
            if lit is not None and lit.tobytes() != self._lit[i]:
                self._lit[i] = lit.tobytes()
                mesh.batched_colors = np.where(lit[:, None], _linear(LIT), colour)

    def remove(self) -> None:
        """Remove all copies."""
        for mesh in self._meshes:
            mesh.remove()


class ViserFloor:
    """The floor with its lines."""

    def __init__(self, client: viser.ClientHandle) -> None:
        self._grid: Any = client.scene.add_grid(
            "/floor", infinite_grid=True, cell_color=(52, 57, 66), section_color=(66, 72, 84), cell_size=1.0,
            section_size=_TILE, fade_distance=45.0, shadow_opacity=0.0, position=(0.0, 0.0, _BELOW),
        )  # fmt: skip
        client.scene.add_grid(  # lies above archives: pictures take no shadows
            "/shadows", 400.0, 400.0, cell_thickness=0.0, section_thickness=0.0, shadow_opacity=0.55,
            position=(0.0, 0.0, 0.01),
        )  # fmt: skip

    def shift(self, by: Numbers) -> None:
        """Move the floor below the robots; after a whole tile it looks the same."""
        along, across, _ = np.mod(by, _TILE).tolist()
        self._grid.position = along, across, _BELOW


class ViserStage:
    """One side of the scene."""

    def __init__(self, client: viser.ClientHandle, name: str) -> None:
        self._scene, self._name = client.scene, name
        self._client = client
        self._root: Any = None
        self._board: Any = None
        self._start: Any = None
        self._image: Any = None
        self._placement: Placement | None = None
        self._named: dict[str, Any] = {}
        self._parts: Sequence[Part] = ()
        self._robot: Troupe | None = None
        self._ghosts: tuple[int, Troupe | None] = (0, None)

    def show_archive(self, image: Bytes, plane: Plane, placement: Placement) -> None:
        """Draw the picture of an archive."""
        self.hide()
        self._placement = placement
        self._root = self._scene.add_frame(self._name, show_axes=False)
        self._board = self._scene.add_frame(
            f"{self._name}/board", show_axes=False, wxyz=placement.wxyz, position=placement.centre
        )
        self._start = self._scene.add_frame(f"{self._name}/start", show_axes=False, position=placement.start)
        width, height = placement.size
        self._image = self._scene.add_image(
            f"{self._name}/board/image", image, width, height, cast_shadow=False, receive_shadow=False
        )
        along, up = plane.axes()
        labels = [("x", along, (0.5, -0.02), "top-center")]
        if not plane.is_strip:
            labels.append(("y", up, (-0.02, 1.0), "bottom-left"))
        for key, text, at, anchor in labels:
            self._keep(
                f"label {key}",
                self._scene.add_label(
                    f"{self._name}/board/{key}", text, position=placement.local(np.array(at)),
                    font_screen_scale=0.75, anchor=anchor,  # type: ignore[arg-type]
                ),
            )  # fmt: skip

    def recolour(self, image: Bytes) -> None:
        """Replace the colours of the picture."""
        if self._image is not None:
            self._image.image = image

    def mark(self, outline: Numbers | None) -> None:
        """Draw the border of the chosen cell."""
        self._forget("mark")
        if outline is not None and self._placement is not None:
            lines = self._placement.local(outline, above=0.006)
            self._keep("mark", self._lines("board/mark", lines, MARK, 3.0))

    def cast(self, parts: Sequence[Part], n_ghosts: int) -> None:
        """Make a robot and its ghosts, if they are not there yet."""
        if parts is not self._parts or self._robot is None:
            self._remove_robots()
            self._parts = parts
            if parts:
                self._robot = Troupe(self._scene, f"{self._name}/start/robot", parts, 1, ghostly=False)
        if n_ghosts != self._ghosts[0]:
            if self._ghosts[1] is not None:
                self._ghosts[1].remove()
            made = (
                Troupe(self._scene, f"{self._name}/start/ghosts", parts, n_ghosts, ghostly=True)
                if n_ghosts and parts
                else None
            )
            self._ghosts = n_ghosts, made

    def trace(self, path: Numbers | None, ends: Numbers) -> None:
        """Draw the path of the centre of mass, and where the ghosts ended on the archive."""
        self._forget("path", "ends")
        if path is not None and len(path) > 1:
            pieces = np.stack([path[:-1], path[1:]], axis=1)
            self._keep("path", self._lines("start/path", pieces, PATH, 3.0))
        if len(ends) and self._placement is not None:
            size = 0.01 * max(self._placement.size)
            points = self._placement.local(ends, above=size)
            self._keep(
                "ends",
                self._scene.add_point_cloud(
                    f"{self._name}/board/ends", points, END, point_size=size, point_shape="circle"
                ),
            )

    def pose(self, pose: Pose, ghosts: Sequence[Pose]) -> None:
        """Draw one moment, all of it at once."""
        with self._client.atomic():
            if self._robot is not None:
                self._robot.pose([pose])
            if self._ghosts[1] is not None and len(ghosts) == self._ghosts[0]:
                self._ghosts[1].pose(ghosts)

    def draw(self, drawn: NDArray[np.generic] | None) -> None:
        """Show what a user's own function drew, beside the archive: a line, or an image."""
        self._forget("drawn", "joints")
        if drawn is None or self._placement is None:
            return
        board = np.array([self._placement.size[0] / 2 + 0.3 + _DRAWN_WIDTH / 2, 0.0, 0.0])
        if drawn.ndim == 3:
            height = _DRAWN_WIDTH * drawn.shape[0] / drawn.shape[1]
            flipped = np.ascontiguousarray(drawn[::-1])  # an image begins at the top
            self._keep(
                "drawn",
                self._scene.add_image(
                    f"{self._name}/board/drawn", flipped, _DRAWN_WIDTH, height, position=board
                ),
            )
            return
        points = np.zeros((len(drawn), 3))
        points[:, : drawn.shape[1]] = drawn
        reach = float(np.abs(points).max()) or 1.0
        points = points * (_DRAWN_WIDTH / 2 / reach) + board
        self._keep(
            "drawn", self._lines("board/drawn", np.stack([points[:-1], points[1:]], axis=1), PATH, 5.0)
        )
        self._keep(
            "joints",
            self._scene.add_point_cloud(
                f"{self._name}/board/joints", points, END, point_size=0.05, point_shape="circle"
            ),
        )

    def shift(self, by: Numbers) -> None:
        """Move the robots' world, and an archive that lies on its floor; a standing one stays."""
        if self._placement is None:
            return
        self._start.position = self._placement.start + by
        if not self._placement.is_standing:
            self._board.position = self._placement.centre + by

    def hide(self) -> None:
        """Remove everything."""
        if self._root is not None:
            self._root.remove()  # and all that is below it
        self._named.clear()
        self._root = self._image = self._board = self._robot = self._placement = None
        self._ghosts, self._parts = (0, None), ()

    def _remove_robots(self) -> None:
        for troupe in (self._robot, self._ghosts[1]):
            if troupe is not None:
                troupe.remove()
        self._robot, self._ghosts, self._parts = None, (0, None), ()

    def _lines(self, name: str, pieces: Numbers, colour: tuple[int, int, int], width: float) -> Any:
        return self._scene.add_line_segments(
            f"{self._name}/{name}",
            pieces.astype(np.float32),
            colour,
            thickness=width,
            thickness_units="screen",
        )

    def _keep(self, key: str, handle: Any) -> None:
        self._named[key] = handle

    def _forget(self, *keys: str) -> None:
        for key in keys:
            if key in self._named:
                self._named.pop(key).remove()
