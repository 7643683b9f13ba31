# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""A task without end that a clock cuts: a learner that takes the cut for an end learns too small a value."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array


class TimeLimit(gymnasium.Env[Array, int]):
    """The same reward for ever, truncated every few steps, with nothing in the observation that tells when.

    V = reward / (1 - gamma). Taking truncation for termination gives a mean below `mistaken_value`, the truncated sum.
    """

    def __init__(self, reward: float = 1.0, episode_steps: int = 5) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._reward, self._episode_steps, self._step = reward, episode_steps, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return np.ones(1, np.float32), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return np.ones(1, np.float32), self._reward, False, self._step >= self._episode_steps, {}

    @staticmethod
    def value(gamma: float, reward: float = 1.0) -> float:
        return reward / (1.0 - gamma)

    @staticmethod
    def mistaken_value(gamma: float, reward: float = 1.0, episode_steps: int = 5) -> float:
        return float(reward * (1.0 - gamma**episode_steps) / (1.0 - gamma))
