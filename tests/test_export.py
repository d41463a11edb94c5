"""Exported policies: the same actions in NumPy, ONNX Runtime and PyTorch, the same episode in MuJoCo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import qdbench
from conftest import ROOT, Cli
from examples.exported_policy import act, episode
from forging import damaged
from qdbench import DamagedFile, ExportedPolicy, InvalidInput, QdbenchError, RobotTask, StoredRun, UnknownName
from qdbench.exports import onnx_file, policies
from qdbench.exports.describing import policies_of
from qdbench.exports.exporting import FORMATS
from qdbench.robots.mjcf import complete_mjcf
from qdbench.store.files import write_npz
from qdbench.store.npz import read_npz
from qdbench.store.plain import as_json
from running import finished

Array = NDArray[np.float32]
ENDINGS = {name: files.ending for name, files in FORMATS.items()}
formats = pytest.mark.parametrize("to", FORMATS)


def make_run(folder: Path, name: str, **options: Any) -> StoredRun:
    task = qdbench.make(name, episode_length=40, **options)
    return qdbench.run(task, evaluations=48, batch_size=16, initial=32, out=folder)


@pytest.fixture(scope="module")
def hopper(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    return make_run(tmp_path_factory.mktemp("hopper"), "hopper_uni")


@pytest.fixture(scope="module")
def ant(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    return make_run(tmp_path_factory.mktemp("ant"), "ant_omni")


def observed(run: StoredRun, row: int) -> Array:
    """What the elite observed in its episode."""
    return qdbench.replay(run, row).observations


def forward(file: Any, observations: Array, elite: int) -> Array:
    """The network as the docs define it, from the arrays of an .npz file alone."""
    return np.stack([act(file, observation, elite) for observation in observations])


# The round trip


@formats
def test_what_is_read_is_what_was_written(to: Any, ant: StoredRun, tmp_path: Path) -> None:
    for elite, n in ((3, 1), ("all", len(ant.archive))):
        path = qdbench.export(ant, elite, to=to, out=tmp_path / f"x{ENDINGS[to]}")  # type: ignore[arg-type]
        found, wanted = qdbench.load_policy(path), policies_of(ant, elite)  # type: ignore[arg-type]
        rows = slice(3, 4) if elite == 3 else slice(None)
        assert len(found) == n > 0
        assert found.facts == wanted.facts
        assert found.mjcf == wanted.mjcf
        for name, column in policies.columns_of(wanted).items():
            assert np.array_equal(policies.columns_of(found)[name], column)
        assert np.array_equal(found.solutions, ant.archive.elites.solutions[rows])
        assert np.array_equal(found.elites.fitness, ant.archive.fitness[rows])
        assert np.array_equal(found.cells, ant.archive.cells[rows])
        again = found.task.evaluate(found.solutions, found.elites.seeds[:, 0])
        assert np.array_equal(again.fitness, found.elites.fitness)
        assert np.array_equal(again.descriptors, found.elites.descriptors)
        assert np.array_equal(again.steps, found.steps[:, 0])


@pytest.mark.parametrize("run_of", ["hopper", "ant"])
def test_numpy_acts_the_same(run_of: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run: StoredRun = request.getfixturevalue(run_of)
    one, every = (qdbench.export(run, e, out=tmp_path / f"{e}.npz") for e in ("best", "all"))
    row = int(run.archive.fitness.argmax())
    episode_ = qdbench.replay(run)
    observations, actions = episode_.observations, episode_.actions
    assert np.array_equal(forward(np.load(one), observations, 0), actions)
    assert np.array_equal(forward(np.load(every), observations, row), actions)
    assert np.array_equal(qdbench.load_policy(one).act(observations), actions)
    assert np.array_equal(qdbench.load_policy(every).act(observations, row), actions)


@pytest.mark.parametrize("run_of", ["hopper", "ant"])
def test_onnx_runtime_acts_the_same(run_of: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    run: StoredRun = request.getfixturevalue(run_of)
    one, every = (qdbench.export(run, e, to="onnx", out=tmp_path / f"{e}.onnx") for e in (0, "all"))
    for path in (one, every):
        onnx.checker.check_model(str(path), full_check=True)
    observations = observed(run, 0)
    wanted = qdbench.load_policy(one).act(observations)
    session = runtime.InferenceSession(one)
    assert [node.name for node in session.get_inputs()] == ["observation"]
    (found,) = session.run(["action"], {"observation": observations})
    np.testing.assert_allclose(found, wanted, atol=2e-6, rtol=0)
    assert (
        json.loads(session.get_modelmeta().custom_metadata_map["facts"])["task"]["name"]
        == run.record.task.name
    )
    elites = np.arange(len(observations)) % len(run.archive)  # every row its own policy
    (found,) = runtime.InferenceSession(every).run(None, {"observation": observations, "elite": elites})
    task: Any = run.task
    wanted = task.policy.act(run.archive.elites.solutions[elites], observations)
    np.testing.assert_allclose(found, wanted, atol=2e-6, rtol=0)


@pytest.mark.parametrize("run_of", ["hopper", "ant"])
def test_pytorch_acts_the_same(run_of: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'qdbench[torch]'")
    from safetensors.torch import load_file

    run: StoredRun = request.getfixturevalue(run_of)
    one, every = (qdbench.export(run, e, to="torch", out=tmp_path / f"{e}.safetensors") for e in (0, "all"))
    observations = observed(run, 0)
    wanted = qdbench.load_policy(one).act(observations)
    nn, sizes = torch.nn, run.task.policy.sizes  # type: ignore[attr-defined]
    model = nn.Sequential(
        nn.Linear(sizes[0], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, sizes[-1]), nn.Tanh()
    )
    states = load_file(every)
    for state in (load_file(one), {name: rows[0] for name, rows in states.items()}):
        model.load_state_dict(state)
        with torch.no_grad():
            found = model(torch.from_numpy(observations)).numpy()
        np.testing.assert_allclose(found, wanted, atol=2e-6, rtol=0)
    module = qdbench.load_policy(every).to_torch(2)
    with torch.no_grad():
        found = module(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(found, qdbench.load_policy(every).act(observations, 2), atol=2e-6, rtol=0)
    module(torch.from_numpy(observations)).sum().backward()  # it can be trained further
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_the_episode_runs_elsewhere(any_task: RobotTask, tmp_path: Path) -> None:
    """NumPy, MuJoCo and the file give exactly the stored fitness and descriptor, for all nine tasks."""
    run = qdbench.run(any_task, evaluations=12, batch_size=4, initial=8, out=tmp_path)
    file = np.load(qdbench.export(run, out=tmp_path / "policy.npz"))
    fitness, descriptor = episode(file)
    assert fitness == file["fitness"][0] == run.archive.fitness.max()
    assert np.array_equal(descriptor, file["descriptors"][0])


def test_the_example_needs_no_qdbench(hopper: StoredRun, tmp_path: Path) -> None:
    path = qdbench.export(hopper, out=tmp_path / "policy.npz")
    (tmp_path / "qdbench.py").write_text("raise ImportError('no qdbench here')")
    script = [sys.executable, str(ROOT / "examples/exported_policy.py"), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}  # its BLAS kernels, too
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        found, stored = line.split(" ", 1)[1].split(", stored ")
        assert found == stored


# What a file says


def test_the_layout_is_that_of_the_observation(any_task: RobotTask, tmp_path: Path) -> None:
    run = qdbench.run(any_task, evaluations=8, batch_size=4, initial=4, out=tmp_path)
    policy = policies_of(run)
    facts, model = policy.facts, mujoco.MjModel.from_xml_string(policy.mjcf)
    factors = np.concatenate([np.full(b.stop - b.start, b.factor) for b in facts.observation])
    assert np.array_equal(factors.astype(np.float32), any_task.observation_scales)
    for block, wanted in zip(facts.observation, any_task.observation, strict=True):
        assert block.name == wanted.name
        assert block.unit
        assert block.meaning
        assert len(block.labels) == len(set(block.labels)) == block.stop - block.start
        assert (block.when == "now") == (not any(hasattr(mujoco.MjData, d) for d in wanted.demands))
    by_name = {block.name: block for block in facts.observation}
    joints = [model.joint(i).name for i in range(model.njnt)][-len(by_name["joint angles"].labels) :]
    assert list(by_name["joint angles"].labels) == joints
    assert [actuator.name for actuator in facts.actions] == [model.actuator(i).name for i in range(model.nu)]
    for i, actuator in enumerate(facts.actions):  # a motor's torque is gear × gain × action
        data = mujoco.MjData(model)
        data.ctrl[i] = 1
        mujoco.mj_forward(model, data)
        at = model.joint(actuator.joint).dofadr[0]
        assert data.qfrc_actuator[at] == actuator.gear * actuator.gain
        assert actuator.kind == "motor"
    assert facts.robot.timestep * facts.robot.physics_steps == pytest.approx(facts.robot.control_step)
    assert facts.task.fingerprint == any_task.fingerprint
    assert "Infinity" not in json.dumps(as_json(facts))


def test_the_mjcf_is_exactly_the_simulated_model(any_task: RobotTask) -> None:
    wanted, sensors = any_task.anatomy.model, any_task.fields & {"cfrc_ext", "subtree_linvel"}
    found = mujoco.MjModel.from_xml_string(complete_mjcf(any_task.robot, sensors))
    assert found.opt.timestep == wanted.opt.timestep
    for name in ("body_mass", "body_inertia", "geom_solref", "geom_size", "jnt_range", "actuator_gear"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    assert found.nsensor == wanted.nsensor


def test_an_mjcf_that_cannot_be_written_is_refused() -> None:
    """Contacts of a composite's geoms get their time constants from nowhere that could be changed."""
    robot = qdbench.make("ant_omni").robot
    odd = robot.mjcf.replace('solref="0.025 1"', 'solref="0.025"', 1)
    with pytest.raises(qdbench.BrokenTask, match="compiles to the same model"):
        complete_mjcf(replace(robot, mjcf=odd))


