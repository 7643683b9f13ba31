"""Drawing actions, in NumPy, from a distribution's parameters and given noise. Knows no network and no tensor library.

Every actor draws here, whatever computed its parameters, so the same noise means the same action. Parameters come with
one row per number and one column per lane, [n, B]: reductions over n then run along the lanes.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Protocol

import numpy as np

from penstock.core.specs import (
    Array,
    BoxSpec,
    CompositeSpec,
    DiscreteSpec,
    EnvironmentSpec,
    Leaf,
    MultiDiscreteSpec,
    leaves,
)
from penstock.models.features import parameters_of

FORBIDDEN = np.float32(-1e8)
"""The logit of a choice that a mask forbids: its probability is exactly 0, and no sum becomes infinite or NaN."""

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Sampler(Protocol):
    """How one kind of action is drawn."""

    def noise(self, generator: Any, steps: int, lanes: int) -> Array: ...

    def draw(self, parameters: Array, noise: Array) -> tuple[Array, Array]:
        """Actions [B, ...] and their log-probabilities [B]."""

    def mode(self, parameters: Array) -> Array: ...

    def to_environment(self, action: Array) -> Array: ...

    def set_log_std(self, log_std: Array) -> None:
        """Logarithms of deviations, [n, 1] the same for every lane, or [n, B]; a row for each number drawn from a normal."""


class CategoricalSampler:
    """By the inverse of the cumulative distribution, from one uniform number per lane."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._lanes = np.arange(0)

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        uniform: Array = generator.random((steps, lanes), dtype=np.float32)
        return uniform

    def draw(self, parameters: Array, noise: Array) -> tuple[Array, Array]:
        lanes = parameters.shape[1]
        if len(self._lanes) != lanes:
            self._lanes = np.arange(lanes)
        shifted = parameters - np.maximum.reduce(parameters, 0)
        below = np.add.accumulate(np.exp(shifted), 0)
        total = below[-1]
        # u < 1, but u * total may round to total: only the first n - 1 sums are asked, so the last choice takes it
        passed = below[:-1] <= noise * total
        action = passed[0].astype(np.int64) if len(passed) == 1 else np.add.reduce(passed, 0, dtype=np.int64)
        return action, shifted.ravel().take(action * lanes + self._lanes) - np.log(total)

    def mode(self, parameters: Array) -> Array:
        best: Array = np.argmax(parameters, 0)
        return best

    def to_environment(self, action: Array) -> Array:
        shifted: Array = action + self._start
        return shifted

    def set_log_std(self, log_std: Array) -> None:
        """Choices have no deviation."""


class MultiCategoricalSampler:
    """Several choices, each from a uniform number of its own."""

    def __init__(self, spec: MultiDiscreteSpec) -> None:
        self.spec = spec
        self._choices = [CategoricalSampler(0) for _ in spec.counts]
        self._edges = list(itertools.accumulate(spec.counts))[:-1]
        self._start = np.array(spec.start, np.int64).reshape(spec.shape)

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        uniform: Array = generator.random((steps, lanes, len(self._choices)), dtype=np.float32)
        return uniform

    def draw(self, parameters: Array, noise: Array) -> tuple[Array, Array]:
        parts = zip(self._choices, np.split(parameters, self._edges), noise.T, strict=True)
        drawn = [choice.draw(part, uniform) for choice, part, uniform in parts]
        log_prob = np.add.reduce([log_prob for _, log_prob in drawn], 0)
        return self._shaped([action for action, _ in drawn]), log_prob

    def mode(self, parameters: Array) -> Array:
        return self._shaped([np.argmax(part, 0) for part in np.split(parameters, self._edges)])

    def to_environment(self, action: Array) -> Array:
        shifted: Array = action + self._start
        return shifted

    def set_log_std(self, log_std: Array) -> None:
        """Choices have no deviation."""

    def _shaped(self, actions: list[Array]) -> Array:
        return np.stack(actions, 1).reshape(-1, *self.spec.shape)


