"""Columns: how many numbers a row becomes for a multilayer perceptron, and how many a distribution over actions takes.

A Box is flattened, a whole number one-hot, except yes or no, which is one column. Knows no tensor library and no network.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.core.specs import Array, BoxSpec, DiscreteSpec, EnvironmentSpec, Leaf, MaskSpec, MultiDiscreteSpec, Place, leaves


def columns_of(leaf: Leaf) -> int:
    """Columns that a leaf of an observation becomes."""
    match leaf:
        case BoxSpec():
            return leaf.size
        case DiscreteSpec(n):
            return n
        case MultiDiscreteSpec(counts):
            return sum(1 if count == 2 else count for count in counts)
        case MaskSpec():
            return 0


def write_columns(leaf: Leaf, rows: Array, out: Array) -> None:
    """A leaf's rows [B, ...] as columns [B, n]."""
    match leaf:
        case BoxSpec():
            out[...] = rows.reshape(out.shape)
        case DiscreteSpec():
            out[...] = 0.0
            out[np.arange(len(rows)), rows] = 1.0
        case MultiDiscreteSpec(counts):
            flat, first = rows.reshape(len(rows), -1), 0
            for number, count in enumerate(counts):
                width = 1 if count == 2 else count
                chosen = out[:, first : first + width]
                chosen[...] = flat[:, number : number + 1] == (1 if count == 2 else np.arange(count))
                first += width


def placed_columns(spec: EnvironmentSpec) -> Iterator[tuple[Place, slice]]:
    """What a network sees, leaf by leaf, and which columns it becomes."""
    first = 0
    for place in spec.seen_places:
        width = columns_of(place.leaf)
        yield place, slice(first, first + width)
        first += width


def observation_size(spec: EnvironmentSpec) -> int:
    """Columns of the flat observation that the built-in policy sees."""
    return sum(columns_of(place.leaf) for place in spec.seen_places)


def parameters_of(leaf: Leaf) -> int:
    """Columns of the distribution's parameters: one per number of a Box (its mean), one per choice (its logit)."""
    match leaf:
        case BoxSpec():
            return leaf.size
        case DiscreteSpec(n):
            return n
        case MultiDiscreteSpec(counts):
            return sum(counts)
        case MaskSpec():
            return 0


def action_size(spec: EnvironmentSpec) -> int:
    """Columns of the parameters of the distribution over actions."""
    return sum(parameters_of(place.leaf) for place in leaves(spec.action))


def box_size(spec: EnvironmentSpec) -> int:
    """Numbers of an action that are drawn from normals: each has a deviation."""
    return sum(place.leaf.size for place in leaves(spec.action) if isinstance(place.leaf, BoxSpec))
