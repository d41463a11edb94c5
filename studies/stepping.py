"""What do listed contacts and stopped timers save? The same steps of every robot in three ways, in turns.

    python -m studies.stepping --repeats 15

Robots move by smooth random actions from their usual start, in one thread. All three ways must end in the
same state, bit for bit. Ratios are medians of paired repeats.
"""

from __future__ import annotations

import argparse
import time

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

import qdbench
from qdbench.robots import ROBOTS
from qdbench.robots.anatomy import Anatomy
from qdbench.simulation.native import stop_mujoco_s_timers
from studies.campaign import markdown

WAYS = ("MuJoCo as it is", "without timers", "and with listed contacts")


def stepped(robot: Anatomy, way: str, n: int, steps: int) -> tuple[float, NDArray[np.float64]]:
    """Return the seconds that n robots take for some control steps, and their final state."""
    if way == WAYS[0]:
        mujoco.set_mjcb_time(None)  # MuJoCo's own clock
    else:
        stop_mujoco_s_timers()
    batch = Batch(robot.stepped_model if way == WAYS[2] else robot.model, n, nthread=1)
    batch.reset(np.arange(n, dtype=np.int32), keyframe=robot.start_keyframe)
    ctrl, speed = batch.bind("ctrl"), qdbench.stream(0, "study").uniform(-1, 1, (n, robot.n_actions))
    start = time.perf_counter()
    for i in range(steps):
        ctrl[:] = np.sin(0.5 * i * speed)
        batch.step(nstep=robot.physics_steps)
    return time.perf_counter() - start, batch.state.copy()


def relative(seconds: list[float], usual: list[float]) -> str:
    """Return the median and the quartiles of paired ratios."""
    low, median, high = np.quantile(np.divide(seconds, usual), (0.25, 0.5, 0.75)).tolist()
    return f"{median:.2f} ({low:.2f} … {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--robots", type=int, default=64, help="of each kind at the same time")
    parser.add_argument("--steps", type=int, default=100, help="control steps")
    chosen = parser.parse_args()
    rows = []
    for name, robot in ROBOTS.items():
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        ends = []
        for _ in range(chosen.repeats):
            for way in WAYS:
                took, end = stepped(robot.anatomy, way, chosen.robots, chosen.steps)
                seconds[way].append(took)
                ends.append(end)
        if not all(np.array_equal(end, ends[0]) for end in ends):
            raise SystemExit(f"{name}: the results differ")
        rate = chosen.robots * chosen.steps * robot.physics_steps / np.median(seconds[WAYS[0]])
        rows.append([name, f"{rate:,.0f}", *(relative(seconds[way], seconds[WAYS[0]]) for way in WAYS[1:])])
    print(markdown(["robot", "physics steps/s as it is", *(f"time {way}" for way in WAYS[1:])], rows))


if __name__ == "__main__":
    main()
