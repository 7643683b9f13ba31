"""A module once more: the same numbers, gradients of its own. So several threads can differentiate it at the same time.

Knows no loss, no thread and no optimiser.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from penstock.models.flat import FlatParameters
from penstock.models.mlp import Mlp

Module = TypeVar("Module", bound=nn.Module)


def twin_of(module: Module, flat: FlatParameters) -> tuple[Module, Tensor]:
    """A copy whose parameters and buffers lie where the module's lie, and the flat gradient that its backward passes fill.

    `flat` must be the module's: what moves its numbers moves the twin's.
    """
    twin = copy.deepcopy(module)
    gradient = torch.zeros_like(flat.values)
    originals = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    places = {place.name: place for place in flat.layout.places}
    for name, tensor in [*twin.named_parameters(), *twin.named_buffers()]:
        tensor.data = originals[name].data
        if tensor.requires_grad:
            place = places[name]
            tensor.grad = gradient[place.offset : place.offset + place.size].view(place.shape)
    for part in twin.modules():
        if isinstance(part, Mlp):
            part.settle()
    return twin, gradient
