"""A finished policy: one observation or a batch; and how it is played."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import penstock
from penstock.checkpoint import files
from penstock.core.errors import BadCheckpoint, Refused
from penstock.core.protocols import ALL
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import open_block
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings
from penstock.workers.evaluation import evaluate, play
from penstock.workers.policy import load_policy

TINY: dict[str, Any] = {
    "preset": "none",
    "workers": 0,
    "quiet": True,
    "seed": 1,
    "steps": 60,
    "n_envs": 2,
    "n_blocks": 1,
    "n_steps": 16,
    "batch_size": 32,
    "hidden_sizes": (8,),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("policy") / "run"
    return penstock.train("CartPole-v1", out=out, normalize_observation=True, **TINY).run_dir


@pytest.fixture(scope="module")
def continuous(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("policy") / "run"
    return penstock.train("penstock/Target-v0", out=out, **TINY).run_dir


def test_one_observation_or_a_batch_in_the_same_out(trained):
    policy = load_policy(trained)
    batch = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    together = policy(batch)
    assert together.shape == (20,)
    assert together.tolist() == [int(policy(row)) for row in batch]
    assert np.ndim(policy(batch[0].tolist())) == 0
    assert gymnasium.spaces.Discrete(2).contains(policy(batch[0]))


def test_box_actions_are_inside_their_bounds(continuous):
    policy = load_policy(continuous)
    one, many = policy(np.zeros(1)), policy(np.zeros((5, 1)))
    assert (one.shape, many.shape) == ((1,), (5, 1))
    drawn = policy(np.zeros((1000, 1)), deterministic=False, seed=3)
    assert drawn.min() == -1.0
    assert drawn.max() <= 3.0


@pytest.mark.parametrize("shape", [(), (3,), (5,), (2, 3), (2, 2, 4), (4, 2)])
def test_any_other_shape_is_refused_with_both(trained, shape):
    with pytest.raises(Refused, match=r"an observation has shape \(4,\), a batch one axis more"):
        load_policy(trained)(np.zeros(shape))


def test_draws_follow_from_the_seed(trained):
    policy, batch = load_policy(trained), np.zeros((64, 4), np.float32)
    drawn = [policy(batch, deterministic=False, seed=seed).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {0, 1}
    assert len(set(policy(batch).tolist())) == 1


def test_numbered_observations_are_understood_as_the_environment_shows_them(tmp_path):
    """A Discrete space that starts at 5 shows 5 to 7; inside, numbers start at 0."""

    class Numbered(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(3, start=5)
        action_space = gymnasium.spaces.Discrete(3, start=-1)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self._shown = 5 + int(self.np_random.integers(3))
            return self._shown, {}

        def step(self, action):
            return self._shown, float(action == self._shown - 6), True, False, {}

    settings = {**TINY, "steps": 3000, "learning_rate": 0.02, "n_envs": 8}
    run = penstock.train(Numbered, out=tmp_path / "run", **settings)
    assert [int(run.policy(shown)) for shown in (5, 6, 7)] == [-1, 0, 1]
    assert run.policy(np.array([7, 5])).tolist() == [1, -1]
    for shown in (4, 8):
        with pytest.raises(Refused, match=r"5\.\.7"):
            run.policy(shown)


def test_a_version_is_chosen_or_named(trained):
    newest = load_policy(trained)
    assert newest.version == 2
    assert load_policy(trained, version=0).version == 0
    with pytest.raises(Refused, match=r"no checkpoint of version 7; there are: 0, 1, 2"):
        load_policy(trained, version=7)
    with pytest.raises(Refused, match="has no checkpoint"):
        load_policy(trained / "checkpoints")


def test_a_damaged_checkpoint_is_no_fresh_policy(tmp_path):
    run_dir = penstock.train("CartPole-v1", out=tmp_path / "run", **TINY).run_dir
    file = run_dir / "checkpoints" / "2" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(BadCheckpoint):
        load_policy(run_dir)


# ---------------------------------------------------------------- a checkpoint that one was sent


def tampered(run_dir: Path, out: Path, change: Any) -> Path:
    """A copy whose newest checkpoint says something else, and signs it."""
    shutil.copytree(run_dir, out)
    path = files.newest(out) / files.STATE_FILE
    state = json.loads(path.read_text())
    change(state)
    record = {key: value for key, value in state.items() if key != "sha256"}
    sums = {**state["sha256"], files.STATE_FILE: files._sum_of(record)}
    path.write_text(json.dumps({**record, "sha256": sums}))
    return out


def touching(place: Path, section: str, field: str) -> Any:
    """Makes the checkpoint name code that leaves a trace when it is run."""

    def change(state: dict[str, Any]) -> None:
        named = f"evil_{field}:Code"
        (place.parent / f"evil_{field}.py").write_text(f"open({str(place)!r}, 'w').close()\nclass Code: ...\n")
        state["policy"][section][field] = [named] if field == "wrappers" else named

    return change


@pytest.mark.parametrize(("section", "field"), [("environment", "id"), ("environment", "wrappers"), ("model", "custom")])
def test_no_code_runs_because_a_checkpoint_names_it(trained, tmp_path, monkeypatch, section, field):
    monkeypatch.chdir(tmp_path)
    trace = tmp_path / "it-ran"
    sent = tampered(trained, tmp_path / "sent", touching(trace, section, field))
    evil = f"evil_{field}"
    with pytest.raises(Refused, match=rf"wants to run code of the module '{evil}'.*--trust {evil}"):
        evaluate(sent, episodes=1, seed=0, deterministic=True)
    with pytest.raises(Refused, match=f"--trust {evil}"):
        evaluate(sent, episodes=1, seed=0, deterministic=True, trust=("evil", f"{evil}.inner"))
    assert not trace.exists()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception):  # noqa: B017 it is no environment, wrapper or network: that it ran is the point
        evaluate(sent, episodes=1, seed=0, deterministic=True, trust=(evil,))
    assert trace.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("policy"), "does not describe a policy: KeyError"),
        (lambda state: state["policy"].pop("spec"), "does not describe a policy: KeyError"),
        (lambda state: state["policy"]["model"].update(hidden_sizes=[9]), r"'policy.0.weight' of shape \(9, 4\) has shape \(8"),
        (lambda state: state["policy"]["model"].update(hidden_sizes=[8, 8]), "is missing|has shape"),
        (lambda state: state["policy"]["model"].update(normalize_observation=False), "statistics are of another size"),
        (lambda state: state["policy"]["model"].update(nonsense=1), "does not describe a policy: TypeError"),
    ],
)
def test_a_checkpoint_that_contradicts_itself_is_refused_by_name(trained, tmp_path, change, words):
    sent = tampered(trained, tmp_path / "sent", change)
    with pytest.raises(BadCheckpoint, match=words):
        load_policy(sent)


# ---------------------------------------------------------------- networks with more than what is trained


class Frozen(torch.nn.Module):
    """A random layer that is never trained, random numbers that are its state, and some that are not."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed = torch.nn.Linear(4, 16).requires_grad_(False)
        self.register_buffer("frequencies", torch.randn(16, 16))
        self.register_buffer("shuffle", torch.randperm(16))
        self.trained = torch.nn.Linear(16, 16)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.trained(torch.sin(self.fixed(observation) @ self.frequencies)))[:, self.shuffle]


