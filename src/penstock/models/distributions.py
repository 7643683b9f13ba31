"""Action distributions over parameter tensors: log-probability, entropy, mode. Drawing is `sampling`'s, in NumPy.

Written by hand because torch.distributions checks its arguments at every call, which in networks this small costs
more than the arithmetic. Knows no network, and no environment's bounds or shapes: actions are flat rows here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

LOG_TWO_PI = math.log(2.0 * math.pi)


class Categorical:
    """One of n choices; `logits` is [rows, n], finite, not necessarily normalised."""

    def __init__(self, logits: Tensor) -> None:
        self._log_probs = torch.log_softmax(logits, 1)

    def log_prob(self, action: Tensor) -> Tensor:
        """[rows], for whole numbers [rows]."""
        return nll_loss(self._log_probs, action, reduction="none").neg()

    def entropy(self) -> Tensor:
        """[rows]."""
        return (self._log_probs.exp() * self._log_probs).sum(1).neg()

    def mode(self) -> Tensor:
        return self._log_probs.argmax(1)


class DiagonalGaussian:
    """Independent normals; `mean` is [rows, n], `log_std` [n] (the same for every state) or [rows, n]."""

    def __init__(self, mean: Tensor, log_std: Tensor) -> None:
        self.mean = mean
        self.log_std = log_std

    def log_prob(self, action: Tensor) -> Tensor:
        """[rows], for actions [rows, n]: sum of -z^2 / 2 - log sigma - log(2 pi) / 2."""
        z = (action - self.mean) * self.log_std.neg().exp()
        return (z * z).sum(1).mul(-0.5) - (self.log_std.sum(-1) + 0.5 * LOG_TWO_PI * self.mean.shape[1])

    def entropy(self) -> Tensor:
        """[rows]: sum of log sigma + (1 + log(2 pi)) / 2."""
        total = self.log_std.sum(-1) + 0.5 * (1.0 + LOG_TWO_PI) * self.mean.shape[1]
        return total.expand(len(self.mean))

    def mode(self) -> Tensor:
        return self.mean


Distribution = Categorical | DiagonalGaussian
