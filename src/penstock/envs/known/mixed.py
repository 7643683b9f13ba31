# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""Observations and actions of many parts, each of which matters, and actions of which only some are allowed.

A part that is lost, swapped with another or taken from another row shows as reward that is missing.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from penstock.core.specs import MASK, Array

SIDE = 12


class Mixed(gymnasium.Env[Any, Any]):
    """Eight steps; each part of the action answers a part of the observation. Best return 8.

    reward = 0.4 for the bright quadrant's number + 0.3 (1 - |amount - level| / 2) + 0.15 for each switch set as shown
    """

    best_return = 8.0
    random_return = 8 * (0.4 / 4 + 0.3 * 2 / 3 + 0.15)

    def __init__(self, episode_steps: int = 8) -> None:
        image = spaces.Box(0, 255, (1, SIDE, SIDE), np.uint8)
        levels = spaces.Box(-1.0, 1.0, (2,), np.float64)
        shown = spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2)))
        self.observation_space = spaces.Dict({"image": image, "levels": levels, "shown": shown})
        self.action_space = spaces.Dict(
            {
                "amount": spaces.Box(-1.0, 1.0, (1,), np.float32),
                "quadrant": spaces.Discrete(4, start=1),
                "switches": spaces.Tuple((spaces.MultiDiscrete([2, 2], start=[5, 7]),)),
            }
        )
        self._episode_steps, self._step = episode_steps, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._next(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is not in {self.action_space}")
        self._step += 1
        reward = self._reward(action)
        return self._next(), reward, self._step >= self._episode_steps, False, {}

    def _reward(self, action: Any) -> float:
        right_quadrant = action["quadrant"] == self._quadrant + 1
        near = 1.0 - abs(float(action["amount"][0]) - float(self._levels[0])) / 2.0
        switches = action["switches"][0] - (5, 7)
        return 0.4 * float(right_quadrant) + 0.3 * near + 0.15 * int((switches == self._switches).sum())

    def _next(self) -> dict[str, Any]:
        self._quadrant = int(self.np_random.integers(4))
        self._levels = self.np_random.uniform(-1.0, 1.0, 2)
        self._switches = self.np_random.integers(0, 2, 2)
        image = np.zeros((1, SIDE, SIDE), np.uint8)
        row, column = divmod(self._quadrant, 2)
        half = SIDE // 2
        image[0, row * half : (row + 1) * half, column * half : (column + 1) * half] = 255
        unrelated = int(self.np_random.integers(1, 4))
        return {"image": image, "levels": self._levels, "shown": (unrelated, self._switches.astype(np.int8))}


class Masked(gymnasium.Env[Array, int]):
    """Two of six actions are allowed at each step, others raise; the lower one is right. Best return 10.

    The mask is in `info`, or with `method` is asked for. Nothing else is to be seen.
    """

    best_return = 10.0

    def __init__(self, *, method: bool = False, impossible_at: int = -1) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (6,), np.float32)
        self.action_space = spaces.Discrete(6, start=2)  # type: ignore[assignment] # Discrete's items are np.int64
        self._impossible_at, self._step = impossible_at, 0
        self._allowed = np.zeros(6, np.bool_)
        if method:
            self.action_masks = lambda: self._allowed
        self._in_info = not method

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._next()

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if not self._allowed[action - 2]:
            raise ValueError(f"action {action} is not allowed now")
        reward = float(action - 2 == np.flatnonzero(self._allowed)[0])
        self._step += 1
        observation, info = self._next()
        return observation, reward, self._step >= 10, False, info

    def _next(self) -> tuple[Array, dict[str, Any]]:
        self._allowed = np.zeros(6, np.bool_)
        if self._step not in (10, self._impossible_at):  # once it is over nothing is allowed, which nobody may mind
            self._allowed[self.np_random.choice(6, 2, replace=False)] = True
        observation = self._allowed.astype(np.float32)
        return observation, {MASK: self._allowed} if self._in_info else {}
