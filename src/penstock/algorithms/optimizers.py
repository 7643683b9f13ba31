"""Optimisers over one flat vector, and the norm of one flat gradient. They know no loss and no policy.

torch.optim is not used because its constructors import torch._dynamo, which costs a second at start.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from penstock.algorithms.settings import LearnerSettings


class Optimizer(Protocol):
    """Moves one vector, `values`, step by step."""

    values: Tensor

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        """Move `values` against the gradient."""

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on besides the values, by name; the tensors themselves."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a `state()` of before."""


class Adam:
    """Kingma and Ba 2014 (arXiv:1412.6980), algorithm 1, in torch's fused kernel: one pass over the vector."""

    def __init__(self, values: Tensor, eps: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.values = values
        self.eps = eps
        self.betas = betas
        self.step_count = torch.zeros((), dtype=torch.float32)
        self.exp_avg = torch.zeros_like(values)
        self.exp_avg_sq = torch.zeros_like(values)

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        self.step_count += 1
        torch._fused_adam_(
            [self.values],
            [gradient],
            [self.exp_avg],
            [self.exp_avg_sq],
            [],
            [self.step_count],
            lr=learning_rate,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        return {"step": self.step_count, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class RMSprop:
    """Tieleman and Hinton 2012. `as_tensorflow`: with epsilon inside the root and a mean square that begins at 1, so that the
    first steps are small; A3C's and IMPALA's results were got with that."""

    def __init__(self, values: Tensor, alpha: float, eps: float, *, as_tensorflow: bool = False) -> None:
        self.values, self.alpha, self.eps, self.as_tensorflow = values, alpha, eps, as_tensorflow
        self.square_avg = torch.ones_like(values) if as_tensorflow else torch.zeros_like(values)

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        self.square_avg.mul_(self.alpha).addcmul_(gradient, gradient, value=1 - self.alpha)
        root = self.square_avg.add(self.eps).sqrt_() if self.as_tensorflow else self.square_avg.sqrt().add_(self.eps)
        self.values.addcdiv_(gradient, root, value=-learning_rate)

    def state(self) -> dict[str, Tensor]:
        return {"square_avg": self.square_avg}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.square_avg.copy_(state["square_avg"])


class SGD:
    """Straight down the gradient."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        self.values.add_(gradient, alpha=-learning_rate)

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        del state


def optimizer_for(values: Tensor, settings: LearnerSettings) -> Optimizer:
    """The one that the settings name."""
    match settings.optimizer:
        case "adam":
            return Adam(values, settings.adam_eps)
        case "rmsprop":
            return RMSprop(values, settings.rms_prop_alpha, settings.rms_prop_eps)
        case "rmsprop_tf":
            return RMSprop(values, settings.rms_prop_alpha, settings.rms_prop_eps, as_tensorflow=True)
        case "sgd":
            return SGD(values)


def clip_norm(gradient: Tensor, norm: float, greatest: float) -> None:
    """Scale the gradient to norm `greatest` at most (Pascanu et al. 2013), as torch's clip_grad_norm_ does."""
    scale = greatest / (norm + 1e-6)
    if scale < 1.0:
        gradient.mul_(scale)
