"""From Gymnasium's spaces to plain specs, and the refusal of what is not supported. Knows no step and no reset."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from gymnasium import Env, spaces
from gymnasium.wrappers import TimeLimit

from penstock.core.errors import Refused
from penstock.core.specs import (
    ActionSpec,
    Array,
    BoxSpec,
    CompositeSpec,
    DiscreteSpec,
    EnvironmentSpec,
    MultiDiscreteSpec,
    ObservationSpec,
    Space,
)
from penstock.envs.wrappers import is_text

OBSERVATIONS = "Box of numbers, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these"
ACTIONS = "Discrete, bounded Box of floats, MultiDiscrete, MultiBinary, and Dict and Tuple of these"


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
    """Floats are stored as float32, whole numbers as they are."""
    found = _spec_of(space, _observed_box)
    if found is not None:
        return found
    raise Refused(f"environment '{name}' has observation space {_shown(space)}; supported: {OBSERVATIONS}{_advice(space)}")


def action_spec(space: spaces.Space[Any], name: str) -> ActionSpec:
    """As observations, but a Box of actions is of floats and has bounds."""
    found = _spec_of(space, _acted_box)
    if found is not None:
        return found
    if any(isinstance(part, spaces.Box) and part.dtype.kind == "f" and part.shape != (0,) for part in _parts(space)):
        raise Refused(
            f"environment '{name}' has an unbounded action space {_shown(space)}; supported: {ACTIONS} "
            f"(give it finite bounds, with gymnasium.wrappers.TransformAction for example)"
        )
    raise Refused(f"environment '{name}' has action space {_shown(space)}; supported: {ACTIONS}")


def _spec_of(space: spaces.Space[Any], box_of: Callable[[spaces.Box], BoxSpec | None]) -> Space | None:
    match space:
        case spaces.Discrete():
            return DiscreteSpec(n=int(space.n), start=int(space.start))
        case spaces.MultiDiscrete():
            counts, start = (tuple(map(int, np.ravel(numbers))) for numbers in (space.nvec, space.start))
            return MultiDiscreteSpec(counts, start, tuple(space.shape))
        case spaces.MultiBinary():
            size = int(np.prod(space.shape))
            return MultiDiscreteSpec((2,) * size, (0,) * size, tuple(space.shape)) if size else None
        case spaces.Box():
            return box_of(space) if np.prod(space.shape, dtype=np.int64) > 0 else None
        case spaces.Dict():
            return _composite("dict", space.spaces.items(), box_of)
        case spaces.Tuple():
            return _composite("tuple", ((str(index), part) for index, part in enumerate(space.spaces)), box_of)
    return None


def _composite(
    kind: Any, named: Iterable[tuple[Any, spaces.Space[Any]]], box_of: Callable[[spaces.Box], BoxSpec | None]
) -> CompositeSpec | None:
    names, parts = [], []
    for name, part in named:
        spec = _spec_of(part, box_of)
        if spec is None or not isinstance(name, str):
            return None
        names.append(name)
        parts.append(spec)
    return CompositeSpec(kind, tuple(names), tuple(parts)) if names else None


def _observed_box(space: spaces.Box) -> BoxSpec | None:
    if space.dtype.kind not in "fiu":
        return None
    return _box(space, "float32" if space.dtype.kind == "f" else str(space.dtype))


def _acted_box(space: spaces.Box) -> BoxSpec | None:
    bounded = np.isfinite(space.low).all() and np.isfinite(space.high).all()
    return _box(space, "float32") if space.dtype.kind == "f" and bounded else None


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


def _parts(space: spaces.Space[Any]) -> Iterable[spaces.Space[Any]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        for part in inner:
            yield from _parts(part)
    else:
        yield space


def _advice(space: spaces.Space[Any]) -> str:
    """What to do about the commonest part that is not supported."""
    if any(is_text(part) for part in _parts(space)):
        return " (leave the text out, with --wrap penstock.envs.wrappers:without_text for example)"
    return ""


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
    frames = getattr(environment.unwrapped, "frames_per_step", None)
    if frames is not None:
        return int(frames)
    registered = environment.spec
    if registered is None or registered.namespace != "ALE":
        return 1
    frames = registered.kwargs.get("frameskip", 1)
    return frames if isinstance(frames, int) else 1


def _shown(space: spaces.Space[Any]) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 100 else f"{type(space).__name__}(shape={space.shape}, dtype={space.dtype})"
