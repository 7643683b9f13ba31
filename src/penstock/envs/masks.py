"""Which actions an environment allows next: `info["action_mask"]`, or its method `action_masks()`. Knows no policy.

A mask is one flag for each choice: n of a Discrete action; those of all choices of a MultiDiscrete one, one after the other
(a tuple of masks, or a matrix, is laid out so).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from penstock.core.errors import Refused
from penstock.core.specs import (
    MASK,
    OBSERVED,
    Array,
    CompositeSpec,
    DiscreteSpec,
    EnvironmentSpec,
    MaskSpec,
    MultiDiscreteSpec,
)

_METHOD = "action_masks"


def offers_masks(environment: Any, info: Mapping[str, Any]) -> bool:
    """Whether this environment, just reset, says what it allows."""
    return MASK in info or environment.has_wrapper_attr(_METHOD)


def with_mask(spec: EnvironmentSpec) -> EnvironmentSpec:
    """The same environment, whose observations carry masks."""
    if not isinstance(spec.action, DiscreteSpec | MultiDiscreteSpec):
        raise Refused(f"environment '{spec.id}' masks actions that are not Discrete or MultiDiscrete; leave out the mask")
    parts = (spec.observation, MaskSpec(sum(_counts(spec.action))))
    return replace(spec, observation=CompositeSpec("masked", (OBSERVED, MASK), parts))


def masked(observation: Any, info: Mapping[str, Any], environment: Any, spec: EnvironmentSpec, *, over: bool) -> dict[str, Any]:
    """An observation beside the mask that goes with it; once the episode is over, nothing need be allowed."""
    found = info[MASK] if MASK in info else environment.get_wrapper_attr(_METHOD)()
    counts = _counts(spec.action)
    flat = np.concatenate([np.ravel(part) for part in found]) if isinstance(found, tuple | list) else np.ravel(found)
    flags = flat.astype(np.bool_)
    if len(flags) != sum(counts):
        raise ValueError(f"action mask of {len(flags)} flags, expected {sum(counts)}")
    if not all(flags[first:end].any() for first, end in _ranges(counts)):
        if not over:
            raise ValueError("the action mask allows no action")
        flags[:] = True
    return {OBSERVED: observation, MASK: flags}


def random_action(spec: EnvironmentSpec, flags: Array, random: np.random.Generator) -> Any:
    """An action that the mask allows, as the environment takes it."""
    chosen = [int(random.choice(np.flatnonzero(flags[first:end]))) for first, end in _ranges(_counts(spec.action))]
    if isinstance(spec.action, DiscreteSpec):
        return chosen[0] + spec.action.start
    assert isinstance(spec.action, MultiDiscreteSpec)
    return (np.array(chosen) + spec.action.start).reshape(spec.action.shape)


def _counts(action: Any) -> tuple[int, ...]:
    return (action.n,) if isinstance(action, DiscreteSpec) else tuple(action.counts)


def _ranges(counts: tuple[int, ...]) -> Any:
    return pairwise(accumulate(counts, initial=0))
