"""What networks make of the parts of an observation before they compute: numbers. The tensor twin of `features`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec, Leaf, MaskSpec, MultiDiscreteSpec
from penstock.models.tensors import Tensors


def columns_tensor(leaf: Leaf, rows: Tensor) -> Tensor:
    """A leaf's rows as columns [rows, n], as `features.write_columns` writes them."""
    if isinstance(leaf, MultiDiscreteSpec):
        numbers = rows.reshape(len(rows), -1).long().unbind(1)
        parts = [(n[:, None] if count == 2 else one_hot(n, count)) for n, count in zip(numbers, leaf.counts, strict=True)]
        return torch.cat(parts, 1).float()
    return readable_leaf(leaf, rows).reshape(len(rows), -1)


def readable_leaf(leaf: Leaf, rows: Tensor) -> Tensor:
    """A Box in its own shape, whole numbers one-hot, as floating-point rows."""
    match leaf:
        case BoxSpec() | MaskSpec():
            return rows.float()
        case DiscreteSpec(n):
            return one_hot(rows.long(), n).float()
        case MultiDiscreteSpec():
            return columns_tensor(leaf, rows)


def readable(spec: EnvironmentSpec, seen: Tensors) -> Tensors:
    """What a network of a person's own is given: one tensor, or a dict of one for each part of a Dict or Tuple."""
    if isinstance(seen, Tensor):
        return readable_leaf(spec.seen_places[0].leaf, seen)
    prefix = "observation/" if spec.masked else ""
    return {place.name.removeprefix(prefix): readable_leaf(place.leaf, seen[place.name]) for place in spec.seen_places}


def flat_columns(spec: EnvironmentSpec, seen: Tensors) -> Tensor:
    """Everything that is seen, [rows, columns]."""
    if isinstance(seen, Tensor):
        return columns_tensor(spec.seen_places[0].leaf, seen)
    return torch.cat([columns_tensor(place.leaf, seen[place.name]) for place in spec.seen_places], 1)
