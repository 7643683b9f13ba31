from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from penstock.algorithms.batch import Batch
from penstock.algorithms.optimizers import Adam, clip_norm
from penstock.algorithms.ppo import PPO, annealed
from penstock.algorithms.rows import valid_rows
from penstock.algorithms.settings import CATALOGUE, PPOSettings, find_algorithm
from penstock.core.errors import NonFinite, Refused, UnknownName
from penstock.core.loading import load_object
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings

SPEC = EnvironmentSpec("two", BoxSpec((3,), "float32", (-1.0,) * 3, (1.0,) * 3), DiscreteSpec(2))
M, T, B = 3, 10, 4


def make(**options: Any) -> PPO:
    return PPO(build_policy(SPEC, ModelSettings(hidden_sizes=(8,)), 1), PPOSettings(**options), 1)


def make_batch(seed: int = 0, **changes: Any) -> Batch:
    rng = np.random.default_rng(seed)
    batch = Batch(
        version=0,
        observation=rng.normal(size=(M, T + 1, B, 3)).astype(np.float32),
        action=rng.integers(0, 2, (M, T, B)),
        log_prob=np.full((M, T, B), math.log(0.5), np.float32),
        reward=rng.normal(size=(M, T, B)).astype(np.float32),
        value=rng.normal(size=(M, T + 1, B)).astype(np.float32),
        terminated=rng.random((M, T, B)) < 0.1,
        truncated=rng.random((M, T, B)) < 0.1,
        valid=rng.random((M, T, B)) < 0.8,
    )
    return replace(batch, **changes)


def test_rows_that_are_not_valid_change_nothing() -> None:
    batch = make_batch()
    rubbish = {
        name: np.where(batch.valid, getattr(batch, name), 77).astype(getattr(batch, name).dtype)
        for name in ("action", "log_prob", "reward")
    }
    rubbish["action"] = np.where(batch.valid, batch.action, 1)
    rubbish["terminated"] = np.where(batch.valid, batch.terminated, True)
    observation = batch.observation.copy()
    observation[:, :-1][~batch.valid] = np.nan
    one, other = make(batch_size=40), make(batch_size=40)
    metrics = one.update(batch, 0.0)
    assert metrics == other.update(replace(batch, observation=observation, **rubbish), 0.0)
    assert torch.equal(one.flat.values, other.flat.values)
    assert metrics["samples"] == 4 * batch.valid.sum()


def test_segments_do_not_touch() -> None:
    batch = make_batch(valid=np.ones((M, T, B), bool))
    together = valid_rows(batch, 0.9, 0.8)
    names = ("observation", "action", "log_prob", "reward", "value", "terminated", "truncated", "valid")
    for k in range(M):
        alone = valid_rows(replace(batch, **{n: getattr(batch, n)[k : k + 1] for n in names}), 0.9, 0.8)
        here = slice(k * T * B, (k + 1) * T * B)
        assert torch.equal(together.advantage[here], alone.advantage)
        assert torch.equal(together.observation[here], alone.observation)
    torch.testing.assert_close(together.target, together.advantage + together.value)


def test_shaped_box_actions_and_discrete_observations() -> None:
    motors = BoxSpec((2, 2), "float32", (-1.0,) * 4, (1.0,) * 4)
    spec = EnvironmentSpec("shaped", DiscreteSpec(5), motors)
    ppo = PPO(build_policy(spec, ModelSettings(hidden_sizes=(8,)), 1), PPOSettings(ent_coef=0.01, batch_size=40), 1)
    rng = np.random.default_rng(0)
    action = rng.normal(size=(M, T, B, 2, 2)).astype(np.float32)
    log_prob = (-0.5 * action**2 - 0.5 * math.log(2 * math.pi)).sum((-1, -2))
    batch = make_batch(observation=rng.integers(0, 5, (M, T + 1, B)), action=action, log_prob=log_prob)
    metrics = ppo.update(batch, 0.0)
    assert 0 <= metrics["approx_kl"] < 0.05, "the log-probabilities at hand are those of this very policy, nearly"
    assert metrics["entropy"] == pytest.approx(4 * 0.5 * (1 + math.log(2 * math.pi)), abs=0.05)


def test_single_number_box_actions() -> None:
    spec = EnvironmentSpec("knob", SPEC.observation, BoxSpec((), "float32", (-1.0,), (1.0,)))
    ppo = PPO(build_policy(spec, ModelSettings(hidden_sizes=(8,)), 1), PPOSettings(batch_size=40), 1)
    action = np.random.default_rng(0).normal(size=(M, T, B)).astype(np.float32)
    log_prob = -0.5 * action**2 - np.float32(0.5 * math.log(2 * math.pi))
    assert 0 <= ppo.update(make_batch(action=action, log_prob=log_prob), 0.0)["approx_kl"] < 0.05


def test_a_batch_without_a_valid_row_trains_nothing() -> None:
    ppo = make()
    before = ppo.flat.values.clone()
    metrics = ppo.update(make_batch(valid=np.zeros((M, T, B), bool)), 0.0)
    assert (metrics["updates"], metrics["samples"]) == (0, 0)
    assert torch.equal(ppo.flat.values, before)


