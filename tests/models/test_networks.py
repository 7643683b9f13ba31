from __future__ import annotations

import numpy as np
import pytest
import torch

from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.models.networks import ROWS_WORTH_A_CONVOLUTION, ImageNetwork, multiplied_maps
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings
from penstock.models.torch_actor import TorchActor

SPEC = EnvironmentSpec("image", BoxSpec((4, 84, 84), "uint8", (0,) * 28224, (255,) * 28224), DiscreteSpec(3))


def images(rows: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (rows, 4, 84, 84)).astype(np.uint8)


def test_maps_are_multiplied_as_by_the_linear_layer() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(64 * 7 * 7, 32)
    maps = torch.randn(70, 64, 7, 7).contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(multiplied_maps(layer, maps), layer(maps.flatten(1)), rtol=1e-4, atol=1e-5)


def test_many_rows_and_few_rows_see_the_same() -> None:
    network = build_policy(SPEC, ModelSettings(), 1)
    many = torch.from_numpy(images(ROWS_WORTH_A_CONVOLUTION))
    with torch.no_grad():
        together = network(many)
        apart = [network(piece) for piece in many.split(8)]
    for index in (0, 1):
        torch.testing.assert_close(together[index], torch.cat([p[index] for p in apart]), rtol=1e-4, atol=1e-5)


def test_an_actor_in_bfloat16_acts_as_autocast_would_and_follows_its_weights() -> None:
    settings = ModelSettings(precision="bfloat16")
    policy = build_policy(SPEC, settings, 1)
    actor = TorchActor(SPEC, settings, build_policy(SPEC, settings, 2))
    seen, values = images(8), []
    for scale in (1.0, 0.5):
        weights = scale * np.concatenate([parameter.detach().numpy().ravel() for parameter in policy.parameters()])
        actor.load(weights, actor.normaliser.initial())
        plain = build_policy(SPEC, settings, 3)
        with torch.no_grad():
            for parameter, source in zip(plain.parameters(), policy.parameters(), strict=True):
                parameter.copy_(scale * source)
            expected = plain(torch.from_numpy(seen))[1].numpy()
        values.append(actor.value(seen))
        np.testing.assert_array_equal(values[-1], expected)
    assert not np.array_equal(*values)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradients_reach_every_layer(precision: str) -> None:
    policy = build_policy(SPEC, ModelSettings(precision=precision), 1)  # type: ignore[arg-type]
    parameters, value = policy(torch.from_numpy(images(ROWS_WORTH_A_CONVOLUTION)))
    (parameters.sum() + value.sum()).backward()
    assert any(isinstance(part, ImageNetwork) for part in policy.modules())
    assert all(p.grad is not None and p.grad.norm() > 0 for p in policy.parameters())
