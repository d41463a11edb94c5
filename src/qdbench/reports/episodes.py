"""A picture of an episode: poses, foot contacts and rewards."""

from __future__ import annotations

import textwrap
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from qdbench.simulation import Episode
from qdbench.tasks.robot_task import RobotTask

BLUE, ORANGE, GREEN, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#777777",
)  # Okabe and Ito: safe for the colour-blind
_POSES = 12
_TITLE_COLUMNS = 90


def draw_episode(task: RobotTask, episode: Episode, path: Path) -> None:
    """Write a picture of an episode. The file name's ending selects the format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (side, feet, reward) = pyplot.subplots(
        3, 1, figsize=(8, 6.5), height_ratios=(3, 1.2, 1.6), layout="constrained"
    )
    _draw_poses(side, task, episode)
    if task.robot.feet:
        _draw_contacts(feet, task, episode)
    else:
        feet.remove()
    _draw_terms(reward, episode)
    named = zip(task.descriptor_names, episode.descriptor, strict=True)
    descriptor = textwrap.fill(", ".join(f"{name} {x:.2f}" for name, x in named), _TITLE_COLUMNS)
    figure.suptitle(
        f"{task.name}: fitness {episode.fitness:.1f}, {episode.steps} steps\n{descriptor}", fontsize="medium"
    )
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_poses(axes: Any, task: RobotTask, episode: Episode) -> None:
    model = task.anatomy.model
    parents = model.body_parentid[1:] - 1
    frames = np.linspace(0, episode.steps, min(_POSES, episode.steps + 1)).astype(int)
    for shade, frame in enumerate(frames):
        bodies, orientations = episode.body_positions[frame], episode.body_orientations[frame]
        look = {"color": BLUE, "alpha": 0.25 + 0.75 * shade / max(len(frames) - 1, 1), "linewidth": 1.5}
        for body, parent in enumerate(parents):
            if parent >= 0:
                axes.plot(*zip(bodies[parent][[0, 2]], bodies[body][[0, 2]], strict=True), **look)
        for geoms in task.anatomy.foot_geoms:
            ends = [end for geom in geoms for end in _foot_ends(model.geom(geom))]
            body = int(model.geom_bodyid[geoms[0]]) - 1
            points = sorted([np.zeros(3), *ends], key=lambda end: float(np.linalg.norm(end)))
            drawn = [bodies[body] + _rotated(orientations[body], point) for point in points]
            axes.plot(*np.array(drawn)[:, [0, 2]].T, **look)
    axes.plot(*episode.centre_of_mass[:, [0, 2]].T, color=ORANGE, linewidth=1, label="centre of mass")
    axes.axhline(0, color=GREY, linewidth=1)
    axes.set(xlabel="x (m)", ylabel="z (m)", aspect="equal", adjustable="datalim")
    axes.legend(loc="upper right", frameon=False)


def _foot_ends(geom: Any) -> list[np.ndarray[Any, Any]]:
    """Return the two ends of a capsule, or the centre of another geom, in the body's frame."""
    import mujoco

    if geom.type[0] != int(mujoco.mjtGeom.mjGEOM_CAPSULE):
        return [geom.pos]
    axis = _rotated(geom.quat, np.array([0, 0, geom.size[1]]))
    return [geom.pos - axis, geom.pos + axis]


def _rotated(quaternion: np.ndarray[Any, Any], vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import mujoco

    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, np.asarray(vector, np.float64), quaternion)
    return result


def _draw_contacts(axes: Any, task: RobotTask, episode: Episode) -> None:
    axes.imshow(
        episode.contacts.T,
        aspect="auto",
        interpolation="nearest",
        cmap="Greys",
        vmin=0,
        vmax=1,
        extent=(0, episode.time[-1], len(task.robot.feet) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(task.robot.feet)), task.robot.feet)
    axes.set_title("feet on the ground", loc="left", fontsize="medium")
    axes.set_xlim(0, episode.time[-1])


def _draw_terms(axes: Any, episode: Episode) -> None:
    colours = cycle((BLUE, GREEN, ORANGE, GREY))
    for (name, values), colour in zip(episode.terms.items(), colours, strict=False):
        axes.plot(episode.time[1:], np.cumsum(values), color=colour, label=name)
    axes.plot(episode.time[1:], np.cumsum(sum(episode.terms.values())), color="black",
              linewidth=1, linestyle="--", label="fitness")  # fmt: skip
    axes.set(xlabel="time (s)", ylabel="sum so far", xlim=(0, episode.time[-1]))
    axes.legend(frameon=False, ncols=4, fontsize="small")