def test_minibatches_cover_the_rows_evenly() -> None:
    rows = valid_rows(make_batch(), 0.99, 0.95)
    numbered = replace(rows, log_prob=torch.arange(len(rows)))
    pieces = list(numbered.minibatches(np.random.default_rng(0).permutation(len(rows)), 7))
    sizes = [len(piece) for piece in pieces]
    assert max(sizes) - min(sizes) <= 1
    assert torch.equal(torch.cat([p.log_prob for p in pieces]).sort().values, torch.arange(len(rows)))
    for piece in pieces:
        assert torch.equal(piece.observation, rows.observation[piece.log_prob])


def test_the_number_of_minibatches_does_not_depend_on_what_is_valid() -> None:
    everything = make(batch_size=40).update(make_batch(valid=np.ones((M, T, B), bool)), 0.0)
    part = make(batch_size=40).update(make_batch(), 0.0)
    assert everything["updates"] == part["updates"] == 4 * 3
    lonely = np.zeros((M, T, B), bool)
    lonely[1, 2, 3] = True
    assert make(batch_size=40).update(make_batch(valid=lonely), 0.0)["updates"] == 4


def test_the_same_batch_and_seed_give_the_same_bits_and_versions_shuffle_anew() -> None:
    one, two, three = make(batch_size=16), make(batch_size=16), make(batch_size=16)
    one.update(make_batch(), 0.0)
    two.update(make_batch(), 0.0)
    three.update(make_batch(version=1), 0.0)
    assert torch.equal(one.flat.values, two.flat.values)
    assert not torch.equal(one.flat.values, three.flat.values)


def test_annealing() -> None:
    assert annealed(0.4, "linear", 0.25) == pytest.approx(0.3)
    assert annealed(0.4, "constant", 0.25) == 0.4
    ppo = make(learning_rate_schedule="linear")
    before = ppo.flat.values.clone()
    assert ppo.update(make_batch(), 1.0)["learning_rate"] == 0.0
    assert torch.equal(ppo.flat.values, before)


def test_it_raises_the_probability_of_what_paid() -> None:
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, (M, T, B))
    never = np.zeros((M, T, B), bool)
    paid = make_batch(
        action=action,
        reward=action.astype(np.float32),
        value=np.zeros((M, T + 1, B), np.float32),
        terminated=~never,
        truncated=never,
    )
    ppo = make(learning_rate=1e-2, batch_size=40)
    for version in range(5):
        metrics = ppo.update(replace(paid, version=version), 0.0)
    logits, _ = ppo.policy(torch.from_numpy(paid.observation[0, 0]))
    assert bool((logits[:, 1] > logits[:, 0]).all())
    assert metrics["approx_kl"] > 0
    assert 0 < metrics["entropy"] < math.log(2)


@pytest.mark.parametrize("where", ["reward", "observation"])
def test_what_is_not_finite_stops_before_the_weights_change(where: str) -> None:
    batch = make_batch(valid=np.ones((M, T, B), bool))
    getattr(batch, where)[0, 0, 0] = np.inf
    ppo = make(batch_size=M * T * B)
    before = ppo.flat.values.clone()
    with pytest.raises(NonFinite, match="learning_rate"):
        ppo.update(batch, 0.0)
    assert torch.equal(ppo.flat.values, before)


def test_state_goes_on_exactly() -> None:
    one, two = make(), make()
    one.update(make_batch(), 0.0)
    state = {name: tensor.clone() for name, tensor in one.state().items()}
    two.restore(one.flat.values.clone(), state)
    one.update(make_batch(1, version=1), 0.0)
    two.update(make_batch(1, version=1), 0.0)
    assert torch.equal(one.flat.values, two.flat.values)


def test_adam_and_clipping_are_torchs() -> None:
    ours, theirs = torch.randn(50), torch.nn.Parameter(torch.empty(50))
    theirs.data.copy_(ours)
    reference = torch.optim.Adam([theirs], lr=0.01, eps=1e-5)
    adam = Adam(ours, eps=1e-5)
    for _ in range(20):
        gradient = torch.randn(50)
        theirs.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([theirs], 6.5)
        reference.step()
        clip_norm(gradient, gradient.norm().item(), 6.5)
        adam.step(gradient, 0.01)
    torch.testing.assert_close(ours, theirs.data, rtol=1e-6, atol=1e-7)


def test_the_catalogue() -> None:
    assert load_object(find_algorithm("ppo").learner) is PPO
    assert CATALOGUE["ppo"].settings is PPOSettings
    with pytest.raises(UnknownName, match="did you mean ppo"):
        find_algorithm("poo")


@pytest.mark.parametrize(
    "options",
    [
        {"n_steps": 0},
        {"learning_rate": -1.0},
        {"gamma": 1.5},
        {"ent_coef": -0.1},
        {"clip_range_vf": 0.0},
        {"learning_rate_schedule": "cosine"},
        {"learning_rate": math.nan},
    ],
)
def test_settings_out_of_range_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=f"learner.{next(iter(options))} must be"):
        PPOSettings(**options)
