"""Adam over one flat vector, and the norm of one flat gradient. Knows no loss and no policy.

torch.optim.Adam is not used because its constructor imports torch._dynamo, which costs a second at start.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
        """Move `values` against the gradient."""
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
        """Everything that the next step depends on besides the values, by name; the tensors themselves."""
        return {"step": self.step_count, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a `state()` of before."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


def clip_norm(gradient: Tensor, norm: float, greatest: float) -> None:
    """Scale the gradient to norm `greatest` at most (Pascanu et al. 2013), as torch's clip_grad_norm_ does."""
    scale = greatest / (norm + 1e-6)
    if scale < 1.0:
        gradient.mul_(scale)
