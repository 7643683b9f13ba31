"""The same as the field's reference, only faster: one recorded rollout, the same initial weights, ten updates."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C as ReferenceA2C
from stable_baselines3 import PPO as ReferencePPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import Logger

from penstock.algorithms.a2c import A2C
from penstock.algorithms.batch import Batch
from penstock.algorithms.ppo import PPO
from penstock.algorithms.settings import A2CSettings, PPOSettings
from penstock.core.seeds import Purpose, stream
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings

T, B, UPDATES, SEED = 32, 8, 10, 5
OBSERVATION = gym.spaces.Box(-5.0, 5.0, (4,), np.float32)
DISCRETE = gym.spaces.Discrete(2)
BOX = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
NAMES = {
    "mlp_extractor.policy_net.0": "policy.0",
    "mlp_extractor.policy_net.2": "policy.1",
    "action_net": "policy.2",
    "mlp_extractor.value_net.0": "value.0",
    "mlp_extractor.value_net.2": "value.1",
    "value_net": "value.2",
}


class Spaces(gym.Env[Any, Any]):
    """SB3 asks for an environment; only its spaces are looked at."""

    observation_space = OBSERVATION

    def __init__(self, action_space: gym.Space[Any]) -> None:
        self.action_space = action_space


Reference = ReferencePPO | ReferenceA2C


def reference_ppo(action_space: gym.Space[Any], options: dict[str, Any]) -> ReferencePPO:
    sizes = {"n_steps": T * B, "batch_size": 64, "n_epochs": 3}
    model = ReferencePPO("MlpPolicy", Spaces(action_space), **sizes, seed=3, device="cpu", **options)
    return with_buffer(model, action_space)


def with_buffer(model: Any, action_space: gym.Space[Any]) -> Any:
    model.rollout_buffer = RolloutBuffer(
        T, OBSERVATION, action_space, "cpu", gae_lambda=model.gae_lambda, gamma=model.gamma, n_envs=B
    )
    model.set_logger(Logger(None, []))
    return model


def translated(model: Reference) -> dict[str, torch.Tensor]:
    """SB3's weights by our names."""
    named = {}
    for name, tensor in model.policy.state_dict().items():
        layer, _, kind = name.rpartition(".")
        named["log_std" if name == "log_std" else f"{NAMES[layer]}.{kind}"] = tensor.clone()
    return named


def record(model: Reference) -> Batch:
    """One rollout on random observations, with terminations, into SB3's buffer and into a batch of ours."""
    rng = np.random.default_rng(7)
    buffer = model.rollout_buffer
    buffer.reset()
    observation = rng.normal(size=(T + 1, B, 4)).astype(np.float32)
    terminated = rng.random((T, B)) < 0.08
    reward = rng.normal(size=(T, B)).astype(np.float32)
    starts = np.ones(B)
    values = np.empty((T + 1, B), np.float32)
    log_probs = np.empty((T, B), np.float32)
    actions = []
    torch.manual_seed(11)
    for t in range(T):
        with torch.no_grad():
            action, value, log_prob = model.policy(torch.from_numpy(observation[t]))
        log_prob += torch.from_numpy(rng.normal(0, 0.15, B).astype(np.float32))  # as if an older policy had acted
        buffer.add(observation[t], action.numpy(), reward[t], starts, value, log_prob)
        starts = terminated[t]
        values[t], log_probs[t] = value.flatten(), log_prob
        actions.append(action.numpy())
    with torch.no_grad():
        last = model.policy.predict_values(torch.from_numpy(observation[T]))
    values[T] = last.flatten()
    buffer.compute_returns_and_advantage(last, terminated[T - 1])
    return Batch(
        version=0,
        observation=observation[None],
        action=np.stack(actions)[None],
        log_prob=log_probs[None],
        reward=reward[None],
        value=values[None],
        terminated=terminated[None],
        truncated=np.zeros((1, T, B), bool),
        valid=np.ones((1, T, B), bool),
    )


def policy_like(model: Reference, action_space: gym.Space[Any]) -> Any:
    """A policy of ours with SB3's weights."""
    ours = DiscreteSpec(2) if action_space is DISCRETE else BoxSpec((3,), "float32", (-1.0,) * 3, (1.0,) * 3)
    spec = EnvironmentSpec("spaces", BoxSpec((4,), "float32", (-5.0,) * 4, (5.0,) * 4), ours)
    policy = build_policy(spec, ModelSettings(), seed=0)
    policy.load_state_dict(translated(model))
    return policy


