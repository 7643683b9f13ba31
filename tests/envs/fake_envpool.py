"""A stand-in for EnvPool where it is not installed: its Gymnasium form, as observed of version 1.2.5 and documented.

The step after an end resets the lane whatever its action, with reward 0, no flag and `elapsed_step` 0. Random streams, one a
lane, begin when the pool is made and go on over resets; `reset` takes no seed. `tests/envs/test_pools.py` holds the real one
to the same, where it is installed.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from gymnasium import spaces

_COMMON = {"num_envs": 1, "batch_size": 1, "num_threads": 0, "seed": 42, "max_num_players": 1, "max_episode_steps": 500}
_ARCADE = {
    **_COMMON,
    "max_episode_steps": 27_000,
    "frame_skip": 4,
    "stack_num": 4,
    "noop_max": 30,
    "episodic_life": False,
    "zero_discount_on_life_loss": False,
    "reward_clip": False,
    "use_fire_reset": True,
    "repeat_action_probability": 0.0,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {**_COMMON, "reward_threshold": 475.0},
    "Breakout-v5": _ARCADE,
    "gfootball/duel-v1": {**_COMMON, "max_num_players": 2},
}
LIVES = 5


def list_all_envs() -> list[str]:
    return list(CONFIGS)


class make_spec:
    def __init__(self, task: str, **settings: Any) -> None:
        known = {**CONFIGS[task], **settings}
        assert known.keys() == CONFIGS[task].keys(), "an unknown setting"
        self.config = namedtuple("Config", known)(**known)
        self.gymnasium_observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.gymnasium_action_space = spaces.Discrete(2)


def make(task: str, *, env_type: str, num_envs: int, seed: list[int], **settings: Any) -> Pool:
    assert env_type == "gymnasium"
    assert len(seed) == num_envs
    assert all(0 <= lane_seed < 2**31 for lane_seed in seed)
    return Pool(make_spec(task, **settings).config, seed)


class Pool:
    """Episodes of random length; a life is lost every three steps of a game. A row tells a draw, the step and the action."""

    def __init__(self, config: Any, seeds: list[int]) -> None:
        self.config, self._streams = config, [np.random.default_rng(seed) for seed in seeds]
        lanes = len(seeds)
        self._elapsed, self._lengths, self._ended = np.zeros(lanes, int), np.zeros(lanes, int), np.zeros(lanes, bool)
        self._draws = np.zeros(lanes)

    def reset(self) -> Any:
        for lane in range(len(self._streams)):
            self._begin(lane)
        return self._rows(np.zeros(len(self._streams))), self._info()

    def step(self, actions: Any) -> Any:
        resetting = self._ended.copy()
        self._elapsed += 1
        for lane in np.flatnonzero(resetting):
            self._begin(lane)
        over = ~resetting & (self._elapsed >= self._lengths)
        truncated = ~resetting & (self._elapsed >= self.config.max_episode_steps)
        self._ended = over | truncated
        reward = np.where(resetting, 0.0, 7.0).astype(np.float32)
        return self._rows(np.where(resetting, 0, actions)), reward, self._ended & ~truncated, truncated, self._info()

    def _begin(self, lane: int) -> None:
        self._elapsed[lane], self._ended[lane] = 0, False
        self._draws[lane] = self._streams[lane].random()
        self._lengths[lane] = self._streams[lane].integers(3, 16)

    def _rows(self, actions: Any) -> Any:
        return np.stack([self._draws, self._elapsed, actions], axis=1).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"elapsed_step": self._elapsed.astype(np.int32)}
        if hasattr(self.config, "reward_clip"):
            info["lives"] = np.where(self._ended, 0, np.maximum(LIVES - self._elapsed // 3, 1)).astype(np.int32)
        return info
