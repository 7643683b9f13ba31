"""Environments that fail in one way each. A module of its own, so that children and `module:Name` can find them."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
import numpy as np


class Panic(BaseException):
    """As libraries written in Rust raise: no Exception."""


class Faulty(gymnasium.Env[Any, Any]):
    """Fails in its third step (or in reset) in the way that `way` names; ends an episode after five."""

    def __init__(self, way: str = "none", dtype: str = "float32") -> None:
        self.observation_space = gymnasium.spaces.Box(0, 10, (2,), np.dtype(dtype).type)
        self.action_space = gymnasium.spaces.Discrete(3)
        self._way, self._step, self._dtype = way, 0, dtype

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        if self._way == "reset":
            raise RuntimeError("no\nlicence")
        return np.zeros(2, self._dtype), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._step += 1
        observation, reward = np.full(2, self._step, self._dtype), 1.0
        if self._step == 3:
            return self._fail(observation, reward)
        return observation, reward, self._step == 5, False, {}

    def _fail(self, observation: Any, reward: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        match self._way:
            case "raise":
                raise RuntimeError("the pump\nis dry")
            case "interrupt":
                raise KeyboardInterrupt("the emergency stop")
            case "panic":
                raise Panic("index out of bounds")
            case "hang":
                time.sleep(3600)
            case "die":
                os._exit(7)
            case "nan":
                observation[1] = np.nan
            case "infinity":
                observation[0] = -np.inf
            case "shape":
                observation = observation[:1]
            case "dtype":
                observation = np.array(["a", "b"])
            case "none_observation":
                observation = None
            case "reward_nan":
                reward = float("nan")
            case "reward_word":
                reward = "much"
            case "four":
                return observation, reward, False, {}  # type: ignore[return-value] # the mistake being tested
        return observation, reward, False, False, {}


class KindReward(gymnasium.Env[Any, Any]):
    """Rewards of every type that is a number, observations of other types than declared that still fit."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self._rewards = [1, 2.0, np.float32(3), np.array(4.0), np.int64(5), True]
        self.given: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return [7, 255], {}

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.given.append(action)
        return np.array([len(self.given), 0]), self._rewards[len(self.given) - 1], np.bool_(False), False, {}
