# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""Values that can be written down. A learner that ends elsewhere adds, drops or discounts something wrongly.

Both end by termination: a value past the end that is bootstrapped, or taken from the next episode, shows at once.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array


class ConstantReward(gymnasium.Env[Array, int]):
    """One step, one reward, the end: V = reward, whatever gamma."""

    def __init__(self, reward: float = 1.0) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._reward = reward

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        return np.ones(1, np.float32), self._reward, True, False, {}

    @staticmethod
    def value(reward: float = 1.0) -> float:
        return reward


class TwoState(gymnasium.Env[Array, int]):
    """First state, no reward; second state, reward 1, the end: V(first) = gamma, V(second) = 1."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._second = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._second = False
        return self._observation(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        ends, self._second = self._second, True
        return self._observation(), float(ends), ends, False, {}

    def _observation(self) -> Array:
        return np.array([1.0 if self._second else -1.0], np.float32)

    @staticmethod
    def value(observation: Array, gamma: float) -> float:
        return 1.0 if observation[0] > 0 else gamma
