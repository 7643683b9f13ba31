"""Drawing actions, in NumPy, from a distribution's parameters and given noise. Knows no network and no tensor library.

Every actor draws here, whatever computed its parameters, so the same noise means the same action. Parameters come with
one row per number and one column per lane, [n, B]: reductions over n then run along the lanes.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from penstock.core.specs import Array, BoxSpec, DiscreteSpec, EnvironmentSpec

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Sampler(Protocol):
    """How one kind of action is drawn."""

    def noise(self, generator: Any, steps: int, lanes: int) -> Array: ...

    def draw(self, parameters: Array, noise: Array) -> tuple[Array, Array]:
        """Actions [B, ...] and their log-probabilities [B]."""

    def mode(self, parameters: Array) -> Array: ...

    def to_environment(self, action: Array) -> Array: ...


class CategoricalSampler:
    """By the inverse of the cumulative distribution, from one uniform number per lane."""

    def __init__(self, spec: DiscreteSpec) -> None:
        self.spec = spec
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
        shifted: Array = action + self.spec.start
        return shifted


class GaussianSampler:
    """mean + deviation * noise, noise standard normal. `log_std` is set whenever weights are loaded."""

    def __init__(self, spec: BoxSpec) -> None:
        self.spec = spec
        self.low, self.high = spec.bounds
        self.set_log_std(np.zeros((spec.size, 1), np.float32))

    def set_log_std(self, log_std: Array) -> None:
        """[n, 1], the same for every lane, or [n, B]."""
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


def sampler_for(spec: EnvironmentSpec) -> CategoricalSampler | GaussianSampler:
    return GaussianSampler(spec.action) if isinstance(spec.action, BoxSpec) else CategoricalSampler(spec.action)
