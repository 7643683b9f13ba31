# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""A continuous action with one right answer. Bounds that are not symmetric show a wrong shift, scale or clip."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array

LOW, HIGH = -1.0, 3.0


class Target(gymnasium.Env[Array, Array]):
    """One step: sees x in [-1, 1], the right action is 1 + x in bounds [-1, 3], the reward minus the squared miss."""

    best_return = 0.0

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Box(LOW, HIGH, (1,), np.float32)
        self._x: Array = np.zeros(1, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._x = self.np_random.uniform(-1.0, 1.0, 1).astype(np.float32)
        return self._x.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is outside {LOW}..{HIGH}")
        miss = float(action[0] - self.best_action(self._x)[0])
        return self._x.copy(), -miss * miss, True, False, {}

    @staticmethod
    def best_action(observation: Array) -> Array:
        return np.asarray(1.0 + observation, np.float32)
