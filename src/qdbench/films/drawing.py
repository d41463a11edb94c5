"""Draw robots without a graphics card: solids in painter's order on a floor, by Pillow.

`reports/player.js` draws the same scene in a browser. Everything is drawn twice as large and made smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.films.camera import NEAR, Camera
from qdbench.films.solids import Solid, rotations

Colour = tuple[int, int, int]
_SUPERSAMPLING = 2
_LIGHT = np.array([-0.35, -0.5, 0.79])
"""Where the light comes from: a unit vector."""
_TILES = 14
"""How far the floor reaches, in tiles."""
LIT: Colour = (255, 209, 46)
"""A foot that carries load."""
GHOST_OPACITY = 0.3


@dataclass(frozen=True)
class Theme:
    """The colours of a picture."""

    background: Colour
    tiles: tuple[Colour, Colour]
    ink: Colour
    path: Colour
    shadow: float


THEMES = {
    "light": Theme((247, 249, 251), ((236, 240, 244), (222, 228, 235)), (40, 46, 54), (213, 94, 0), 0.32),
    "dark": Theme((22, 25, 29), ((32, 37, 43), (43, 49, 57)), (214, 220, 227), (240, 150, 60), 0.5),
}


@dataclass(frozen=True, eq=False)
class Pose:
    """A robot at one moment: where its bodies are, and which feet are loaded."""

    positions: NDArray[np.float64]  #: (bodies, 3)
    orientations: NDArray[np.float64]  #: (bodies, 4)
    contacts: NDArray[np.bool_]  #: (feet,)
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Ground:
    """What lies on the floor: the path walked so far, and the cell the elite is stored in."""

    tile: float
    """The side of a tile, in metres."""
    path: NDArray[np.float64]  #: (n, 3)
    cell: NDArray[np.float64] | None = None  #: (4, 2) corners of the elite's cell


class Canvas:
    """A picture in the making."""

    def __init__(self, camera: Camera, theme: Theme) -> None:
        from PIL import Image

        s = _SUPERSAMPLING
        self.theme, self.final = theme, (camera.width, camera.height)
        self.camera = replace(camera, width=s * camera.width, height=s * camera.height)
        self.size = (self.camera.width, self.camera.height)
        self.image = Image.new("RGB", self.size, theme.background)

    def draw_ground(self, ground: Ground) -> None:
        """Draw the floor, the elite's cell and its path."""
        draw = self._brush(self.image)
        self._draw_tiles(draw, ground.tile)
        if ground.cell is not None:
            corners = np.concatenate([ground.cell, np.zeros((4, 1))], axis=1)
            places, depths = self.camera.project(corners)
            if depths.min() > NEAR:
                around = [tuple(place) for place in [*places, places[0]]]
                mixed = _mixed(self.theme.path, self.theme.background, 0.65)
                draw.polygon(around, fill=mixed)
                draw.line(around, fill=self.theme.path, width=2 * _SUPERSAMPLING)
        on_floor = ground.path * [1, 1, 0]
        if len(on_floor) > 1:
            places, depths = self.camera.project(on_floor)
            seen = [tuple(place) for place in places[depths > NEAR]]
            draw.line(seen, fill=self.theme.path, width=2 * _SUPERSAMPLING, joint="curve")

    def draw_robots(self, solids: Sequence[Solid], poses: Sequence[Pose]) -> None:
        """Draw robots with their shadows; translucent ones first."""
        from PIL import Image

        self._draw_shadows(solids, poses)
        for pose in sorted(poses, key=lambda pose: pose.opacity):
            layer = Image.new("RGBA", self.size, (0, 0, 0, 0))
            self._draw_robot(self._brush(layer), solids, pose)
            if pose.opacity < 1:
                layer.putalpha(layer.getchannel("A").point(lambda a, share=pose.opacity: int(a * share)))
            self.image.paste(layer, (0, 0), layer)

    def finished(self) -> Any:
        """Return the picture in its final size."""
        return self.image.reduce(_SUPERSAMPLING)

    @staticmethod
    def _brush(image: Any) -> Any:
        from PIL import ImageDraw

        return ImageDraw.Draw(image)

    def _draw_tiles(self, draw: Any, tile: float) -> None:
        middle = np.floor(self.camera.target[:2] / tile).astype(int)
        steps = np.arange(-_TILES, _TILES + 1)
        corners = np.stack(np.meshgrid(steps, steps, [0], indexing="ij"), axis=-1)[:, :, 0]
        places, depths = self.camera.project((corners.reshape(-1, 3) + np.array([*middle, 0])) * tile)
        places, depths = places.reshape(*corners.shape[:2], 2), depths.reshape(corners.shape[:2])
        for i, j in np.ndindex(2 * _TILES, 2 * _TILES):
            if depths[i : i + 2, j : j + 2].min() <= NEAR:
                continue
            far = np.hypot(steps[i] + 0.5, steps[j] + 0.5) / _TILES
            colour = self.theme.tiles[int(middle.sum() + i + j) % 2]
            faded = _mixed(colour, self.theme.background, min(1.0, max(0.0, 1.6 * far - 0.6)))
            around = (places[i, j], places[i + 1, j], places[i + 1, j + 1], places[i, j + 1])
            draw.polygon([tuple(place) for place in around], fill=faded)

    def _draw_shadows(self, solids: Sequence[Solid], poses: Sequence[Pose]) -> None:
        from PIL import Image, ImageFilter

        mask = Image.new("L", self.size, 0)
        draw = self._brush(mask)
        for pose in poses:
            dark = int(255 * self.theme.shadow * pose.opacity)
            for solid, points in _placed(solids, pose):
                flat = points - _LIGHT * (points[:, 2:] / _LIGHT[2])
                places, depths = self.camera.project(flat)
                if depths.min() <= NEAR:
                    continue
                if solid.faces:
                    for face in solid.faces:
                        draw.polygon([tuple(places[i]) for i in face], fill=dark)
                else:
                    _stroke(draw, places, 2 * solid.radius * self.camera.scale / depths.mean(), dark)
        soft = mask.filter(ImageFilter.GaussianBlur(self.size[1] / 180))
        self.image.paste(Image.new("RGB", self.size, (10, 14, 20)), (0, 0), soft)

    def _draw_robot(self, draw: Any, solids: Sequence[Solid], pose: Pose) -> None:
        seen = []
        for solid, points in _placed(solids, pose):
            places, depths = self.camera.project(points)
            if depths.min() > NEAR:
                seen.append((float(depths.mean()), solid, points, places))
        for depth, solid, points, places in sorted(seen, key=lambda one: -one[0]):
            loaded = solid.foot >= 0 and bool(pose.contacts[solid.foot])
            colour = LIT if loaded else solid.colour
            if solid.faces:
                self._draw_faces(draw, solid, points, places, colour)
            else:
                _draw_round(draw, places, 2 * solid.radius * self.camera.scale / depth, colour)

    def _draw_faces(
        self,
        draw: Any,
        solid: Solid,
        points: NDArray[np.float64],
        places: NDArray[np.float64],
        colour: Colour,
    ) -> None:
        for face in solid.faces:
            corners = points[list(face)]
            normal = np.cross(corners[1] - corners[0], corners[2] - corners[1])
            eye = self.camera.target - self.camera.axes[2] * self.camera.distance
            if normal @ (eye - corners[0]) <= 0:
                continue
            light = float(normal @ _LIGHT / max(float(np.linalg.norm(normal)), 1e-12))
            draw.polygon(
                [tuple(places[i]) for i in face], fill=_shaded(colour, 0.72 + 0.33 * max(0.0, light))
            )