# Choices, and what is refused


def test_the_command_line_exports(cli: Cli, ant: StoredRun) -> None:
    done = cli("export", str(ant.path), "--to", "onnx", "--mjcf", "ant.xml", "--elite", "2")
    assert done.returncode == 0, done.stderr
    assert "contact wrenches    27:87" in done.stdout
    assert "qdbench.load_policy('policy.onnx')" in done.stdout
    policy = qdbench.load_policy(cli.folder / "policy.onnx")
    assert np.array_equal(policy.solutions[0], ant.archive.elites.solutions[2])
    assert (cli.folder / "ant.xml").read_text() == policy.mjcf
    number = int(ant.archive.cells[5])
    place = ",".join(map(str, np.unravel_index(number, ant.grid.shape)))
    assert cli("export", str(ant.path), "--cell", place, "--out", "cell.npz").returncode == 0
    assert qdbench.load_policy(cli.folder / "cell.npz").cells.tolist() == [number]
    done = cli("export", str(ant.path), "--all", "--to", "torch")
    assert done.returncode == 0
    assert f"{len(ant.archive)} policies, fitness" in done.stdout
    assert len(qdbench.load_policy(cli.folder / "policies.safetensors")) == len(ant.archive)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--all", "--elite", "best"], "give --all, --elite or --cell, not several"),
        (["--elite", "x"], "'x' is not an elite"),
        (["--elite", "999"], "elite is 999"),
        (["--cell", "0,0"], "no elite is in the cell"),
        (["--out", "policy.onnx"], "its name must end in .npz"),
        (["--out", "nowhere/policy.npz"], "its folder is missing"),
        (["--mjcf", "ant.txt"], "its name must end in .xml"),
        (["--to", "pickle"], "Invalid value for '--to'"),
    ],
)
def test_bad_choices_are_one_sentence(arguments: list[str], sentence: str, cli: Cli, ant: StoredRun) -> None:
    done = cli("export", str(ant.path), *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(cli.folder.iterdir())


def test_a_function_has_no_policy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no robot"):
        qdbench.export(qdbench.run("arm", evaluations=64, batch_size=32, initial=32, out=tmp_path))
    with pytest.raises(UnknownName, match="no format 'pickle'"):
        qdbench.export(finished(tmp_path), to="pickle")  # type: ignore[arg-type]


def test_sizes_are_bounded(ant: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "MOST_BYTES", 1000)
    with pytest.raises(InvalidInput, match="an ONNX file at most 2 GB; use npz"):
        qdbench.export(ant, "all", to="onnx", out=tmp_path / "x.onnx")
    monkeypatch.setattr(policies, "MOST_JSON", 5000)
    with pytest.raises(InvalidInput, match=r"policies take .* bytes of text"):
        qdbench.export(ant, "all", to="torch", out=tmp_path / "x.safetensors")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Free", (), {"free": 10}))
    with pytest.raises(InvalidInput, match=r"0\.0 MB are free; export fewer"):
        qdbench.export(ant, "all", out=tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())


# Files from other people


@formats
def test_damaged_files_are_refused_in_one_sentence(to: Any, hopper: StoredRun, tmp_path: Path) -> None:
    rng = qdbench.stream(0, "damaged policies", to)
    path = qdbench.export(hopper, to=to, out=tmp_path / f"x{ENDINGS[to]}")
    data, right, refused = path.read_bytes(), qdbench.load_policy(path), 0
    for _ in range(300):
        broken = damaged(data, rng)
        path.unlink(missing_ok=True)
        if broken is None:
            continue
        path.write_bytes(broken)
        found = read_or_refused(path)
        if isinstance(found, str):
            refused += 1
            assert "\n" not in found
            assert str(path) in found
        else:  # the damage was where nothing is kept
            assert same(found, right), f"{to} accepts what it should not"
    assert refused > 200


def read_or_refused(path: Path) -> ExportedPolicy | str:
    try:
        return qdbench.load_policy(path)
    except QdbenchError as error:
        return str(error)


def same(one: ExportedPolicy, other: ExportedPolicy) -> bool:
    pairs = zip(policies.columns_of(one).values(), policies.columns_of(other).values(), strict=True)
    return (
        one.facts == other.facts
        and one.mjcf == other.mjcf
        and np.array_equal(one.solutions, other.solutions)
        and all(np.array_equal(a, b) for a, b in pairs)
    )


FORGED: list[tuple[str, Any, str]] = [
    ("network", {"sizes": [14, 64, 3]}, "not the parameters of its task"),
    ("network", {"sizes": [14, 64, 64, 3], "output": "exec"}, "'exec', not 'tanh'"),
    ("observation", [], "not the inputs of its network"),
    ("actions", [], "not the outputs of its network"),
    ("evaluations", -1, "a count or a time is impossible"),
    ("evaluations", 0, "evaluations has numbers outside"),
    ("descriptor_names", [], "not one name per descriptor dimension"),
    ("seed", "x", "seed is 'x', not a whole number"),
    ("surprise", 1, "unknown entry 'surprise'"),
]


@pytest.mark.parametrize(("entry", "value", "sentence"), FORGED)
def test_forged_facts_are_refused(
    entry: str, value: Any, sentence: str, hopper: StoredRun, tmp_path: Path
) -> None:
    path = qdbench.export(hopper, out=tmp_path / "x.npz")
    arrays: dict[str, Any] = read_npz(path, version=policies.FORMAT)
    facts = json.loads(str(arrays["facts"])) | {entry: value}
    write_npz(path, arrays | {"format": policies.FORMAT, "facts": json.dumps(facts)})
    with pytest.raises(DamagedFile, match=sentence):
        qdbench.load_policy(path)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("weights_0", lambda a: a[:, :, :-1], "weights 0 is"),
        ("weights_1", lambda a: a * np.nan, "not finite"),
        ("weights_3", lambda a: np.zeros((1, 3, 3), np.float32), "biases_3"),
        ("fitness", lambda a: a[:0], "it has no policy"),
        ("fitness", lambda a: a * np.inf, "not finite, or too large"),
        ("seeds", lambda a: a.astype(np.int64), "seeds is"),
        ("mjcf", lambda a: np.array("x" * (2**22 + 1)), "its MJCF has more than"),
        ("more", lambda a: np.zeros(3), "unknown array 'more'"),
        ("biases_2", None, "biases_2"),
        ("format", lambda a: 2, "of a later qdbench"),
    ],
)
def test_forged_arrays_are_refused(
    name: str, change: Any, sentence: str, hopper: StoredRun, tmp_path: Path
) -> None:
    path = qdbench.export(hopper, out=tmp_path / "x.npz")
    arrays: dict[str, Any] = read_npz(path, version=policies.FORMAT) | {"format": policies.FORMAT}
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays.get(name))
    write_npz(path, arrays)
    with pytest.raises(DamagedFile, match=sentence):
        qdbench.load_policy(path)


