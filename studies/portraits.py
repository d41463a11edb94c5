"""Draw the six robots side by side: docs/images/robots.png.

    MUJOCO_GL=osmesa PYTHONPATH=tests python studies/portraits.py

Needs an offscreen OpenGL (on Debian: libosmesa6); nothing else in the package does.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import mujoco

from plain import Plain
from qdbench import TASKS
from qdbench.terms import FEET_CONTACTS
from walking import scripted_gait

SECONDS = 0.6  # into the scripted gait, so that they can be seen moving


def main() -> None:
    figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
    uni = [task for task in TASKS.values() if task.descriptor is FEET_CONTACTS]
    for panel, task in zip(axes.flat, uni, strict=True):
        robot, gait = Plain(task, seed=0), scripted_gait(task.robot.name)
        while robot.time < SECONDS:
            robot.live(gait(robot))
        mujoco.mj_forward(robot.model, robot.data)
        with mujoco.Renderer(robot.model, 360, 480) as renderer:
            renderer.update_scene(robot.data, camera="track")
            panel.imshow(renderer.render())
        panel.set_title(task.robot.name)
        panel.axis("off")
    out = Path(__file__).parents[1] / "docs/images/robots.png"
    out.parent.mkdir(exist_ok=True)
    figure.savefig(out, dpi=110)
    print(f"Written: {out.name}")


if __name__ == "__main__":
    main()
