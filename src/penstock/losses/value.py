"""Value terms. Knows no network and no return estimator.

Legend: V the value now, V_old the value when the data was collected, G the return aimed at, epsilon the clip range.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import mse_loss


def squared_error(value: Tensor, target: Tensor) -> Tensor:
    """Mean squared error, without the factor 1/2 (Schulman et al. 2017, arXiv:1707.06347, L^VF of equation 9).

    L = mean((V - G)^2)
    """
    return mse_loss(value, target)


def clipped_squared_error(value: Tensor, old_value: Tensor, target: Tensor, clip_range: float) -> Tensor:
    """Squared error of a value that may leave the collected one by epsilon at most, as SB3's `clip_range_vf`.

    L = mean((V_old + clip(V - V_old, -epsilon, epsilon) - G)^2)

    OpenAI baselines take the larger of this and the unclipped error; SB3, whose setting this is, does not.
    """
    return mse_loss(old_value + (value - old_value).clamp(-clip_range, clip_range), target)


def explained_variance(value: Tensor, target: Tensor) -> float:
    """1 - Var(G - V) / Var(G): 1 is perfect, 0 no better than a constant; NaN where the returns do not vary (a diagnostic)."""
    variance = target.var(correction=0).item() if len(target) else 0.0
    return 1.0 - (target - value).var(correction=0).item() / variance if variance > 0 else math.nan