def check_weights(policy: Any, model: Reference) -> None:
    theirs = translated(model)
    for name, mine in policy.state_dict().items():
        error = (mine - theirs[name]).norm() / theirs[name].norm()
        assert error < 1e-5, name


def lane_major(permutation: np.ndarray) -> np.ndarray:
    """SB3 flattens its buffer lane by lane, we step by step: the same rows in its order."""
    return permutation % B * T + permutation // B


@pytest.mark.parametrize("action_space", [DISCRETE, BOX], ids=["discrete", "box"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clip_range_vf": 0.1},
        {"normalize_advantage": False},
        {"clip_range_vf": 0.2, "normalize_advantage": False, "ent_coef": 0.01, "max_grad_norm": 0.1},
        {"target_kl": 0.008},
    ],
    ids=["plain", "clipped-value", "raw-advantage", "all-terms", "target-kl"],
)
def test_ten_updates_of_ppo_match(
    action_space: gym.Space[Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    model = reference_ppo(action_space, options)
    policy = policy_like(model, action_space)
    ppo = PPO(policy, PPOSettings(n_steps=T, batch_size=64, n_epochs=3, **options), SEED)
    batch = record(model)
    before, stopped = ppo.flat.values.clone(), False
    for version in range(UPDATES):
        numbered = Batch(**{**batch.__dict__, "version": version})
        metrics = ppo.update(numbered, 0.0)
        epochs = iter(range(3))

        def permutation(size: int, version: int = version, epochs: Any = epochs) -> np.ndarray:
            return lane_major(stream(SEED, Purpose.MINIBATCH, version, next(epochs)).permutation(size))

        with monkeypatch.context() as patched:
            patched.setattr(np.random, "permutation", permutation)
            model.train()
        stopped |= metrics["updates"] < 3 * T * B / 64
        expected = model.logger.name_to_value
        assert metrics["explained_variance"] == pytest.approx(expected["train/explained_variance"], abs=1e-5)
        if "target_kl" not in options:  # there SB3 also counts the minibatch at which it stops
            assert metrics["policy_loss"] == pytest.approx(expected["train/policy_gradient_loss"], abs=1e-5)
            assert metrics["value_loss"] == pytest.approx(expected["train/value_loss"], rel=1e-5)
            assert metrics["approx_kl"] == pytest.approx(np.mean(expected["train/approx_kl"]), abs=1e-6)
    check_weights(policy, model)
    assert (ppo.flat.values - before).norm() / before.norm() > 1e-2, "updates that hardly move anything prove nothing"
    assert stopped == ("target_kl" in options)


@pytest.mark.parametrize("action_space", [DISCRETE, BOX], ids=["discrete", "box"])
@pytest.mark.parametrize(
    "options",
    [{}, {"gae_lambda": 0.9, "ent_coef": 0.01}, {"normalize_advantage": True, "max_grad_norm": 0.05}, {"use_rms_prop": False}],
    ids=["plain", "entropy", "normalised", "adam"],
)
def test_ten_updates_of_a2c_match(action_space: gym.Space[Any], options: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    model = ReferenceA2C("MlpPolicy", Spaces(action_space), n_steps=T, seed=3, device="cpu", **options)
    model = with_buffer(model, action_space)
    policy = policy_like(model, action_space)
    adam = {"optimizer": "adam"} if options.get("use_rms_prop") is False else {}
    ours = {name: value for name, value in options.items() if name != "use_rms_prop"}
    a2c = A2C(policy, A2CSettings(n_steps=T, **ours, **adam), SEED)
    batch = record(model)
    before = a2c.flat.values.clone()
    for version in range(UPDATES):
        metrics = a2c.update(Batch(**{**batch.__dict__, "version": version}), 0.0)
        model.train()
        expected = model.logger.name_to_value
        assert metrics["policy_loss"] == pytest.approx(expected["train/policy_loss"], abs=1e-5)
        assert metrics["value_loss"] == pytest.approx(expected["train/value_loss"], rel=1e-5)
        assert metrics["explained_variance"] == pytest.approx(expected["train/explained_variance"], abs=1e-5)
    check_weights(policy, model)
    assert (a2c.flat.values - before).norm() / before.norm() > 1e-3, "updates that hardly move anything prove nothing"
