# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""Which action earned the reward. Rows of observation, action and reward that slip against each other learn nothing here."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array


class MatchCue(gymnasium.Env[Array, int]):
    """One step: the cue is -1 or +1, the right action 0 or 1. Best return 1; a policy that cannot see the cue gets 0."""

    best_return = 1.0

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._cue = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._cue = int(self.np_random.integers(2))
        return self._observation(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        return self._observation(), 1.0 if action == self._cue else -1.0, True, False, {}

    def _observation(self) -> Array:
        return np.array([2 * self._cue - 1], np.float32)

    @staticmethod
    def best_action(observation: Array) -> int:
        return int(observation[0] > 0)


class DelayedReward(gymnasium.Env[Array, int]):
    """Only the first action matters, and it is paid `delay` steps later: +1 if it matched the cue, else -1.

    observation = [cue, what the first action came to (0 before, then +1 or -1), part of the episode that is over]
    Best return 1. After the first action V = outcome * gamma^(steps left - 1).
    """

    best_return = 1.0

    def __init__(self, delay: int = 5) -> None:
        if delay < 1:
            raise ValueError("delay must be 1 or more")
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._delay, self._cue, self._outcome, self._step = delay, 0, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._cue, self._outcome, self._step = int(self.np_random.integers(2)), 0, 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if self._step == 0:
            self._outcome = 1 if action == self._cue else -1
        self._step += 1
        ends = self._step > self._delay
        return self._observation(), float(self._outcome) if ends else 0.0, ends, False, {}

    def _observation(self) -> Array:
        return np.array([2 * self._cue - 1, self._outcome, self._step / (self._delay + 1)], np.float32)

    @staticmethod
    def best_action(observation: Array) -> int:
        """At the first step; later ones do not matter."""
        return int(observation[0] > 0)

    @staticmethod
    def value(observation: Array, gamma: float, delay: int = 5) -> float:
        """Of the best policy before the first action, of any policy after it."""
        steps = delay + 1
        left = steps - round(float(observation[2]) * steps)
        outcome = float(observation[1]) if left < steps else 1.0
        return float(outcome * gamma ** (left - 1))
