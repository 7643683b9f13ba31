# ruff: noqa: ARG002 reset and step have Gymnasium's signatures
"""The environment of `bench overlap`: nothing happens in it, it takes its time, and its episodes never end.

So a lane's delays are one stream from beginning to end, and a step costs next to no processor.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array
from penstock.envs.known.latency import Latency

OBSERVATION_SIZE, ACTIONS = 4, 2


class Endless(gymnasium.Env[Array, int]):
    """Always the same observation; a reward for action 1, so that a real learner has something to do."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (OBSERVATION_SIZE,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(ACTIONS)  # type: ignore[assignment] # Discrete's items are np.int64
        self._observation = np.full(OBSERVATION_SIZE, 0.5, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        return self._observation, {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        return self._observation, float(action), False, False, {}


def make_endless(mean_s: float, variance: float) -> gymnasium.Env[Any, Any]:
    """With a random sleep in each step."""
    return Latency(Endless(), mean_s, variance)
