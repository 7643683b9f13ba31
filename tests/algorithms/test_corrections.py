"""What is done about data of older policies: each correction against a naive loop, and against what it must reduce to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from penstock.algorithms.a2c import A2C
from penstock.algorithms.batch import Batch
from penstock.algorithms.impala import IMPALA
from penstock.algorithms.ppo import PPO
from penstock.algorithms.rows import read_again
from penstock.algorithms.settings import A2CSettings, IMPALASettings, PPOSettings
from penstock.core.seeds import Purpose, stream
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.models.flat import FlatParameters
from penstock.models.policy import Policy, build_policy
from penstock.models.settings import ModelSettings

SPEC = EnvironmentSpec("known", BoxSpec((4,), "float32", (-5.0,) * 4, (5.0,) * 4), DiscreteSpec(3))
M, T, B = 2, 8, 4
SEED = 3


def new_policy(seed: int = 1) -> Policy:
    """One that prefers some actions: with initial weights all would act alike."""
    policy = build_policy(SPEC, ModelSettings(hidden_sizes=(8,)), seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return policy


def weights_of(policy: Policy) -> np.ndarray:
    """The policy's weights as published; the policy itself is left alone."""
    return FlatParameters(copy.deepcopy(policy)).published.numpy().copy()


def batch_by(actor: Policy, version: int = 5, seed: int = 0) -> Batch:
    """Data that this policy would have collected, with ends and reset rows."""
    random = np.random.default_rng(seed)
    ended = random.random((M, T, B)) < 0.15
    valid = np.ones((M, T, B), bool)
    valid[:, 1:] = ~(ended[:, :-1])
    ended &= valid
    blank = Batch(
        version=version,
        observation=random.normal(size=(M, T + 1, B, 4)).astype(np.float32),
        action=random.integers(0, 3, (M, T, B)),
        log_prob=np.zeros((M, T, B), np.float32),
        reward=random.normal(size=(M, T, B)).astype(np.float32),
        value=np.zeros((M, T + 1, B), np.float32),
        terminated=ended & (random.random((M, T, B)) < 0.5),
        truncated=np.zeros((M, T, B), bool),
        valid=valid,
    )
    reading = read_again(actor, blank)
    truncated = ended & ~blank.terminated
    return Batch(**{**vars(blank), "log_prob": reading.log_prob, "value": reading.value, "truncated": truncated})


def ppo(policy: Policy, **options: Any) -> PPO:
    return PPO(policy, PPOSettings(**{"batch_size": 16, "n_epochs": 2, "learning_rate": 0.01, **options}), SEED)


def updated(algorithm: Any, batch: Batch) -> torch.Tensor:
    algorithm.update(batch, 0.0)
    found: torch.Tensor = algorithm.flat.values.clone()
    return found


@pytest.mark.parametrize("correction", ["decoupled", "vtrace", "delayed", "none"])
def test_without_staleness_every_correction_is_the_clipped_ratio(correction: str) -> None:
    """Delayed to the bit; the others read the batch once more, whose last bits may differ."""
    batch = batch_by(new_policy())
    plain = updated(ppo(new_policy()), batch)
    found = updated(ppo(new_policy(), correction=correction), batch)
    if correction == "delayed":
        assert torch.equal(found, plain)
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-6)
    assert (plain - ppo(new_policy()).flat.values).norm() > 0.1


@pytest.mark.parametrize("correction", ["decoupled", "vtrace", "delayed", "none"])
def test_under_staleness_every_correction_is_another_than_the_clipped_ratio(correction: str) -> None:
    old = new_policy(2)
    batch = batch_by(old)
    plain = updated(ppo(new_policy()), batch)
    if correction == "delayed":
        batch = Batch(**{**vars(batch), "behaviour": weights_of(old)})
    found = updated(ppo(new_policy(), correction=correction), batch)
    assert (found - plain).norm() > 1e-2


def test_none_takes_the_data_for_its_own_whoever_acted() -> None:
    batch = batch_by(new_policy(2))
    shifted = Batch(**{**vars(batch), "log_prob": batch.log_prob - 3.0})
    ours, theirs = (updated(ppo(new_policy(), correction="none"), data) for data in (batch, shifted))
    assert torch.equal(ours, theirs)
    assert not torch.equal(updated(ppo(new_policy()), batch), updated(ppo(new_policy()), shifted))


def naive_delayed(policy: Policy, behaviour: np.ndarray, batch: Batch, settings: PPOSettings, steps: int) -> torch.Tensor:
    """theta <- theta - lr clip(gradient of L at theta + delta), minibatch after minibatch, with torch's own SGD."""
    worker, probe = PPO(copy.deepcopy(policy), settings, SEED), copy.deepcopy(policy)
    theta = worker.flat.values.clone()
    delta = torch.from_numpy(behaviour) - theta
    rows, count = worker.rows(batch), round(batch.valid.size / settings.batch_size)
    taken = 0
    for epoch in range(settings.n_epochs):
        order = stream(SEED, Purpose.MINIBATCH, batch.version, epoch).permutation(len(rows))
        for minibatch in rows.minibatches(order, count):
            torch.nn.utils.vector_to_parameters(theta + delta, probe.parameters())
            for parameter in probe.parameters():
                parameter.grad = None
            judge = PPO.__new__(PPO)
            judge.policy, judge.settings = probe, settings
            judge.terms(probe, judge.prepared(minibatch), settings.clip_range).loss.backward()
            torch.nn.utils.clip_grad_norm_(probe.parameters(), settings.max_grad_norm)
            gradient = torch.cat([parameter.grad.ravel() for parameter in probe.parameters()])  # type: ignore[union-attr]
            theta = theta - settings.learning_rate * gradient
            taken += 1
    assert taken == steps
    return theta


