"""Rows of observations and actions as tensors: one, or a dict of one for each part. Knows neither what they mean nor models."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from penstock.core.specs import Array, parts_of

Tensors = Tensor | dict[str, Tensor]


def tensors_of(rows: Array) -> Tensors:
    """Views of these rows: a tensor where they are plain, else one for each part, by the name of its place."""
    if rows.dtype.names is None:
        return torch.from_numpy(rows)
    return {name: torch.from_numpy(part) for name, part in parts_of(rows)}


def each(function: Callable[[Tensor], Tensor], tensors: Tensors) -> Tensors:
    """The function of every part."""
    if isinstance(tensors, Tensor):
        return function(tensors)
    return {name: function(part) for name, part in tensors.items()}
