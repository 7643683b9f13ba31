"""A module's trainable parameters as one flat vector, and their gradients as another.

With both flat, publishing weights is one copy, clipping is one norm and the optimiser is one kernel. Knows no policy.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from penstock.core.errors import Refused
from penstock.models.layout import ParameterLayout
from penstock.models.mlp import Mlp


class FlatParameters:
    """Moves a module's trainable parameters, in definition order, into `values`; their `.grad` are views of `gradient`.

    From here on zero gradients with `gradient.zero_()`: a `.grad` set to None would leave the vector.
    """

    def __init__(self, module: nn.Module) -> None:
        named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
        for name, parameter in named:
            if parameter.dtype != torch.float32:
                raise Refused(f"parameter '{name}' is {parameter.dtype}; weights travel as float32: convert the model")
        self.layout = ParameterLayout.of((name, tuple(parameter.shape)) for name, parameter in named)
        device = named[0][1].device if named else torch.device("cpu")
        self.values: Tensor = torch.empty(self.layout.size, device=device)
        self.gradient: Tensor = torch.zeros(self.layout.size, device=device)
        for (_, parameter), place in zip(named, self.layout.places, strict=True):
            here = slice(place.offset, place.offset + place.size)
            home = self.values[here].view(place.shape)
            home.copy_(parameter.data)
            parameter.data = home
            parameter.grad = self.gradient[here].view(place.shape)
        for part in module.modules():
            if isinstance(part, Mlp):
                part.settle()
