"""Environments that take their time: any environment, with a random sleep in each step. It costs no processor.

A step takes mean_s * factor * X seconds, X Gamma distributed with mean 1 and the variance given. Draws belong to the
episode's seed and the step, so a lane is slow at the same steps wherever and whenever it runs. Resets take no time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gymnasium

from penstock.core.seeds import Purpose, stream

_DRAWN_AT_ONCE = 64


class Latency(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`factor` makes one environment slower than others with the same draws."""

    def __init__(self, env: gymnasium.Env[Any, Any], mean_s: float = 0.005, variance: float = 1.0, factor: float = 1.0) -> None:
        if mean_s < 0 or variance < 0 or factor < 0:
            raise ValueError("mean_s, variance and factor must be 0 or more")
        super().__init__(env)
        self._mean_s, self._variance, self._factor = mean_s, variance, factor
        self._delays_s = self._begin(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self._delays_s = self._begin(seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        outcome = self.env.step(action)
        time.sleep(self.next_delay_s())
        return outcome

    def next_delay_s(self) -> float:
        """What the next step will take."""
        return next(self._delays_s)

    def _begin(self, seed: int) -> Iterator[float]:
        return delays_s(seed, self._mean_s * self._factor, self._variance)


def delays_s(seed: int, mean_s: float, variance: float) -> Iterator[float]:
    """What step after step takes in an episode of this seed, without end. Drawn in batches, since a single draw costs as much
    as a small environment."""
    random = stream(seed, Purpose.DELAY)
    while True:
        if variance == 0:
            yield mean_s
        else:
            yield from (random.gamma(1.0 / variance, variance, _DRAWN_AT_ONCE) * mean_s).tolist()


def make_latency(
    around: str = "CartPole-v1", mean_s: float = 0.005, variance: float = 1.0, factor: float = 1.0, **arguments: Any
) -> gymnasium.Env[Any, Any]:
    """Any registered environment, slowed down; further arguments are its own."""
    environment = gymnasium.make(around, disable_env_checker=True, **arguments)
    return Latency(environment, mean_s, variance, factor)


def make_latency_cartpole(mean_s: float = 0.005, variance: float = 1.0, factor: float = 1.0) -> gymnasium.Env[Any, Any]:
    """CartPole with a slow step, to show what waiting costs."""
    return make_latency("CartPole-v1", mean_s, variance, factor)
