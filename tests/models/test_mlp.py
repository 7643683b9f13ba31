from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from model_specimens import CHOICES, EVERY

from penstock.core.errors import Refused
from penstock.models.flat import FlatParameters
from penstock.models.layout import mlp_layout
from penstock.models.mlp import SPARES, Mlp, SettledTowers, run_towers
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings

SHAPES = [(5, 3), (5, 8, 3), (4, 64, 64, 2), (70, 30, 40, 50, 1)]


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", SHAPES)
def test_the_short_way_computes_what_autograd_computes(sizes: tuple[int, ...], activation: str) -> None:
    torch.manual_seed(1)
    towers = torch.nn.ModuleList([Mlp(sizes, activation), Mlp((sizes[0], 6, 2), activation)])  # type: ignore[arg-type]  # parametrised
    plain = copy.deepcopy(towers)
    FlatParameters(towers)
    settled = SettledTowers(list(towers))  # type: ignore[arg-type]  # both are Mlp
    for rows in (33, 32, 33):
        x = torch.randn(rows, sizes[0])
        outputs = run_towers(settled, x)
        expected = [tower(x) for tower in plain]
        for ours, theirs in zip(outputs, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
        for group in (outputs, expected):
            sum(o.square().sum() * (k + 1) for k, o in enumerate(group)).backward()  # type: ignore[union-attr]  # tensors
    # three passes were added up: accumulation is autograd's too
    for name, theirs in gradients(plain).items():
        torch.testing.assert_close(gradients(towers)[name], theirs, rtol=1e-4, atol=1e-4 * float(theirs.abs().max()))


def test_two_passes_under_way_do_not_share_memory() -> None:
    policy = build_policy(CHOICES, ModelSettings(hidden_sizes=(16, 8)), 0)
    flat = FlatParameters(policy)
    first, second = torch.randn(2, 8, 5, generator=torch.Generator().manual_seed(1))

    def loss(x: torch.Tensor) -> torch.Tensor:
        return policy(x)[1].square().sum()

    flat.gradient.zero_()
    loss(first).backward()
    loss(second).backward()
    one_by_one = flat.gradient.clone()
    flat.gradient.zero_()
    a, b = loss(first), loss(second)
    a.backward(retain_graph=True)
    b.backward()
    torch.testing.assert_close(flat.gradient, one_by_one)
    with pytest.raises(RuntimeError, match="run forward again"):
        a.backward()


def test_settling_elsewhere_moves_the_gradients_along() -> None:
    policy = build_policy(CHOICES, ModelSettings(), 0)
    x = torch.randn(4, 5)
    FlatParameters(policy)
    policy(x)
    flat = FlatParameters(policy)
    policy(x)[1].sum().backward()
    assert flat.gradient.abs().sum() > 0


def test_memory_is_kept_and_used_again() -> None:
    policy = build_policy(CHOICES, ModelSettings(), 0)
    FlatParameters(policy)
    towers = SettledTowers([policy.policy, policy.value])
    spaces = towers.take_workspaces(8)
    towers.give_back(8, spaces)
    assert towers.take_workspaces(8) is spaces
    assert towers.take_workspaces(8) is not spaces
    for rows in range(20):
        towers.give_back(rows, towers.take_workspaces(rows))
    assert len(towers._spare) <= SPARES


def test_input_gradients_take_the_plain_way() -> None:
    policy = build_policy(CHOICES, ModelSettings(), 0)
    flat = FlatParameters(policy)
    x = torch.randn(4, 5, requires_grad=True)
    policy(x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    assert flat.gradient.abs().sum() > 0


def test_a_copy_of_a_settled_policy_has_weights_and_gradients_of_its_own() -> None:
    policy = build_policy(CHOICES, ModelSettings(), 0)
    flat = FlatParameters(policy)
    x = torch.randn(4, 5)
    policy(x)
    twin = copy.deepcopy(policy)
    twin.zero_grad(set_to_none=True)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2.0)
    assert not torch.equal(twin(x)[1], policy(x)[1])
    twin(x)[1].sum().backward()
    assert flat.gradient.abs().sum() == 0
    assert twin.value[0].weight.grad is not None


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.id)
def test_flat_parameters_are_the_parameters(spec) -> None:  # type: ignore[no-untyped-def]  # parametrised
    policy = build_policy(spec, ModelSettings(hidden_sizes=(8, 4), log_std_init=-0.5), 3)
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    flat = FlatParameters(policy)
    assert flat.layout == mlp_layout(spec, ModelSettings(hidden_sizes=(8, 4)))
    views = flat.layout.views(flat.values.numpy())
    assert list(views) == list(before)
    for name, parameter in policy.named_parameters():
        torch.testing.assert_close(parameter.data, before[name])
        views[name][...] = 0.25
        assert bool((parameter == 0.25).all()), "the vector is where the module reads"
    assert sum(p.numel() for p in policy.parameters()) == flat.layout.size
    with pytest.raises(ValueError, match="flat vector"):
        flat.layout.views(np.zeros(flat.layout.size + 1, np.float32))


def test_gradients_of_plain_modules_land_in_the_flat_gradient() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    twin = copy.deepcopy(module)
    flat = FlatParameters(module)
    x = torch.randn(6, 3)
    for _ in range(2):
        flat.gradient.zero_()
        module(x).square().sum().backward()
    twin(x).square().sum().backward()
    expected = torch.cat([p.grad.flatten() for p in twin.parameters() if p.grad is not None])
    torch.testing.assert_close(flat.gradient, expected)


def test_other_precisions_are_refused_by_name() -> None:
    with pytest.raises(Refused, match=r"'weight' of the model is torch\.float64"):
        FlatParameters(torch.nn.Linear(2, 2).double())
