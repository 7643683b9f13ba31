"""From Gymnasium's spaces to plain specs, and the refusal of what is not supported. Knows no step and no reset."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Env, spaces
from gymnasium.wrappers import TimeLimit

from penstock.core.errors import Refused
from penstock.core.specs import ActionSpec, Array, BoxSpec, DiscreteSpec, EnvironmentSpec, ObservationSpec


def spec_of(environment: Env[Any, Any], name: str) -> EnvironmentSpec:
    """What this environment looks like from outside."""
    registered = environment.spec
    return EnvironmentSpec(
        id=name,
        observation=observation_spec(environment.observation_space, name),
        action=action_spec(environment.action_space, name),
        max_episode_steps=_time_limit(environment),
        reward_threshold=None if registered is None else registered.reward_threshold,
        frame_skip=_frame_skip(environment),
    )


def observation_spec(space: spaces.Space[Any], name: str) -> ObservationSpec:
    """Box of numbers or Discrete; floats are stored as float32, whole numbers as they are."""
    if isinstance(space, spaces.Discrete):
        return DiscreteSpec(n=int(space.n), start=int(space.start))
    if isinstance(space, spaces.Box) and space.dtype.kind in "fiu" and np.prod(space.shape, dtype=np.int64) > 0:
        return _box(space, "float32" if space.dtype.kind == "f" else str(space.dtype))
    raise Refused(f"environment '{name}' has observation space {_shown(space)}; supported: Box of numbers, Discrete")


def action_spec(space: spaces.Space[Any], name: str) -> ActionSpec:
    """Discrete, or a Box of floats with bounds."""
    if isinstance(space, spaces.Discrete):
        return DiscreteSpec(n=int(space.n), start=int(space.start))
    if isinstance(space, spaces.Box) and space.dtype.kind == "f" and np.prod(space.shape, dtype=np.int64) > 0:
        if np.isfinite(space.low).all() and np.isfinite(space.high).all():
            return _box(space, "float32")
        raise Refused(
            f"environment '{name}' has an unbounded action space {_shown(space)}; "
            f"supported: Discrete, bounded Box (give it finite bounds, with gymnasium.wrappers.TransformAction for example)"
        )
    raise Refused(f"environment '{name}' has action space {_shown(space)}; supported: Discrete, bounded Box of floats")


def _box(space: spaces.Box, dtype: str) -> BoxSpec:
    low, high = space.low, space.high
    if dtype != str(space.dtype):
        low, high = _raised(space.low), -_raised(-space.high)
    return BoxSpec(tuple(space.shape), dtype, tuple(low.ravel().tolist()), tuple(high.ravel().tolist()))


def _raised(bound: Array) -> Array:
    """The least float32 not below `bound`, so that a number inside the rounded bounds is inside the real ones."""
    with np.errstate(over="ignore"):
        rounded = bound.astype(np.float32)
    return np.where(rounded < bound, np.nextafter(rounded, np.float32(np.inf)), rounded)


def _time_limit(environment: Any) -> int | None:
    """The innermost wrapper may hold it, or the registry's entry."""
    layer = environment
    while layer is not None:
        if isinstance(layer, TimeLimit):
            return int(layer._max_episode_steps)
        layer = getattr(layer, "env", None)
    return None if environment.spec is None else environment.spec.max_episode_steps


def _frame_skip(environment: Env[Any, Any]) -> int:
    """Emulator frames per step, which only arcade games count."""
    registered = environment.spec
    if registered is None or registered.namespace != "ALE":
        return 1
    frames = registered.kwargs.get("frameskip", 1)
    return frames if isinstance(frames, int) else 1


def _shown(space: spaces.Space[Any]) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 100 else f"{type(space).__name__}(shape={space.shape}, dtype={space.dtype})"
