"""Is the physics step small enough? Random, scripted and briefly evolved behaviour at h, h/2 and h/4.

    PYTHONPATH=tests python studies/convergence.py ant_uni ant_omni --steps 4

Walking is chaotic: no two step sizes give the same trajectory, so single episodes are not compared but
distributions. Policies are evolved at the step under test, because evolution exploits a coarse one.
The measure is the change of the mean from h to h/2 and to h/4 in units of the spread that the task's
fitness (or descriptor) has over behaviours, policies and seeds; `seeds` shows the change that other
seeds alone make. On omni tasks how far an episode led, in whichever direction, counts as one dimension more.
A row passes ("yes") when the 95 % interval of every change lies within ±0.25 spreads, fails ("NO") when one
lies wholly outside, and is undecided otherwise.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from plain import live_episode
from qdbench import TASKS, RobotTask, evaluation_seeds, run, stream
from qdbench.terms import FINAL_POSITION
from walking import scripted_gait

Values = NDArray[np.float64]  #: (policies, seeds, columns): fitness, descriptor; on omni tasks the distance
TOLERANCE = 0.25


def evolve(task: RobotTask, generations: int, batch: int = 256) -> NDArray[np.float32]:
    """A few generations of MAP-Elites; returns its elites, best first."""
    with tempfile.TemporaryDirectory() as out:
        elites = run(task, evaluations=batch * generations, out=out, batch_size=batch).archive.elites
    return elites.solutions[np.argsort(-elites.fitness, kind="stable")]


def values(task: RobotTask, solutions: NDArray[np.float32], n_seeds: int, first_seed: int) -> Values:
    seeds = evaluation_seeds(first_seed, n_seeds)
    result = task.evaluate(np.repeat(solutions, n_seeds, axis=0), np.tile(seeds, len(solutions)))
    return columns(task, result.fitness, result.descriptors).reshape(len(solutions), n_seeds, -1)


def columns(task: RobotTask, fitness: NDArray[np.float64], descriptors: NDArray[np.float64]) -> Values:
    distance = [np.linalg.norm(descriptors, axis=1)] if task.descriptor is FINAL_POSITION else []
    return np.column_stack([fitness, descriptors, *distance])


def scripted(task: RobotTask, n_seeds: int, first_seed: int) -> Values:
    gait = scripted_gait(task.robot.name)
    episodes = [live_episode(task, gait, int(seed)) for seed in evaluation_seeds(first_seed, n_seeds)]
    fitness = np.array([episode.fitness for episode in episodes])
    return columns(task, fitness, np.stack([episode.descriptor for episode in episodes]))[:, None]


def interval(change: Values) -> NDArray[np.float64]:
    """Mean over policies and seeds with its 95 % bootstrap interval, (3, columns)."""
    means = change.mean(axis=1)
    drawn = stream(0, "bootstrap").integers(len(means), size=(2000, len(means)))
    low, high = np.percentile(means[drawn].mean(axis=1), (2.5, 97.5), axis=0)
    return np.stack([means.mean(axis=0), low, high])


def verdict(*intervals: NDArray[np.float64]) -> str:
    _, low, high = np.concatenate(intervals, axis=1)
    if np.isnan(low).any() or ((low > TOLERANCE) | (high < -TOLERANCE)).any():  # NaN: an episode diverged
        return "NO"
    return "yes" if ((low > -TOLERANCE) & (high < TOLERANCE)).all() else "undecided"


def shown(change: NDArray[np.float64]) -> str:
    """The change of the fitness and the largest one of a descriptor, with their intervals."""
    mean, low, high = change
    worst = int(np.argmax(np.maximum(-low[1:], high[1:]))) + 1
    return " | ".join(f"{mean[i]:+.2f} ({low[i]:+.2f} … {high[i]:+.2f})" for i in (0, worst))


def study(task: RobotTask, steps: int, n_policies: int, n_seeds: int, generations: int) -> None:
    finer = [replace(task, robot=replace(task.robot, physics_steps=steps * k)) for k in (1, 2, 4)]
    elites = evolve(finer[0], generations)
    chosen = elites[np.linspace(0, len(elites) - 1, min(n_policies, len(elites))).astype(int)]
    kinds = {"random": task.random_solutions(n_policies, stream(1, "study")), "evolved": chosen}
    variants = [*((t, 7) for t in finer), (finer[0], 8)]  # three steps, then other seeds
    measured = {
        kind: [values(t, solutions, n_seeds, seed) for t, seed in variants]
        for kind, solutions in kinds.items()
    }
    measured["scripted"] = [scripted(t, n_policies, seed) for t, seed in variants]  # one policy, many seeds
    # the spread over everything simulated at h, each kind of behaviour weighing alike
    moments = [(at_h.mean(axis=(0, 1)), at_h.var(axis=(0, 1))) for at_h, *_ in measured.values()]
    means, variances = (np.stack(column) for column in zip(*moments, strict=True))
    spread = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    for kind, (at_h, at_half, at_quarter, other_seeds) in measured.items():
        half, quarter = (interval((at_h - finer) / spread) for finer in (at_half, at_quarter))
        noise = interval((at_h - other_seeds) / spread)[0]
        levels = " | ".join(f"{level[..., 0].mean():.0f}" for level in (at_h, at_half, at_quarter))
        print(
            f"| {task.name} | {steps} | {kind} | {levels} | {shown(half)} | {shown(quarter)} "
            f"| {abs(noise).max():.2f} | {verdict(half, quarter)} |",
            flush=True,
        )
    best = measured["evolved"][0][0, :, 0].mean(), measured["evolved"][2][0, :, 0].mean()
    print(
        f"| {task.name} | {steps} | the best evolved | {best[0]:.0f} | | {best[1]:.0f} | | | | | | |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument(
        "--steps", type=int, nargs="*", help="physics steps to test (default: the robot's own)"
    )
    parser.add_argument("--episode-length", type=int, default=250)
    parser.add_argument("--policies", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--generations", type=int, default=10)
    arguments = parser.parse_args()
    print(
        "| task | physics steps | behaviour | fitness at h | h/2 | h/4 | h/2: fitness | h/2: descriptor "
        "| h/4: fitness | h/4: descriptor | seeds | agrees |"
    )
    print("|" + "---|" * 12)
    for name in arguments.tasks:
        task = replace(TASKS[name], episode_length=arguments.episode_length)
        for steps in arguments.steps or [task.robot.physics_steps]:
            study(task, steps, arguments.policies, arguments.seeds, arguments.generations)


if __name__ == "__main__":
    main()
