"""Action distributions over parameter tensors: log-probability and entropy. Drawing and modes are `sampling`'s, in NumPy.

Written by hand because torch.distributions checks its arguments at every call, which in networks this small costs
more than the arithmetic. Knows no network, and no environment's bounds or shapes: actions are flat rows here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from penstock.models.tensors import Tensors

LOG_TWO_PI = math.log(2.0 * math.pi)


class Distribution(Protocol):
    """Of the actions in N rows of states."""

    def log_prob(self, action: Any) -> Tensor:
        """[rows], of a tensor of actions, or of one for each part of an action (`tensors.Tensors`)."""

    def entropy(self) -> Tensor:
        """[rows]."""


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


class MultiCategorical:
    """Several independent choices; `logits` [rows, sum of counts] lie side by side."""

    def __init__(self, logits: Tensor, counts: Sequence[int]) -> None:
        edges = [0, *accumulate(counts)]
        self._choices = [Categorical(logits[:, first:end]) for first, end in pairwise(edges)]

    def log_prob(self, action: Tensor) -> Tensor:
        """[rows], for whole numbers [rows, choices]."""
        parts = [choice.log_prob(action[:, index]) for index, choice in enumerate(self._choices)]
        return torch.stack(parts, 1).sum(1)

    def entropy(self) -> Tensor:
        return torch.stack([choice.entropy() for choice in self._choices], 1).sum(1)


class Joint:
    """Independent parts of one action, by the names of their places."""

    def __init__(self, parts: Mapping[str, Categorical | MultiCategorical | DiagonalGaussian]) -> None:
        self._parts = parts

    def log_prob(self, action: Tensors) -> Tensor:
        """[rows], for a tensor of each part."""
        assert isinstance(action, dict)
        return torch.stack([part.log_prob(action[name]) for name, part in self._parts.items()], 1).sum(1)

    def entropy(self) -> Tensor:
        return torch.stack([part.entropy() for part in self._parts.values()], 1).sum(1)
