"""The simulation of episodes: engines that step robots, the evaluation loop, and recorders."""

from qdbench.simulation.episode import Episode, kinematics, rollouts
from qdbench.simulation.loop import DEFAULT_SLOTS, evaluate
from qdbench.simulation.recorders import (
    ControlRecorder,
    EpisodeRecorder,
    Recorder,
    TransitionRecorder,
    Transitions,
)

__all__ = [
    "DEFAULT_SLOTS",
    "ControlRecorder",
    "Episode",
    "EpisodeRecorder",
    "Recorder",
    "TransitionRecorder",
    "Transitions",
    "evaluate",
    "kinematics",
    "rollouts",
]
