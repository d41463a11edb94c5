"""Policies of a run, described: the only part of exporting that needs the robot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import mujoco
import numpy as np

from qdbench.errors import InvalidInput
from qdbench.experiments.replaying import elite_row, replayable_task
from qdbench.exports.facts import ActuatorFacts, BlockFacts, NetworkFacts, PolicyFacts, RobotFacts, TermFacts
from qdbench.exports.policies import ExportedPolicy
from qdbench.robots.anatomy import SENSORS, Anatomy
from qdbench.robots.mjcf import complete_mjcf
from qdbench.store.loading import StoredRun
from qdbench.tasks.contract import Task
from qdbench.tasks.robot_task import RobotTask
from qdbench.tasks.state import State
from qdbench.tasks.terms import Block, Term


def policies_of(
    run: StoredRun,
    elite: int | Literal["best", "all"] = "best",
    cell: int | Sequence[int] | None = None,
    task: Task | None = None,
    *,
    trust: bool = False,
) -> ExportedPolicy:
    """Return policies of a run with everything that a file will say about them."""
    walking = replayable_task(run, task, trust=trust)
    if not isinstance(walking, RobotTask):
        raise InvalidInput(f"{walking.name} is no RobotTask, so it has no policy to export")
    archive, rows = run.archive, slice(None)
    if not is_all(elite, cell):
        row = elite_row(archive, elite, cell)  # type: ignore[arg-type]  # with a cell, it does not count
        rows = slice(row, row + 1)
    if not len(archive):
        raise InvalidInput(f"{archive.path} holds no elites")
    return ExportedPolicy(
        facts=facts_of(run, walking),
        mjcf=complete_mjcf(walking.robot, walking.fields.intersection(SENSORS)),
        elites=archive.elites[rows],
        cells=archive.cells[rows],
        steps=archive.steps[rows].astype(np.int64),
    )


def is_all(elite: object, cell: object) -> bool:
    """Return whether all elites are meant."""
    return isinstance(elite, str) and elite == "all" and cell is None


def facts_of(run: StoredRun, task: RobotTask) -> PolicyFacts:
    """Return the facts about the policies of a run; `task` is the run's."""
    record, robot, anatomy = run.record, task.robot, task.anatomy
    height = anatomy.standing_height
    return PolicyFacts(
        task=record.task,
        algorithm=record.algorithm,
        seed=record.seed,
        evaluations=run.archive.n_evaluations,
        versions=record.environments[-1].versions,
        robot=RobotFacts(
            name=robot.name,
            root=anatomy.root,
            root_body=robot.root or "",
            control_step=robot.control_step,
            physics_steps=robot.physics_steps,
            timestep=float(anatomy.model.opt.timestep),
            start=robot.start or "",
            feet=robot.feet,
            weight=anatomy.weight,
            standing_height=None if math.isnan(height) else height,
        ),
        network=NetworkFacts(sizes=task.policy.sizes),
        observation=_layout(task.observation, anatomy),
        actions=tuple(_actuator(anatomy, i) for i in range(anatomy.n_actions)),
        rewards=tuple(map(_term, task.rewards)),
        ending=_term(task.ending),
        reset=_term(task.reset),
        descriptor=_term(task.descriptor),
        descriptor_names=record.facts.descriptor_names,
    )


def _layout(blocks: tuple[Block, ...], robot: Anatomy) -> tuple[BlockFacts, ...]:
    layout, start = [], 0
    for block in blocks:
        labels = block.value_labels(robot)
        layout.append(
            BlockFacts(
                name=block.name,
                start=start,
                stop=start + len(labels),
                factor=block.scale,
                unit=block.unit,
                meaning=block.meaning,
                when=_when(block),
                labels=labels,
            )
        )
        start += len(labels)
    return tuple(layout)


def _when(block: Block) -> Literal["now", "last physics step", "unknown"]:
    """Return of when the values are; qpos and qvel are current, and need not be demanded."""
    if any(demand in State._fields for demand in block.demands if demand not in ("qpos", "qvel")):
        return "last physics step"
    return "now" if block.function.__module__.startswith("qdbench.") else "unknown"


def _actuator(robot: Anatomy, i: int) -> ActuatorFacts:
    model, one = robot.model, robot.model.actuator(i)
    on_joint = one.trntype[0] == mujoco.mjtTrn.mjTRN_JOINT
    kinds = int(one.gaintype[0]), int(one.biastype[0])
    by_gain = kinds == (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_NONE)
    return ActuatorFacts(
        name=one.name or f"actuator {i}",
        kind="motor" if by_gain else "other",
        joint=model.joint(one.trnid[0]).name if on_joint else "",
        gear=float(one.gear[0]),
        gain=float(one.gainprm[0]),
        force_limit=float(robot.force_limits[i]),
    )


def _term(term: Term) -> TermFacts:
    return TermFacts(name=term.name, parameters={k: _without_infinity(v) for k, v in term.parameters.items()})


def _without_infinity(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_infinity, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value