class GaussianSampler:
    """mean + deviation * noise, noise standard normal. The deviation is set whenever weights are loaded."""

    def __init__(self, spec: BoxSpec) -> None:
        self.spec = spec
        self.low, self.high = spec.bounds
        self.set_log_std(np.zeros((spec.size, 1), np.float32))

    def set_log_std(self, log_std: Array) -> None:
        self._deviation = np.exp(log_std)
        self._constant = log_std.sum(0) + np.float32(HALF_LOG_TWO_PI * self.spec.size)

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        normal: Array = generator.standard_normal((steps, lanes, self.spec.size), dtype=np.float32)
        return normal

    def draw(self, parameters: Array, noise: Array) -> tuple[Array, Array]:
        z = noise.T
        action = (parameters + self._deviation * z).T
        log_prob = np.float32(-0.5) * np.add.reduce(z * z, 0) - self._constant
        return self._shaped(action), log_prob

    def mode(self, parameters: Array) -> Array:
        return self._shaped(parameters.T)

    def to_environment(self, action: Array) -> Array:
        return np.clip(action, self.low, self.high).astype(self.spec.dtype, copy=False)

    def _shaped(self, action: Array) -> Array:
        return np.ascontiguousarray(action).reshape(-1, *self.spec.shape)


class JointSampler:
    """Independent parts, each with noise of its own; noise and actions are structured rows."""

    def __init__(self, spec: CompositeSpec) -> None:
        self.spec = spec
        self._parts = [(place, leaf_sampler(place.leaf)) for place in leaves(spec)]
        self._edges = list(itertools.accumulate(parameters_of(place.leaf) for place, _ in self._parts))[:-1]
        self._boxes = [(sampler, sampler.spec.size) for _, sampler in self._parts if isinstance(sampler, GaussianSampler)]

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        drawn = {place.name: sampler.noise(generator, steps, lanes) for place, sampler in self._parts}
        rows = np.zeros((steps, lanes), [(name, np.float32, part.shape[2:]) for name, part in drawn.items()])
        for name, part in drawn.items():
            rows[name] = part
        return rows

    def draw(self, parameters: Array, noise: Array) -> tuple[Array, Array]:
        action = np.zeros(len(noise), self.spec.dtype)
        log_prob = np.zeros(len(noise), np.float32)
        for (place, sampler), part in zip(self._parts, np.split(parameters, self._edges), strict=True):
            place.of(action)[...], part_log_prob = sampler.draw(part, noise[place.name])
            log_prob += part_log_prob
        return action, log_prob

    def mode(self, parameters: Array) -> Array:
        action = np.zeros(parameters.shape[1], self.spec.dtype)
        for (place, sampler), part in zip(self._parts, np.split(parameters, self._edges), strict=True):
            place.of(action)[...] = sampler.mode(part)
        return action

    def to_environment(self, action: Array) -> Array:
        given = np.zeros(action.shape, self.spec.dtype)
        for place, sampler in self._parts:
            place.of(given)[...] = sampler.to_environment(place.of(action))
        return given

    def set_log_std(self, log_std: Array) -> None:
        first = 0
        for sampler, size in self._boxes:
            sampler.set_log_std(log_std[first : first + size])
            first += size


LeafSampler = CategoricalSampler | MultiCategoricalSampler | GaussianSampler


def leaf_sampler(leaf: Leaf) -> LeafSampler:
    match leaf:
        case BoxSpec():
            return GaussianSampler(leaf)
        case DiscreteSpec():
            return CategoricalSampler(leaf.start)
        case MultiDiscreteSpec():
            return MultiCategoricalSampler(leaf)
        case _:
            raise TypeError(f"a mask is no action: {leaf}")


def sampler_for(spec: EnvironmentSpec) -> Sampler:
    return JointSampler(spec.action) if isinstance(spec.action, CompositeSpec) else leaf_sampler(spec.action)
