from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.losses.entropy import entropy_loss
from penstock.losses.policy import approx_kl, clip_fraction, clipped_surrogate, normalized
from penstock.losses.value import clipped_squared_error, squared_error


def test_surrogate_arithmetic() -> None:
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1])
    advantage = torch.tensor([2.0, -2.0, 2.0, -2.0, 3.0])
    # min(3, 2.4) = 2.4; min(-3, -2.4) = -3; min(1, 1.6) = 1; min(-1, -1.6) = -1.6; min(3.3, 3.3) = 3.3
    expected = -(2.4 - 3 + 1 - 1.6 + 3.3) / 5
    assert clipped_surrogate(ratio, advantage, 0.2).item() == pytest.approx(expected, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), clip_range=st.floats(0.01, 0.9))
def test_surrogate_is_the_papers_form_in_value_and_gradient(seed: int, clip_range: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    advantage = torch.randn(30, generator=generator, dtype=torch.float64)
    log_ratio = torch.randn(30, generator=generator, dtype=torch.float64, requires_grad=True)
    ratio = log_ratio.exp()
    paper = -torch.min(ratio * advantage, ratio.clamp(1 - clip_range, 1 + clip_range) * advantage).mean()
    ours = clipped_surrogate(ratio, advantage, clip_range)
    torch.testing.assert_close(ours, paper)
    theirs = torch.autograd.grad(paper, log_ratio, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(ours, log_ratio)[0], theirs)


def test_no_gradient_where_the_clip_bites() -> None:
    ratio = torch.tensor([1.5, 0.5, 1.5, 0.5], requires_grad=True)
    clipped_surrogate(ratio, torch.tensor([1.0, -1.0, -1.0, 1.0]), 0.2).backward()  # type: ignore[no-untyped-call]  # torch
    assert ratio.grad is not None
    assert ratio.grad.tolist() == [0.0, 0.0, 0.25, -0.25]


def test_diagnostics() -> None:
    log_ratio = torch.tensor([0.0, math.log(2.0)])
    assert approx_kl(log_ratio).item() == pytest.approx((0 + (2 - 1 - math.log(2.0))) / 2)
    assert approx_kl(torch.linspace(-3, 3, 50)).item() >= 0
    assert clip_fraction(torch.tensor([1.0, 1.3, 0.75, 1.1]), 0.2).item() == 0.5


def test_normalized_advantage() -> None:
    result = normalized(torch.tensor([1.0, 2.0, 3.0]))  # mean 2, sample deviation 1
    torch.testing.assert_close(result, torch.tensor([-1.0, 0.0, 1.0]))
    assert normalized(torch.tensor([7.0])).tolist() == [7.0]


def test_value_terms() -> None:
    value, target = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 0.0])
    assert squared_error(value, target).item() == (1 + 9) / 2
    old = torch.tensor([0.0, 2.9])
    # first: 0 + clip(1, +-0.5) = 0.5, error 1.5^2 = 2.25; second: 2.9 + 0.1 = 3, error 9
    assert clipped_squared_error(value, old, target, 0.5).item() == pytest.approx((2.25 + 9) / 2)
    assert clipped_squared_error(value, old, target, 1e9).item() == squared_error(value, target).item()


def test_entropy_term() -> None:
    assert entropy_loss(torch.tensor([1.0, 2.0])).item() == -1.5
