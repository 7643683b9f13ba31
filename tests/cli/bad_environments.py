"""Environments that cannot be trained on, each for one reason. A module of its own, so that `module:Name` can find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

GOOD = spaces.Discrete(3)
OBSERVED: dict[str, Callable[[], Any]] = {
    "text": lambda: spaces.Text(5),
    "graph": lambda: spaces.Graph(spaces.Discrete(2), None),
    "sequence": lambda: spaces.Sequence(spaces.Discrete(2)),
    "one_of": lambda: spaces.OneOf((spaces.Discrete(2), spaces.Discrete(3))),
    "nested": lambda: spaces.Dict(a=GOOD, b=spaces.Tuple((GOOD, spaces.Dict(c=spaces.Sequence(GOOD))))),
    "nested_text": lambda: spaces.Dict(a=GOOD, mission=spaces.Text(5)),
    "complex": lambda: _with_dtype(np.complex64),
    "object": lambda: _with_dtype(np.object_),
    "empty": lambda: spaces.Box(0, 1, (0,)),
    "none": lambda: None,
}
ACTED: dict[str, Callable[[], Any]] = {
    "unbounded": lambda: spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "half_bounded": lambda: spaces.Box(0.0, np.inf, (2,), np.float32),
    "whole_numbers": lambda: spaces.Box(0, 9, (2,), np.int64),
    "text": lambda: spaces.Text(5),
    "graph": lambda: spaces.Graph(spaces.Discrete(2), None),
    "sequence": lambda: spaces.Sequence(spaces.Discrete(2)),
    "nested_unbounded": lambda: spaces.Dict(a=GOOD, b=spaces.Tuple((spaces.Box(-np.inf, np.inf, (1,), np.float32),))),
    "nested_whole_numbers": lambda: spaces.Dict(a=spaces.Box(0, 9, (2,), np.int64)),
    "nested_text": lambda: spaces.Tuple((GOOD, spaces.Text(5))),
}
MASKED: dict[str, tuple[Any, Any]] = {
    "long": (spaces.Discrete(3), np.ones(4, np.int8)),
    "short": (spaces.MultiDiscrete([2, 3]), np.ones(3, np.int8)),
    "nothing": (spaces.Discrete(3), np.zeros(3, np.int8)),
    "nothing_of_one": (spaces.MultiDiscrete([2, 3]), np.array([0, 0, 1, 1, 1], np.int8)),
    "on_box": (spaces.Box(-1.0, 1.0, (3,)), np.ones(3, np.int8)),
    "on_dict": (spaces.Dict(a=spaces.Discrete(3)), np.ones(3, np.int8)),
}


class Bad(gymnasium.Env[Any, Any]):
    """Sound but for the one thing that was asked for."""

    def __init__(self, observed: str = "", acted: str = "", masked: str = "") -> None:
        self.observation_space = OBSERVED[observed]() if observed else spaces.Box(0, 1, (2,))
        self.action_space = ACTED[acted]() if acted else spaces.Discrete(3)
        self._info: dict[str, Any] = {}
        if masked:
            self.action_space, self._info["action_mask"] = MASKED[masked]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), self._info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(2, np.float32), 0.0, False, False, self._info


def _with_dtype(dtype: Any) -> spaces.Box:
    space = spaces.Box(0, 1, (2,), np.float32)
    space.dtype = np.dtype(dtype)  # Gymnasium's own constructor does not take it
    return space