def test_a_network_that_does_something_else_is_refused(hopper: StoredRun, tmp_path: Path) -> None:
    """Its weights are ours, but what is done with them is not; or they lie in another file."""
    onnx = pytest.importorskip("onnx")
    path = qdbench.export(hopper, to="onnx", out=tmp_path / "x.onnx")
    model = onnx.load(path)
    model.graph.node[2].op_type = "Sigmoid"
    onnx.save(model, path)
    with pytest.raises(DamagedFile, match="not one that qdbench writes"):
        qdbench.load_policy(path)
    model = onnx.load(qdbench.export(hopper, to="onnx", out=tmp_path / "y.onnx"))
    model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    (tmp_path / "y.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(DamagedFile, match="no float32 array of this file"):
        qdbench.load_policy(tmp_path / "y.onnx")


def test_other_files_are_refused(hopper: StoredRun, tmp_path: Path) -> None:
    for name in ("policy.pt", "policy.pkl", "policy"):
        with pytest.raises(InvalidInput, match=r"ends in \.npz, \.onnx, \.safetensors"):
            qdbench.load_policy(tmp_path / name)
    with pytest.raises(DamagedFile, match="format 3, of a later qdbench"):
        qdbench.load_policy(hopper.path / "archive.npz")
    np.savez(tmp_path / "evil.npz", allow_pickle=True, format=np.array([print], object))
    with pytest.raises(DamagedFile, match="an array is not of the size"):
        qdbench.load_policy(tmp_path / "evil.npz")
    with pytest.raises(OSError, match="No such file"):
        qdbench.load_policy(tmp_path / "nothing.onnx")
    other = tmp_path / "other.safetensors"
    from safetensors.numpy import save_file

    save_file({"0.weight": np.zeros((2, 2), np.float32)}, other)
    with pytest.raises(DamagedFile, match="__metadata__"):
        qdbench.load_policy(other)


def test_a_module_that_a_file_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_hops.py").write_text(
        "import qdbench\ntask = qdbench.make('hopper_uni', episode_length=20)\n"
        "from dataclasses import replace\ntask = replace(task, name='mine')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run = qdbench.run("my_hops:task", evaluations=8, batch_size=4, initial=4)
    path = qdbench.export(run, trust=True)
    policy = qdbench.load_policy(path)
    with pytest.raises(InvalidInput, match="my_hops"):
        policy.make_task()
    task = policy.make_task(trust=True)
    assert task.evaluate(policy.solutions, policy.elites.seeds[:, 0]).fitness[0] == policy.elites.fitness[0]
