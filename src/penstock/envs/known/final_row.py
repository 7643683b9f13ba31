# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""Two states, each ending in the other: whoever trains the reset step, or loses the final observation, mixes them up.

An episode begins in the poor state (observation -1, pays 0) or the rich one (observation +1, pays 1), as its seed
decides, and is over after one step; its final observation is the *other* state.

    terminated:  V(poor) = 0,                      V(rich) = 1
    truncated:   V(poor) = gamma / (1 - gamma^2),  V(rich) = 1 / (1 - gamma^2)

A reset step that is trained pays 0 in the final observation's state and leads to a random one, so it pulls both values
towards each other: at gamma 0.99, terminated, to 0.25 and 0.75. A truncated step that bootstraps from the next
episode's first observation instead of the final one sees the mean of both states, and the difference of the values
grows from 1 / (1 + gamma) to 1.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array


class FinalRow(gymnasium.Env[Array, int]):
    """One step from one state into the other, as above; actions change nothing."""

    def __init__(self, *, truncate: bool = False) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._truncate, self._rich = truncate, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._rich = bool(self.np_random.integers(2))
        return self._observation(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        reward, self._rich = float(self._rich), not self._rich
        return self._observation(), reward, not self._truncate, self._truncate, {}

    def _observation(self) -> Array:
        return np.array([1.0 if self._rich else -1.0], np.float32)

    @staticmethod
    def value(observation: Array, gamma: float, *, truncate: bool = False) -> float:
        rich = bool(observation[0] > 0)
        if not truncate:
            return float(rich)
        return (1.0 if rich else gamma) / (1.0 - gamma * gamma)

    @staticmethod
    def value_if_resets_are_trained(observation: Array, gamma: float) -> float:
        """Terminated episodes: each state is half the time real, half the time a final row that pays 0 and leads on.

        V(s) = (pay(s) + gamma * m) / 2 with m the mean of both values, hence m = 1 / (2 * (2 - gamma)).
        """
        mean = 0.5 / (2.0 - gamma)
        return 0.5 * (float(observation[0] > 0) + gamma * mean)
