"""Policies over observations and actions of many parts, with and without convolutions, masks and normalisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from penstock.core.errors import Refused
from penstock.core.seeds import Purpose, stream
from penstock.core.specs import (
    MASK,
    Array,
    BoxSpec,
    CompositeSpec,
    DiscreteSpec,
    EnvironmentSpec,
    MultiDiscreteSpec,
    leaves,
)
from penstock.envs.known.mixed import Mixed
from penstock.envs.masks import with_mask
from penstock.envs.spaces import spec_of
from penstock.models.actor import build_actor
from penstock.models.features import write_columns
from penstock.models.layout import mlp_layout
from penstock.models.normaliser import Normaliser
from penstock.models.policy import build_policy
from penstock.models.reading import columns_tensor
from penstock.models.settings import ModelSettings
from penstock.models.tensors import each, tensors_of
from penstock.testing.actor import check_actor

LANES = 6
NUMBERS = BoxSpec((2, 2), "float32", (-1.0,) * 4, (1.0,) * 4)
PAIR = MultiDiscreteSpec((3, 2), (1, 5), (2,))
SHOWN = CompositeSpec("dict", ("numbers", "pair", "place"), (NUMBERS, PAIR, DiscreteSpec(4, 7)))
SWITCHES = EnvironmentSpec("switches", SHOWN, PAIR)
MASKED = with_mask(SWITCHES)
MIXED = spec_of(Mixed(), "mixed")
FLAT = replace(MIXED, id="flat", observation=SHOWN)
PONG = EnvironmentSpec("pong", BoxSpec((4, 84, 84), "uint8", (), ()), DiscreteSpec(6))


def rows_of(spec: EnvironmentSpec, lanes: int = LANES, seed: int = 0) -> Array:
    """Random observations, as slots hold them."""
    random = np.random.default_rng(seed)
    rows = np.zeros((lanes, *spec.observation.shape), spec.observation.dtype)
    for place in leaves(spec.observation):
        part = place.of(rows)
        if isinstance(place.leaf, BoxSpec):
            part[...] = random.integers(0, 256, part.shape) if place.leaf.is_image else random.normal(size=part.shape)
        elif isinstance(place.leaf, DiscreteSpec):
            part[...] = random.integers(0, place.leaf.n, part.shape)
        elif isinstance(place.leaf, MultiDiscreteSpec):
            part[...] = random.integers(0, np.reshape(place.leaf.counts, place.leaf.shape), part.shape)
        else:
            part[...] = random.random(part.shape) < 0.5
            part[:, [0, 3]] = True  # something is allowed in each choice
    return rows


def random_weights(actor: Any) -> Array:
    return np.random.default_rng(4).normal(0, 0.1, actor.layout.size).astype(np.float32)


@pytest.mark.parametrize("spec", [SWITCHES, MASKED, FLAT, MIXED], ids=["switches", "masked", "flat", "mixed"])
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_actors_of_many_parts_conform(spec: EnvironmentSpec, backend: Any) -> None:
    if backend == "numpy" and spec is MIXED:
        pytest.skip("convolutions are torch's")
    settings = ModelSettings(hidden_sizes=(8,), feature_size=16)
    actor: Any = build_actor(spec, settings, backend)
    statistics = actor.normaliser.initial()
    check_actor(lambda: build_actor(spec, settings, backend), spec, rows_of(spec), random_weights(actor), statistics)


@pytest.mark.parametrize("spec", [SWITCHES, MASKED, FLAT], ids=["switches", "masked", "flat"])
def test_numpy_and_torch_compute_the_same(spec: EnvironmentSpec) -> None:
    settings = ModelSettings(hidden_sizes=(8,), normalize_observation=True)
    actors: list[Any] = [build_actor(spec, settings, "numpy"), build_actor(spec, settings, "torch")]
    rows, statistics = rows_of(spec), actors[0].normaliser.initial()
    statistics[0], statistics[1:5], statistics[5:] = 10.0, [1, 2, 3, 4], [10, 20, 30, 40]
    acted = []
    for actor in actors:
        actor.load(random_weights(actors[0]), statistics)
        noise = actor.noise(stream(1, Purpose.ACTION), 1, LANES)[0]
        acted.append(actor.act(rows, noise))
    assert actors[0].layout == actors[1].layout == mlp_layout(spec, settings)
    np.testing.assert_allclose(acted[0].log_prob, acted[1].log_prob, rtol=1e-5)
    np.testing.assert_allclose(acted[0].value, acted[1].value, rtol=1e-5)
    if not isinstance(spec.action, CompositeSpec):
        assert np.array_equal(acted[0].action, acted[1].action)


@pytest.mark.parametrize("spec", [SWITCHES, MASKED, FLAT, MIXED], ids=["switches", "masked", "flat", "mixed"])
def test_the_learner_finds_the_log_probability_that_was_recorded(spec: EnvironmentSpec) -> None:
    settings = ModelSettings(hidden_sizes=(8,), feature_size=16, log_std_init=-0.5)
    actor: Any = build_actor(spec, settings, "torch")
    rows = rows_of(spec)
    actor.load(random_weights(actor), actor.normaliser.initial())
    acted = actor.act(rows, actor.noise(stream(1, Purpose.ACTION), 1, LANES)[0])
    parameters, value = actor.policy(tensors_of(rows))
    flat = each(lambda part: part.reshape(len(part), -1) if part.ndim > 1 else part, tensors_of(acted.action))
    found = actor.policy.distribution(parameters).log_prob(flat)
    np.testing.assert_allclose(found.detach().numpy(), acted.log_prob, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value.detach().numpy(), acted.value, rtol=1e-5, atol=1e-6)


def test_the_entropy_of_independent_choices_is_their_sum() -> None:
    """Uniform over 3 and 2 choices: log 3 + log 2. Beside a normal of deviation 1: 1/2 (1 + log 2 pi) more."""
    policy = build_policy(SWITCHES, ModelSettings(), 0)
    assert policy.distribution(torch.zeros(1, 5)).entropy().item() == pytest.approx(np.log(3) + np.log(2))
    both = replace(SWITCHES, action=CompositeSpec("tuple", ("0", "1"), (PAIR, BoxSpec((1,), "float32", (-1.0,), (1.0,)))))
    joint = build_policy(both, ModelSettings(), 0).distribution(torch.zeros(1, 6))
    assert joint.entropy().item() == pytest.approx(np.log(6) + 0.5 * (1 + np.log(2 * np.pi)))


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_what_a_mask_forbids_is_never_drawn_and_has_probability_zero(backend: Any) -> None:
    actor: Any = build_actor(MASKED, ModelSettings(), backend)
    actor.load(random_weights(actor), actor.normaliser.initial())
    rows = rows_of(MASKED, 500)
    allowed = rows[MASK]
    acted = actor.act(rows, actor.noise(stream(1, Purpose.ACTION), 1, 500)[0])
    for actions in (acted.action, actor.best(rows)):
        assert allowed[np.arange(500), actions[:, 0]].all()
        assert allowed[np.arange(500), 3 + actions[:, 1]].all()
    assert np.isfinite(acted.log_prob).all()
    only = rows[allowed.sum(1) == 2]  # one choice in each part: nothing is left to chance
    assert len(only) > 10
    sure = actor.act(only, actor.noise(stream(2, Purpose.ACTION), 1, len(only))[0])
    np.testing.assert_allclose(sure.log_prob, 0.0, atol=1e-6)


def test_a_mask_leaves_gradients_finite_and_forbidden_logits_alone() -> None:
    policy = build_policy(MASKED, ModelSettings(), 0)
    rows = rows_of(MASKED)
    parameters, _ = policy(tensors_of(rows))
    parameters.retain_grad()
    distribution = policy.distribution(parameters)
    (distribution.log_prob(torch.tensor([[0, 0]] * LANES)).sum() + distribution.entropy().sum()).backward()
    assert all(torch.isfinite(p.grad).all() for p in policy.parameters() if p.grad is not None)
    forbidden = policy.policy[-1].bias.grad  # type: ignore[union-attr, index]  # the built-in towers
    assert torch.isfinite(forbidden).all()


@pytest.mark.parametrize("leaf", [NUMBERS, PAIR, DiscreteSpec(4), MultiDiscreteSpec((2, 2), (0, 0), (2,))], ids=str)
def test_columns_are_the_same_in_numpy_and_torch(leaf: Any) -> None:
    spec = EnvironmentSpec("x", leaf, DiscreteSpec(2))
    rows = rows_of(spec)
    expected = columns_tensor(leaf, torch.from_numpy(rows)).numpy()
    found = np.full(expected.shape, np.nan, np.float32)
    write_columns(leaf, rows, found)
    assert np.array_equal(found, expected)


def test_columns_written_out() -> None:
    """[2, 1] of counts 3 and 2: one-hot 0 0 1, then yes."""
    found = np.zeros((1, 4), np.float32)
    write_columns(PAIR, np.array([[2, 1]]), found)
    assert found.tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize("network", ["nature", "impala"])
@pytest.mark.parametrize("shape", [(4, 84, 84), (84, 84, 3), (84, 84)])
def test_images_in_any_order_of_axes(network: Any, shape: tuple[int, ...]) -> None:
    spec = replace(PONG, observation=BoxSpec(shape, "uint8", (), ()))
    policy = build_policy(spec, ModelSettings(network=network, feature_size=32), 0)
    parameters, value = policy(torch.zeros(2, *shape, dtype=torch.uint8))
    assert (parameters.shape, value.shape) == ((2, 6), (2,))


def test_channels_last_images_are_the_same_images() -> None:
    """The same pixels with their channels first or last give the same features."""
    first = build_policy(replace(PONG, observation=BoxSpec((3, 84, 84), "uint8", (), ())), ModelSettings(), 3)
    last = build_policy(replace(PONG, observation=BoxSpec((84, 84, 3), "uint8", (), ())), ModelSettings(), 3)
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, 84, 84), dtype=np.uint8))
    torch.testing.assert_close(first(image)[0], last(image.permute(0, 2, 3, 1))[0])


def test_nature_has_the_sizes_of_its_paper() -> None:
    """Convolutions leave 20, 9, 7 pixels a side; 64 x 7 x 7 = 3136 numbers enter the layer of 512."""
    named = build_policy(PONG, ModelSettings(), 0).state_dict()
    assert named["body.images.0.convolutions.0.weight"].shape == (32, 4, 8, 8)
    assert named["body.features.weight"].shape == (512, 3136)


def test_memory_format_changes_no_more_than_rounding() -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 4, 84, 84), dtype=np.uint8))
    found = [build_policy(PONG, ModelSettings(memory_format=kind), 0)(image)[1] for kind in ("contiguous", "channels_last")]  # type: ignore[arg-type]
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_bfloat16_computes_coarsely_and_keeps_float32_weights() -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 4, 84, 84), dtype=np.uint8))
    exact, coarse = (build_policy(PONG, ModelSettings(precision=kind), 0) for kind in ("float32", "bfloat16"))  # type: ignore[arg-type]
    one, other = exact(image)[1], coarse(image)[1]
    assert other.dtype == torch.float32
    assert not torch.equal(one, other)
    torch.testing.assert_close(one, other, rtol=0.1, atol=0.05)
    other.sum().backward()
    assert all((p.dtype == torch.float32 and p.grad is None) or p.grad.dtype == torch.float32 for p in coarse.parameters())


def test_normalisation_touches_the_floats_of_a_composite_alone() -> None:
    normaliser = Normaliser(MIXED, ModelSettings(normalize_observation=True))
    assert normaliser.size == 1 + 2 * 2, "levels are two numbers; the image and the choices are left as they are"
    rows = rows_of(MIXED, 4)
    statistics = normaliser.merged(normaliser.initial(), [(rows[None], np.zeros((1, 4)), np.ones((1, 4), bool))])
    assert statistics[1:3] == pytest.approx(rows["levels"].mean(0), abs=1e-3)
    normaliser.load(statistics)
    scaled = normaliser.normalised(rows)
    assert np.array_equal(scaled["image"], rows["image"])
    expected = (rows["levels"] - rows["levels"].mean(0)) / rows["levels"].std(0)
    assert scaled["levels"] == pytest.approx(expected, abs=1e-2)


def test_reward_sign() -> None:
    normaliser = Normaliser(PONG, ModelSettings(reward_sign=True))
    out = np.empty(3, np.float32)
    normaliser.normalise_rewards(np.array([-7.0, 0.0, 0.5], np.float32), out)
    assert out.tolist() == [-1.0, 0.0, 1.0]


class Parts(nn.Module):
    """Sees what a person's network is given of a Dict."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 5)

    def forward(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
        assert set(seen) == {"numbers", "pair", "place"}
        assert {name: part.shape[1:] for name, part in seen.items()} == {"numbers": (2, 2), "pair": (4,), "place": (4,)}
        return self.layer(torch.cat([part.reshape(len(part), -1) for part in seen.values()], 1))


@pytest.mark.parametrize("spec", [SWITCHES, MASKED], ids=["plain", "masked"])
def test_a_persons_network_is_given_the_parts_by_name(spec: EnvironmentSpec) -> None:
    parameters, _ = build_policy(spec, ModelSettings(), 0, Parts)(tensors_of(rows_of(spec)))
    assert parameters.shape == (LANES, 5)


@pytest.mark.parametrize(
    ("settings", "spec", "says"),
    [
        ({"network": "nature"}, SWITCHES, "needs an image"),
        ({"normalize_observation": True}, PONG, "needs a Box of numbers"),
        ({"precision": "bfloat16"}, SWITCHES, "for networks with convolutions"),
    ],
)
def test_settings_that_do_not_fit_the_environment(settings: dict[str, Any], spec: EnvironmentSpec, says: str) -> None:
    with pytest.raises(Refused, match=says):
        build_policy(spec, ModelSettings(**settings), 0)
