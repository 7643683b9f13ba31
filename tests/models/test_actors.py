from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from model_specimens import CHOICES, EVERY, MOTORS, PLACES
from torch import nn

from penstock.core.errors import Refused
from penstock.core.seeds import Purpose, stream
from penstock.models.actor import build_actor
from penstock.models.flat import FlatParameters
from penstock.models.numpy_actor import NumpyActor
from penstock.models.policy import build_policy
from penstock.models.sampling import CategoricalSampler
from penstock.models.settings import ModelSettings
from penstock.models.torch_actor import TorchActor


def observations(spec: Any, lanes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if spec is PLACES:
        return rng.integers(0, 7, lanes)
    return rng.normal(1.0, 3.0, size=(lanes, 5)).astype(np.float32)


def loaded(spec: Any, backend: str, settings: ModelSettings) -> Any:
    actor: Any = build_actor(spec, settings, backend)  # type: ignore[arg-type]  # parametrised
    weights = np.random.default_rng(4).normal(0, 0.4, actor.layout.size).astype(np.float32)
    statistics = actor.normaliser.initial()
    if settings.normalize_observation:
        segment = (observations(spec, 400, 9).reshape(100, 4, 5), np.ones((100, 4)), np.ones((100, 4), bool))
        statistics = actor.normaliser.merged(statistics, [segment])
    actor.load(weights, statistics)
    return actor


CASES = [(spec, {}) for spec in EVERY] + [
    (CHOICES, {"normalize_observation": True}),
    (MOTORS, {"normalize_observation": True, "clip_observation": 0.7, "activation": "relu"}),
    (CHOICES, {"hidden_sizes": ()}),
    (MOTORS, {"hidden_sizes": (7, 9, 5)}),
]


@pytest.mark.parametrize(("spec", "options"), CASES)
def test_numpy_and_torch_agree(spec: Any, options: dict[str, Any]) -> None:
    settings = ModelSettings(**options)
    ours, theirs = loaded(spec, "numpy", settings), loaded(spec, "torch", settings)
    assert (type(ours), type(theirs)) == (NumpyActor, TorchActor)
    rows = observations(spec, 32)
    noise = ours.noise(stream(1, Purpose.ACTION, 0, 0), 3, 32)
    np.testing.assert_array_equal(noise, theirs.noise(stream(1, Purpose.ACTION, 0, 0), 3, 32))
    for step in noise:
        mine, other = ours.act(rows, step), theirs.act(rows, step)
        assert mine.action.dtype == other.action.dtype
        np.testing.assert_allclose(mine.action, other.action, atol=1e-5)
        np.testing.assert_allclose(mine.log_prob, other.log_prob, atol=1e-5)
        np.testing.assert_allclose(mine.value, other.value, atol=1e-5)
    np.testing.assert_allclose(ours.best(rows), theirs.best(rows), atol=1e-5)
    np.testing.assert_allclose(ours.value(rows), theirs.value(rows), atol=1e-5)


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.id)
def test_what_is_recorded_is_what_the_learner_computes(spec: Any) -> None:
    actor = loaded(spec, "numpy", ModelSettings())
    rows = observations(spec, 32)
    acted = actor.act(rows, actor.noise(stream(1, Purpose.ACTION, 0, 0), 1, 32)[0])
    policy = build_policy(spec, ModelSettings(), 0)
    FlatParameters(policy).values.copy_(
        torch.from_numpy(np.random.default_rng(4).normal(0, 0.4, actor.layout.size).astype(np.float32))
    )
    parameters, value = policy(torch.from_numpy(rows))
    action = torch.from_numpy(acted.action)
    log_prob = policy.distribution(parameters).log_prob(action.flatten(1) if action.ndim > 1 else action)
    np.testing.assert_allclose(acted.log_prob, log_prob.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(acted.value, value.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.id)
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_a_row_depends_on_itself_alone_to_the_last_bit(spec: Any, backend: str) -> None:
    actor = loaded(spec, backend, ModelSettings())
    rows, others = observations(spec, 32), observations(spec, 32, seed=1)
    noise, other_noise = actor.noise(stream(1, Purpose.ACTION, 0, 0), 2, 32)
    whole = actor.act(rows, noise)
    for lane in (0, 13, 31):
        mixed, mixed_noise = others.copy(), other_noise.copy()
        mixed[lane], mixed_noise[lane] = rows[lane], noise[lane]
        alone = actor.act(mixed, mixed_noise)
        for field in ("action", "log_prob", "value"):
            np.testing.assert_array_equal(getattr(alone, field)[lane], getattr(whole, field)[lane])


def test_results_are_the_callers_to_keep() -> None:
    actor = loaded(MOTORS, "numpy", ModelSettings())
    noise = actor.noise(stream(1, Purpose.ACTION, 0, 0), 2, 4)
    first = actor.act(observations(MOTORS, 4), noise[0])
    kept = [a.copy() for a in (first.action, first.log_prob, first.value)]
    actor.act(observations(MOTORS, 4, seed=2), noise[1])
    for before, now in zip(kept, (first.action, first.log_prob, first.value), strict=True):
        np.testing.assert_array_equal(before, now)


def test_weights_are_copied() -> None:
    actor: Any = build_actor(CHOICES, ModelSettings())
    weights = np.full(actor.layout.size, 0.1, np.float32)
    actor.load(weights, actor.normaliser.initial())
    before = actor.value(observations(CHOICES, 3))
    weights[:] = 9.0
    np.testing.assert_array_equal(actor.value(observations(CHOICES, 3)), before)


def test_categorical_draws_by_the_inverse_of_the_sum() -> None:
    sampler = CategoricalSampler(CHOICES.action.start)  # type: ignore[union-attr]  # a DiscreteSpec
    logits = np.log(np.array([[0.2], [0.5], [0.3]], np.float32)).repeat(6, 1)
    uniform = np.array([0.0, 0.19, 0.21, 0.69, 0.71, 1 - 2**-24], np.float32)
    action, log_prob = sampler.draw(logits, uniform)
    assert action.tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(np.exp(log_prob), [0.2, 0.2, 0.5, 0.5, 0.3, 0.3], rtol=1e-5)
    assert action.dtype == np.int64
    assert sampler.to_environment(action).tolist() == [2, 2, 3, 3, 4, 4]


def test_draws_follow_the_distribution() -> None:
    actor = loaded(CHOICES, "numpy", ModelSettings())
    rows = np.repeat(observations(CHOICES, 1), 20_000, 0)
    acted = actor.act(rows, actor.noise(stream(3, Purpose.ACTION, 0, 0), 1, 20_000)[0])
    for choice in range(3):
        drawn = acted.action == choice
        assert drawn.mean() == pytest.approx(np.exp(acted.log_prob[drawn]).mean() if drawn.any() else 0, abs=0.015)


def test_extreme_logits_stay_finite() -> None:
    sampler = CategoricalSampler(CHOICES.action.start)  # type: ignore[union-attr]  # a DiscreteSpec
    action, log_prob = sampler.draw(np.array([[1e4], [-1e4], [0.0]], np.float32), np.array([0.999], np.float32))
    assert action.tolist() == [0]
    assert log_prob.tolist() == [0.0]
    impossible_first = np.array([[-1e4], [0.0], [0.0]], np.float32)
    assert sampler.draw(impossible_first, np.array([0.0], np.float32))[0].tolist() == [1]


def test_box_actions_are_recorded_as_drawn_and_clipped_for_the_environment() -> None:
    actor = loaded(MOTORS, "numpy", ModelSettings())
    acted = actor.act(observations(MOTORS, 8), np.full((8, 4), 50.0, np.float32))
    assert acted.action.shape == (8, 2, 2)
    assert (acted.action > 0.5).all()
    assert (actor.to_environment(acted.action) == 0.5).all()


class Features(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 6)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(observation))


def test_a_persons_model_acts_through_torch() -> None:
    assert isinstance(build_actor(CHOICES, ModelSettings(), custom=Features), TorchActor)
    assert isinstance(build_actor(CHOICES, ModelSettings()), NumpyActor)
    with pytest.raises(Refused, match="backend numpy"):
        build_actor(CHOICES, ModelSettings(), "numpy", custom=Features)


def test_on_another_device_weights_and_rows_are_there() -> None:
    """On torch's device that keeps no numbers: all is done there, up to the point where numbers are asked for."""
    actor: Any = build_actor(MOTORS, ModelSettings(), "torch", device="meta")
    actor.flat.published.copy_(torch.zeros(actor.layout.size))
    assert actor.flat.published.device.type == "meta"
    assert {parameter.device.type for parameter in actor.policy.parameters()} == {"meta"}
    with pytest.raises(NotImplementedError, match="meta"):
        actor.value(observations(MOTORS, 4))
