"""Environments that misbehave on cue, for tests with real processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class Troublesome(gymnasium.Env[Any, Any]):
    """Episodes of ten steps of reward 1; at step `at` of episode `episode` it does `trouble`."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, trouble: str = "none", at: int = 3, episode: int = 5, seconds: float = 0.0, marker: str = "") -> None:
        self._trouble, self._at, self._when, self._seconds, self._marker = trouble, at, episode, seconds, marker
        self._episode = -1
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        if self._trouble == "reset":
            raise RuntimeError("the reset button is stuck")
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        time.sleep(self._seconds)
        observation = np.full(3, 0.1, np.float32)
        if self._episode == self._when and self._step == self._at:
            match self._trouble:
                case "raise":
                    raise RuntimeError("a gear broke")
                case "exit":
                    os._exit(3)
                case "leave":
                    sys.exit(0)
                case "interrupt":
                    raise KeyboardInterrupt("the emergency stop")
                case "segfault":
                    ctypes.string_at(0)
                case "helper":
                    self._start_helper()
                    os.kill(os.getpid(), signal.SIGKILL)
                case "hang":
                    self._hang_if_first()
                case "nan":
                    observation[1] = np.nan
        return observation, 1.0, self._step == 10, False, {}

    def _hang_if_first(self) -> None:
        with contextlib.suppress(FileExistsError):
            Path(self._marker).touch(exist_ok=False)
            time.sleep(3600)

    @staticmethod
    def _start_helper() -> None:
        """A process forked without exec, as multiprocessing's are: it holds copies of all that its parent has open."""
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)


class Wanders(gymnasium.Env[Any, Any]):
    """Changes the working directory when it is made, as code that looks for its own files may."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, to: str) -> None:
        os.chdir(to)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 1.0, False, False, {}
