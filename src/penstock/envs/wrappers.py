"""Wrappers for `--wrap penstock.envs.wrappers:NAME`: what common environments need before they fit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from penstock.core.specs import Array


def is_text(space: spaces.Space[Any]) -> bool:
    """Whether it is of sentences: Gymnasium's Text, or a space of a library's own, such as Minigrid's of missions."""
    return isinstance(space, spaces.Text) or getattr(space, "dtype", None) == np.dtype(str)


class WithoutText(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Leaves sentences out of a Dict observation."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        kept = {name: part for name, part in env.observation_space.items() if not is_text(part)}
        self.observation_space = spaces.Dict(kept)

    def observation(self, observation: Any) -> dict[str, Any]:
        assert isinstance(self.observation_space, spaces.Dict)
        return {name: observation[name] for name in self.observation_space}


def without_text(environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The environment without the sentences in its observations; as it is, where there are none."""
    space = environment.observation_space
    has_text = isinstance(space, spaces.Dict) and any(is_text(part) for part in space.values())
    return WithoutText(environment) if has_text else environment


class SpreadTiles(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Spreads the codes of Minigrid's tiles over a byte: as they are, kinds 0 to 10 of 255 are next to no light at all."""

    MOST = (10, 5, 3)  # kind, colour, state

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._steps = np.array([255 // most for most in self.MOST], np.uint8)

    def observation(self, observation: Any) -> dict[str, Any]:
        return {**observation, "image": observation["image"] * self._steps}


def spread_tiles(environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Minigrid's grid as convolutions can tell it apart; as it is, where the observation is no such grid."""
    space = environment.observation_space
    grid = space.spaces.get("image") if isinstance(space, spaces.Dict) else None
    is_grid = isinstance(grid, spaces.Box) and grid.dtype == np.uint8 and grid.shape[-1:] == (len(SpreadTiles.MOST),)
    return SpreadTiles(environment) if is_grid else environment


class SmallScreen(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The observation's `screen` as an 84 x 84 grey image: each pixel the mean of those that it covers."""

    SIDE = 84

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        others = {name: part for name, part in env.observation_space.items() if name != "screen"}
        screen = spaces.Box(0, 255, (1, self.SIDE, self.SIDE), np.uint8)
        self.observation_space = spaces.Dict({"screen": screen, **others})

    def observation(self, observation: Any) -> dict[str, Any]:
        return {**observation, "screen": _shrunk(np.asarray(observation["screen"]), self.SIDE)[None]}


def small_screen(environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """ViZDoom's large colour screen as convolutions like it."""
    return SmallScreen(environment)


def _shrunk(image: Array, side: int) -> Array:
    """In whole numbers, colour by colour: a mean over the last axis would take longer than the game."""
    channels = image[..., None] if image.ndim == 2 else image
    sums = channels[..., 0].astype(np.uint32)
    for channel in range(1, channels.shape[-1]):
        sums += channels[..., channel]
    pixels = np.full((side, side), channels.shape[-1], np.uint32)
    for axis, length in enumerate(image.shape[:2]):
        edges = np.arange(side) * length // side
        sums = np.add.reduceat(sums, edges, axis=axis)
        pixels *= np.expand_dims(np.diff(np.append(edges, length)), 1 - axis).astype(np.uint32)
    return ((sums + pixels // 2) // pixels).astype(np.uint8)