def test_frozen_parameters_and_buffers_are_the_same_everywhere(tmp_path):
    """Under sync, in one epoch of one minibatch, learner and samplers compute the same numbers: the ratio is 1."""
    seen: list[dict[str, Any]] = []
    once = {**TINY, "n_epochs": 1, "batch_size": 32, "steps": 200, "workers": 1, "schedule": "sync"}
    run = penstock.train("CartPole-v1", model=Frozen, out=tmp_path / "run", callback=seen.append, **once)
    assert max(abs(record["approx_kl"]) for record in seen) < 1e-6
    assert {record["clip_fraction"] for record in seen} == {0.0}
    stored = files.load(files.newest(run.run_dir)).model
    assert {"body.fixed.weight", "body.frequencies"} <= stored.keys()
    batch = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    network = build_policy(run.policy.spec, ModelSettings(), 1, Frozen)
    network.load_state_dict(
        {name: torch.tensor(array) for name, array in stored.items() if name in network.state_dict()}, False
    )
    logits, _ = network(torch.from_numpy(batch))
    assert run.policy(batch).tolist() == logits.argmax(1).tolist()


# ---------------------------------------------------------------- evaluation


def counting_block(lanes: int):
    settings = EnvSettings(id="penstock/Counting-v0", arguments={"episode_steps": 9, "ragged": True}, n_envs=lanes, n_blocks=1)
    maker = EnvironmentMaker.of(settings)
    return open_block(maker, probe(maker, settings).spec, settings, 3, 0, "serial")


def first_returns(lanes: int, episodes: int) -> list[list[float]]:
    """The returns of each lane's first episodes, by stepping it for long."""
    block = counting_block(lanes)
    block.reset()
    found: list[list[float]] = [[] for _ in range(lanes)]
    gathered = np.zeros(lanes)
    while min(map(len, found)) < episodes:
        block.send(ALL, np.zeros(lanes, np.int64))
        block.receive(None)
        gathered += block.reward
        for lane in np.flatnonzero(block.terminated | block.truncated):
            found[lane].append(gathered[lane])
            gathered[lane] = 0
    return [returns[:episodes] for returns in found]


class Zero:
    """Always action 0; draws one number a lane."""

    def best(self, observation):
        return np.zeros(len(observation), np.int64)

    def noise(self, generator, steps, lanes):
        return generator.random((steps, lanes))

    def act(self, observation, noise):
        return SimpleNamespace(action=(noise * 4).astype(np.int64))

    def to_environment(self, action):
        return action


@pytest.mark.parametrize(("lanes", "episodes"), [(1, 3), (3, 3), (3, 7), (3, 8), (4, 2)])
def test_each_lane_plays_its_share_to_the_end(lanes, episodes):
    """Taking the first episodes to end instead would favour short ones."""
    policy: Any = SimpleNamespace(actor=Zero())
    returns = play(policy, counting_block(lanes), episodes, seed=1, deterministic=True)
    shares = [episodes // lanes + (lane < episodes % lanes) for lane in range(lanes)]
    expected = [value for lane, count in enumerate(shares) for value in first_returns(lanes, episodes)[lane][:count]]
    assert returns == expected
    assert len(returns) == episodes


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_same_seed_gives_the_same_numbers(trained, deterministic):
    one, again, other = (evaluate(trained, episodes=5, seed=seed, deterministic=deterministic) for seed in (1, 1, 2))
    assert one == again != other
    assert len(one) == 5


def test_an_environment_of_a_script_is_played_in_the_script(tmp_path):
    run = penstock.train(lambda: gymnasium.make("CartPole-v1"), out=tmp_path / "run", **TINY)
    with pytest.raises(Refused, match="was defined in a script"):
        evaluate(run.run_dir, episodes=1, seed=0, deterministic=True)