def _placed(solids: Sequence[Solid], pose: Pose) -> list[tuple[Solid, NDArray[np.float64]]]:
    """Return every solid with its points in the world."""
    turned = rotations(pose.orientations)
    return [
        (
            solid,
            solid.points
            if solid.body < 0
            else solid.points @ turned[solid.body].T + pose.positions[solid.body],
        )
        for solid in solids
    ]


def _draw_round(draw: Any, places: NDArray[np.float64], width: float, colour: Colour) -> None:
    """Draw a capsule or a sphere: dark at its edge, bright towards the light."""
    lit = np.array([-0.16, -0.2]) * width
    _stroke(draw, places, width, _shaded(colour, 0.66))
    _stroke(draw, places + 0.35 * lit, 0.86 * width, _shaded(colour, 0.88))
    _stroke(draw, places + 0.7 * lit, 0.62 * width, colour)
    _stroke(draw, places + 1.1 * lit, 0.26 * width, _mixed(colour, (255, 255, 255), 0.35))


def _stroke(draw: Any, places: NDArray[np.float64], width: float, colour: Any) -> None:
    """Draw a line with round ends, or a disc."""
    radius = max(0.5, width / 2)
    if len(places) > 1:
        draw.line([tuple(place) for place in places], fill=colour, width=max(1, round(width)))
    for x, y in places:
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def _shaded(colour: Colour, light: float) -> Colour:
    red, green, blue = (min(255, round(part * light)) for part in colour)
    return red, green, blue


def _mixed(colour: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue
