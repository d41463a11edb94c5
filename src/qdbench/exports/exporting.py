"""Policies out of a run into a file, and back: `qdbench.export` and `qdbench.load_policy`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from qdbench.checks import checked_choice, checked_path
from qdbench.errors import InvalidInput
from qdbench.exports import npz_file, onnx_file, torch_file
from qdbench.exports.policies import ExportedPolicy
from qdbench.store.files import require_writable, write_text
from qdbench.store.loading import StoredRun, load
from qdbench.tasks.contract import Task

Format = Literal["npz", "onnx", "torch"]


class _Files(NamedTuple):
    ending: str
    write: Callable[[Path, ExportedPolicy], None]
    read: Callable[[Path], ExportedPolicy]


FORMATS: dict[str, _Files] = {
    "npz": _Files(".npz", npz_file.write, npz_file.read),
    "onnx": _Files(".onnx", onnx_file.write, onnx_file.read),
    "torch": _Files(".safetensors", torch_file.write, torch_file.read),
}


def export(
    run: StoredRun | str | Path,
    elite: int | Literal["best", "all"] = "best",
    *,
    cell: int | Sequence[int] | None = None,
    to: Format = "npz",
    out: str | Path | None = None,
    mjcf: str | Path | None = None,
    task: Task | None = None,
    trust: bool = False,
) -> Path:
    """Write a policy of a run, or all of them, to a file that other programs can use; return its path.

    `elite` is a row of the archive, `"best"` or `"all"`; `cell` chooses by cell instead, as in
    `qdbench.replay`. `to` is `npz` (NumPy), `onnx` or `torch` (a .safetensors file). The file also holds the
    layout of the observation, all facts about the task, and the robot's MJCF. `mjcf` writes the latter to a
    file of its own, too. `out` is by default policy.npz (.onnx, .safetensors), or policies.npz for all.
    """
    from qdbench.exports.describing import is_all, policies_of

    stored = run if isinstance(run, StoredRun) else load(run)
    path, body = target(to, out, mjcf, several=is_all(elite, cell))
    write(policies_of(stored, elite, cell, task, trust=trust), path, body)
    return path


def target(
    to: str, out: str | Path | None, mjcf: str | Path | None, *, several: bool
) -> tuple[Path, Path | None]:
    """Return where policies and MJCF are to be written, if they can be."""
    checked_choice("format", to, tuple(FORMATS))
    ending = FORMATS[to].ending
    usual = ("policies" if several else "policy") + ending
    path = checked_path("out", usual if out is None else out)
    require_writable(path, ending)
    body = None if mjcf is None else checked_path("mjcf", mjcf)
    if body is not None:
        require_writable(body, ".xml")
    return path, body


def write(policy: ExportedPolicy, path: Path, mjcf: Path | None = None) -> None:
    """Write policies in the format that the path's ending says, and the MJCF if a path is given for it."""
    needed, free = policy.solutions.nbytes, shutil.disk_usage(path.parent).free
    if needed > free:
        raise InvalidInput(
            f"{path} needs {needed / 1e6:,.1f} MB, but only {free / 1e6:,.1f} MB are free; export fewer"
        )
    _files_of(path).write(path, policy)
    if mjcf is not None:
        write_text(mjcf, policy.mjcf)


def load_policy(path: str | Path) -> ExportedPolicy:
    """Return the policies in a file that `qdbench.export` wrote. Everything in it is checked, nothing is run.

    On the same CPU with the same versions a policy gives exactly the fitness that it was found with:
    `policy.task.evaluate(policy.solutions, policy.elites.seeds[:, 0])`. The fitness of a policy with several
    evaluations is their mean.
    """
    path = checked_path("the file of a policy", path)
    return _files_of(path).read(path)


def _files_of(path: Path) -> _Files:
    for files in FORMATS.values():
        if path.suffix == files.ending:
            return files
    endings = ", ".join(files.ending for files in FORMATS.values())
    raise InvalidInput(f"{str(path)!r} is no file of `qdbench export`: give one that ends in {endings}")
