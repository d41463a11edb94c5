"""The frames of a film: the elite in the middle, its ghosts around it, and the camera that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdbench.archives.geometry import Grid
from qdbench.films.camera import Camera
from qdbench.films.drawing import GHOST_OPACITY, THEMES, Canvas, Ground, Pose
from qdbench.films.filming import Performer
from qdbench.films.packing import size_of
from qdbench.films.solids import solids
from qdbench.films.takes import Take, longest
from qdbench.simulation import kinematics
from qdbench.tasks.descriptors import FINAL_POSITION
from qdbench.tasks.robot_task import RobotTask

_SMOOTH = 0.5
"""The camera follows the mean position over ± this many seconds, so that it does not shake."""


@dataclass(frozen=True, eq=False)
class Scene:
    """An elite on film and how it is looked at."""

    task: RobotTask
    performer: Performer
    width: int = 640
    height: int = 360
    theme: str = "light"
    zoom: float = 1.0

    @property
    def seconds(self) -> float:
        """How long the film is, in simulated time."""
        return longest([self.performer.take, *self.performer.ghosts])

    def picture(self, time: float) -> Any:
        """Return the picture at a time of the episode, as a Pillow image."""
        take, robot = self.performer.take, self.task.anatomy
        canvas = Canvas(self._camera(time), THEMES[self.theme])
        shown = take.path[: take.frame_at(time) + 1].astype(np.float64)
        canvas.draw_ground(Ground(tile_of(size_of(robot)), shown, end_cell(self.task, self.performer)))
        poses = [self._pose(one, time, GHOST_OPACITY) for one in self.performer.ghosts]
        canvas.draw_robots(solids(robot), [*poses, self._pose(take, time, 1.0)])
        return canvas.finished()

    def _camera(self, time: float) -> Camera:
        take, robot = self.performer.take, self.task.anatomy
        near = take.path[take.frame_at(max(0.0, time - _SMOOTH)) : take.frame_at(time + _SMOOTH) + 1]
        x, y = near[:, :2].mean(axis=0, dtype=np.float64)
        size = size_of(robot)
        yaw, pitch = (14.0, 9.0) if robot.planar else (32.0, 24.0)
        wide = self.width / self.height
        distance = size * max(1.4, 2.2 / wide) / self.zoom
        return Camera(np.array([x, y, 0.32 * size]), distance, yaw, pitch, self.width, self.height)

    def _pose(self, take: Take, time: float, opacity: float) -> Pose:
        frame = take.frame_at(time)
        qpos = take.qpos[frame : frame + 1].astype(np.float64)
        positions, orientations, _ = kinematics(self.task.anatomy, qpos)
        return Pose(positions[0], orientations[0], take.contacts[frame], opacity)


def tile_of(size: float) -> float:
    """Return the side of a floor tile for a robot of this size: 1, 2 or 5 times a power of ten, in metres."""
    wanted = 0.6 * size
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(step * power for step in (1, 2, 5) if step * power <= wanted))


def walks_to_cell(task: RobotTask) -> bool:
    """Return whether the task's descriptor is a place on the floor."""
    return task.descriptor.name == FINAL_POSITION.name and len(task.cells) == 2


def end_cell(task: RobotTask, performer: Performer) -> NDArray[np.float64] | None:
    """Return the corners of the grid cell that an elite walks to, (4, 2); None if cells are no places."""
    if not walks_to_cell(task):
        return None
    grid = Grid(task.descriptor_bounds, task.cells)
    place = np.unravel_index(grid.cells(np.array([performer.take.descriptor])), grid.shape)
    low, high = np.asarray(task.descriptor_bounds, np.float64).T
    width = (high - low) / np.array(task.cells)
    corner = low + np.array([int(i[0]) for i in place]) * width
    return np.asarray(corner + np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * width)
