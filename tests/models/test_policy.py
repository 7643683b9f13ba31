from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from model_specimens import CHOICES, EVERY, MOTORS, OBSERVED, PLACES
from torch import nn

from penstock.core.errors import Refused
from penstock.models.distributions import Categorical, DiagonalGaussian
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings


class Features(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 11)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.layer(observation)


class Whole(nn.Module):
    def __init__(self, spec: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(spec.observation.size, 9)

    def forward(self, observation: torch.Tensor, memory: Any = None) -> tuple[torch.Tensor, torch.Tensor, Any]:
        out = self.layer(observation)
        return out[:, :8], out[:, 8:], memory


class Remembering(Whole):
    def forward(self, observation: torch.Tensor, state: Any) -> tuple[torch.Tensor, torch.Tensor, Any]:  # type: ignore[override]  # another name
        return *super().forward(observation)[:2], observation


class Mixing(Features):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(11)


def test_initial_weights_belong_to_the_seed() -> None:
    torch.manual_seed(123)
    drawn = torch.rand(1)
    torch.manual_seed(123)
    one, again, other = (build_policy(MOTORS, ModelSettings(), seed).state_dict() for seed in (1, 1, 2))
    assert torch.rand(1) == drawn, "building draws nothing from torch's own generator"
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["policy.0.weight"], other["policy.0.weight"])


def test_orthogonal_start() -> None:
    named = build_policy(CHOICES, ModelSettings(), 0).state_dict()
    square = named["policy.1.weight"] @ named["policy.1.weight"].T
    torch.testing.assert_close(square, 2 * torch.eye(64), atol=1e-5, rtol=0)
    head = named["policy.2.weight"] @ named["policy.2.weight"].T
    torch.testing.assert_close(head, 1e-4 * torch.eye(3), atol=1e-8, rtol=0)
    assert named["value.2.weight"].norm().item() == pytest.approx(1.0, abs=1e-5)
    assert not named["value.1.bias"].any()


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.id)
def test_shapes(spec: Any) -> None:
    observation = torch.zeros(6, dtype=torch.int64) if spec is PLACES else torch.zeros(6, 5)
    parameters, value = build_policy(spec, ModelSettings(), 0)(observation)
    assert parameters.shape == (6, {"choices": 3, "motors": 4, "places": 2}[spec.id])
    assert value.shape == (6,)


def test_a_persons_features_and_whole_forward() -> None:
    x = torch.randn(6, 5)
    parameters, value = build_policy(CHOICES, ModelSettings(), 0, Features)(x)
    assert (parameters.shape, value.shape) == ((6, 3), (6,))
    whole = build_policy(MOTORS, ModelSettings(), 0, Whole)
    parameters, value = whole(x)
    assert (parameters.shape, value.shape) == ((6, 8), (6,))
    distribution = whole.distribution(parameters)
    assert isinstance(distribution, DiagonalGaussian)
    torch.testing.assert_close(distribution.log_std, parameters[:, 4:])


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(Refused, match="mixes rows"):
        build_policy(CHOICES, ModelSettings(), 0, Mixing)
    with pytest.raises(Refused, match="memory"):
        build_policy(MOTORS, ModelSettings(), 0, Remembering)(torch.zeros(2, 5))
    with pytest.raises(Refused, match="made str"):
        build_policy(MOTORS, ModelSettings(), 0, lambda: "network")
    with pytest.raises(Refused, match="features of shape"):
        build_policy(CHOICES, ModelSettings(), 0, lambda: nn.Flatten(0))
    with pytest.raises(Refused, match="needs a Box"):
        build_policy(PLACES, ModelSettings(normalize_observation=True), 0)
    with pytest.raises(Refused, match="positive"):
        ModelSettings(hidden_sizes=(0,))


def test_categorical_is_torchs() -> None:
    logits = torch.randn(20, 4, dtype=torch.float64, requires_grad=True)
    action = torch.randint(4, (20,))
    theirs, ours = torch.distributions.Categorical(logits=logits), Categorical(logits)
    torch.testing.assert_close(ours.log_prob(action), theirs.log_prob(action))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    torch.autograd.gradcheck(lambda x: Categorical(x).log_prob(action) + Categorical(x).entropy(), (logits,))


@pytest.mark.parametrize("rows", [None, 20])
def test_gaussian_is_torchs(rows: int | None) -> None:
    mean, action = torch.randn(2, 20, 3, dtype=torch.float64)
    log_std = torch.randn(3, dtype=torch.float64) if rows is None else torch.randn(rows, 3, dtype=torch.float64)
    theirs, ours = torch.distributions.Normal(mean, log_std.exp()), DiagonalGaussian(mean, log_std)
    torch.testing.assert_close(ours.log_prob(action), theirs.log_prob(action).sum(1))
    torch.testing.assert_close(ours.entropy(), theirs.entropy().sum(1))


def test_torch_free_parts_import_no_torch() -> None:
    modules = ["settings", "layout", "sampling", "normaliser", "numpy_actor", "actor"]
    code = (
        f"import sys, importlib; [importlib.import_module('penstock.models.' + m) for m in {modules}];"
        "import penstock.algorithms.settings, penstock.algorithms.batch, penstock.losses.returns;"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_observation_dtypes_are_brought_to_float() -> None:
    policy = build_policy(CHOICES, ModelSettings(), 0)
    rows = np.random.default_rng(0).normal(size=(3, *OBSERVED.shape))
    torch.testing.assert_close(policy(torch.from_numpy(rows))[1], policy(torch.from_numpy(rows.astype("f4")))[1])