@pytest.mark.parametrize(("epochs", "size", "steps"), [(1, M * T * B, 1), (3, 16, 12)])
def test_delayed_is_the_papers_formula_with_a_constant_delta(epochs: int, size: int, steps: int) -> None:
    old, now = new_policy(2), new_policy(1)
    behaviour = weights_of(old)
    batch = Batch(**{**vars(batch_by(old)), "behaviour": behaviour})
    options = {"optimizer": "sgd", "learning_rate": 0.05, "n_epochs": epochs, "batch_size": size, "correction": "delayed"}
    expected = naive_delayed(now, behaviour, batch, PPOSettings(**options), steps)  # type: ignore[arg-type]
    found = updated(ppo(now, **options), batch)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_after_a_delayed_update_the_policy_stands_where_its_weights_are() -> None:
    old, now = new_policy(2), new_policy(1)
    batch = Batch(**{**vars(batch_by(old)), "behaviour": weights_of(old)})
    algorithm = ppo(now, correction="delayed", learning_rate=1e-9)
    before = algorithm.flat.values.clone()
    algorithm.update(batch, 0.0)
    torch.testing.assert_close(algorithm.flat.values, before, rtol=0, atol=1e-6)
    assert float((torch.from_numpy(weights_of(old)) - before).norm()) > 1.0, "the policies are far from one another"


def test_decoupled_by_a_naive_loop() -> None:
    """-mean(w min(r A, clip(r) A)), r = pi / pi_prox, w = pi_prox / mu; at the batch's start r is 1."""
    old, now = new_policy(2), new_policy(1)
    batch, algorithm = batch_by(old), ppo(new_policy(1), correction="decoupled", normalize_advantage=False)
    rows = algorithm.rows(batch)
    reading = read_again(now, batch)
    weight = np.exp(reading.log_prob - batch.log_prob)[batch.valid]
    torch.testing.assert_close(rows.weight, torch.from_numpy(weight))
    terms = algorithm.terms(algorithm.policy, rows, 0.2)
    expected = -np.mean(weight * rows.advantage.numpy())
    assert terms.policy_loss.item() == pytest.approx(expected, rel=1e-5)


def test_impala_steps_along_rho_times_the_advantage() -> None:
    """-mean(rho (r + gamma v - V) log pi) + c1 mean((v - V)^2) - c2 mean(H): its gradient, by autograd on a copy."""
    old, now = new_policy(2), new_policy(1)
    batch = batch_by(old)
    settings = IMPALASettings(optimizer="sgd", learning_rate=0.1, ent_coef=0.02, max_grad_norm=1e9)
    algorithm = IMPALA(now, settings, SEED)
    rows, probe = algorithm.rows(batch), copy.deepcopy(now)
    for parameter in probe.parameters():
        parameter.grad = None
    parameters, value = probe(rows.observation)
    distribution = probe.distribution(parameters)
    loss = -(rows.advantage * distribution.log_prob(rows.action)).mean()
    loss = loss + 0.5 * ((value - rows.target) ** 2).mean() - 0.02 * distribution.entropy().mean()
    loss.backward()
    expected = torch.cat([p.detach().ravel() - 0.1 * p.grad.ravel() for p in probe.parameters()])  # type: ignore[union-attr]
    torch.testing.assert_close(updated(algorithm, batch), expected, rtol=1e-4, atol=1e-6)
    ratio = np.exp(read_again(new_policy(1), batch).log_prob - batch.log_prob)[batch.valid]
    assert (ratio > 1.2).any()
    assert (ratio < 0.8).any()


def test_a2c_without_staleness_is_the_same_delayed_or_not() -> None:
    batch = batch_by(new_policy())
    plain = updated(A2C(new_policy(), A2CSettings(correction="none"), SEED), batch)
    assert torch.equal(updated(A2C(new_policy(), A2CSettings(), SEED), batch), plain)


def test_an_update_without_a_valid_row_changes_nothing() -> None:
    batch = batch_by(new_policy())
    nothing = Batch(**{**vars(batch), "valid": np.zeros_like(batch.valid)})
    for algorithm in (A2C(new_policy(), A2CSettings(), SEED), ppo(new_policy(), correction="decoupled")):
        before = algorithm.flat.values.clone()
        assert algorithm.update(nothing, 0.0)["updates"] == 0
        assert torch.equal(algorithm.flat.values, before)
