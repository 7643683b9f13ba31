# ruff: noqa: ARG002 reset and step have Gymnasium's signatures, of which not every environment needs all
"""An environment whose observation names itself, so that a row in the wrong place shows. Knows nothing of learning.

    observation = [tag of the episode's seed, episodes this instance has ended, steps in this episode, last action]
    reward      = steps in this episode, this one included

The tag is the lowest twenty bits of the seed, exact in float32: whoever knows the lane's seed knows the tag.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from penstock.core.specs import Array

NO_ACTION = -1.0


def seed_tag(seed: int) -> int:
    """What an episode started from this seed shows in its first number."""
    return seed & 0xF_FFFF


def episode_length(episode_steps: int, tag: int, *, ragged: bool) -> int:
    """All episodes alike, or of 2 to `episode_steps` steps as the seed decides, so that lanes end at different times."""
    return 2 + tag % (episode_steps - 1) if ragged else episode_steps


class Counting(gymnasium.Env[Array, int]):
    """Ends after a known number of steps, by termination or by truncation."""

    def __init__(self, episode_steps: int = 10, *, truncate: bool = False, ragged: bool = False, n: int = 4) -> None:
        if episode_steps < 2:
            raise ValueError("episode_steps must be 2 or more")
        self.observation_space = gymnasium.spaces.Box(NO_ACTION, np.inf, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(n)  # type: ignore[assignment] # Discrete's items are np.int64
        self._episode_steps, self._truncate, self._ragged = episode_steps, truncate, ragged
        self._tag, self._episode, self._step, self._ended = 0, 0, 0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._tag = seed_tag(seed)
        self._episode += self._ended
        self._step, self._ended = 0, False
        return self._observation(NO_ACTION), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if self._ended:
            raise RuntimeError("step after the episode's end")
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        self._step += 1
        self._ended = self._step >= episode_length(self._episode_steps, self._tag, ragged=self._ragged)
        terminated, truncated = self._ended and not self._truncate, self._ended and self._truncate
        return self._observation(float(action)), float(self._step), terminated, truncated, {}

    def _observation(self, last_action: float) -> Array:
        return np.array([self._tag, self._episode, self._step, last_action], np.float32)
