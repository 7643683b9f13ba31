"""A module's trainable parameters as one flat vector, and their gradients as another.

With both flat, publishing weights is one copy, clipping is one norm and the optimiser is one kernel. What else a forward
depends on (frozen parameters, buffers) lies behind the trainable ones, so that it is published, saved and loaded with them.
Knows no policy.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from penstock.core.errors import Refused
from penstock.models.layout import ParameterLayout
from penstock.models.mlp import Mlp


class FlatParameters:
    """Moves a module's numbers into one vector, `published`; the trainable ones, in definition order, are its head, `values`.

    The `.grad` of trainable parameters are views of `gradient`: from here on zero it with `gradient.zero_()`, as a `.grad`
    set to None would leave the vector.
    """

    def __init__(self, module: nn.Module) -> None:
        trainable = [(name, tensor) for name, tensor in module.named_parameters() if tensor.requires_grad]
        named = [*trainable, *_constants(module)]
        for name, tensor in named:
            if tensor.dtype != torch.float32:
                raise Refused(f"'{name}' of the model is {tensor.dtype}; weights travel as float32: convert the model")
        self.layout = ParameterLayout.of((name, tuple(tensor.shape)) for name, tensor in named)
        num_trainable = sum(tensor.numel() for _, tensor in trainable)
        device = named[0][1].device if named else torch.device("cpu")
        self.published: Tensor = torch.empty(self.layout.size, device=device)
        self.values: Tensor = self.published[:num_trainable]
        self.gradient: Tensor = torch.zeros(num_trainable, device=device)
        for (_, tensor), place in zip(named, self.layout.places, strict=True):
            here = slice(place.offset, place.offset + place.size)
            home = self.published[here].view(place.shape)
            home.copy_(tensor.data)
            tensor.data = home
            if place.offset < num_trainable and tensor.requires_grad:
                tensor.grad = self.gradient[here].view(place.shape)
        for part in module.modules():
            if isinstance(part, Mlp):
                part.settle()


def _constants(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Frozen parameters and buffers that count as the module's state. Whole numbers are left out: they follow from the
    seed that the module is built with, wherever it is built."""
    frozen: list[tuple[str, Tensor]] = [(n, p) for n, p in module.named_parameters() if not p.requires_grad]
    kept = module.state_dict(keep_vars=True)
    buffers = [(name, buffer) for name, buffer in module.named_buffers() if name in kept]
    return [*frozen, *((name, buffer) for name, buffer in buffers if buffer.is_floating_point())]
