"""Policy terms of policy-gradient losses, and how far a policy has moved. Knows no distribution and no network.

Legend: rho = pi(a|s) / pi_old(a|s), the probability ratio; A the advantage; epsilon the clip range.
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(ratio: Tensor, advantage: Tensor, clip_range: float) -> Tensor:
    """PPO's clipped surrogate, to be minimised (Schulman et al. 2017, arXiv:1707.06347, equation 7).

    L = -mean(min(rho A, clip(rho, 1 - epsilon, 1 + epsilon) A)) = -mean(min(rho A, A + epsilon |A|))

    The second form, which is computed, holds because clipping only ever lowers the minimum on the side of A's sign.
    """
    return torch.minimum(ratio * advantage, torch.add(advantage, advantage.abs(), alpha=clip_range)).mean().neg()


def decoupled_surrogate(ratio: Tensor, advantage: Tensor, clip_range: float, weight: Tensor) -> Tensor:
    """The clipped surrogate around a proximal policy that is not the one that acted (Hilton et al. 2021, arXiv:2110.00641,
    section 3), to be minimised.

    L = -mean(w min(rho A, clip(rho, 1 - epsilon, 1 + epsilon) A)),    rho = pi / pi_prox,    w = pi_prox / pi_behaviour
    """
    surrogate = torch.minimum(ratio * advantage, torch.add(advantage, advantage.abs(), alpha=clip_range))
    return (weight * surrogate).mean().neg()


def policy_gradient(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """The plain policy gradient's loss (Williams 1992; Mnih et al. 2016, arXiv:1602.01783, algorithm S3).

    L = -mean(A log pi(a|s))
    """
    return (advantage * log_prob).mean().neg()


def approx_kl(log_ratio: Tensor) -> Tensor:
    """Unbiased, never negative estimate of KL(pi_old || pi) from samples of pi_old (Schulman 2020, estimator k3).

    k3 = mean((rho - 1) - log rho)
    """
    return (log_ratio.expm1() - log_ratio).mean()


def clip_fraction(ratio: Tensor, clip_range: float) -> Tensor:
    """Share of rows whose ratio lies outside the clip range (not an equation of the paper: a diagnostic)."""
    return ((ratio - 1.0).abs() > clip_range).float().mean()


def normalized(advantage: Tensor) -> Tensor:
    """Advantages with mean 0 and deviation 1 over the rows given; a single row is returned as it is.

    Andrychowicz et al. 2020 (arXiv:2006.05990), choice C67; the deviation is the sample's (n - 1).
    """
    if len(advantage) < 2:
        return advantage
    deviation, mean = torch.std_mean(advantage)
    return (advantage - mean) / (deviation + 1e-8)
