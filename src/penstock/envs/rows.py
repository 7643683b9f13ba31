"""The arrays of a block, one row per lane, private or shared with child processes. Knows no environment."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.specs import (
    Array,
    CompositeSpec,
    DiscreteSpec,
    EnvironmentSpec,
    MultiDiscreteSpec,
    ObservationSpec,
    parts_of,
)
from penstock.envs.standing import Standing, own_standing

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Rows:
    """What lanes write and a block shows, and what they need to say where they stand."""

    observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    ended: Array
    """The episode is over, and the next step resets the lane: not so where only a life was lost, though that terminates."""
    valid: Array
    standing: Standing
    """Where each lane stands, for reports; the rest are parts of it."""
    action: Array
    """What each lane was sent last."""
    episode: Array
    """The episode each lane is in."""
    step: Array
    """Steps begun in that episode: while a step is under way, it is counted."""
    doing: memoryview
    """What each lane is at. Numbers are written to it far faster than to an array."""


def allocate_rows(spec: EnvironmentSpec, num_lanes: int, *, shared: bool = False, standing: Standing | None = None) -> Rows:
    """Rows for these lanes; `shared` ones are seen by processes forked afterwards, and vanish with the last of them. Where the
    lanes stand is written to `standing`, if somebody wants to know it who outlives this process."""
    layout: dict[str, tuple[tuple[int, ...], Any]] = {
        "observation": (spec.observation.shape, spec.observation.dtype),
        "reward": ((), np.float64),
        "terminated": ((), np.bool_),
        "truncated": ((), np.bool_),
        "ended": ((), np.bool_),
        "valid": ((), np.bool_),
    }
    sizes = [_padded(num_lanes * _row_bytes(*row)) for row in layout.values()]
    memory: Any = mmap.mmap(-1, sum(sizes)) if shared else bytearray(sum(sizes))
    arrays, offset = {}, 0
    for (name, (shape, dtype)), size in zip(layout.items(), sizes, strict=True):
        arrays[name] = np.ndarray((num_lanes, *shape), dtype, memory, offset)
        offset += size
    stands = standing or own_standing(spec, num_lanes, shared=shared)
    arrays |= {"action": stands.action, "episode": stands.episode, "step": stands.step}
    rows = Rows(standing=stands, doing=stands.doing.data, **arrays)
    rows.valid[:] = True
    return rows


def _row_bytes(shape: tuple[int, ...], dtype: Any) -> int:
    return math.prod(shape) * int(np.dtype(dtype).itemsize)


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT


def fitted(observation: Any, expected: ObservationSpec, *, lanes: tuple[int, ...] = ()) -> Array:
    """The observation of one lane, or of `lanes`, as rows hold it; or a ValueError that says what is wrong with it."""
    if isinstance(expected, CompositeSpec):
        return _fitted_parts(observation, expected, lanes)
    found = np.asarray(observation)
    if found.shape != (*lanes, *expected.shape):
        raise ValueError(f"observation of shape {found.shape}, expected {(*lanes, *expected.shape)}")
    if isinstance(expected, DiscreteSpec):
        return _fitted_numbers(found, expected.n, expected.start)
    if isinstance(expected, MultiDiscreteSpec):
        count, start = (np.array(numbers).reshape(expected.shape) for numbers in (expected.counts, expected.start))
        return _fitted_numbers(found, count, start)
    if np.can_cast(found.dtype, expected.dtype, "same_kind"):
        return found.astype(expected.dtype)
    if found.dtype.kind in "iu" and np.array_equal(found.astype(expected.dtype), found):
        return found.astype(expected.dtype)
    raise ValueError(f"observation of dtype {found.dtype}, expected {expected.dtype}")


def _fitted_parts(observation: Any, expected: CompositeSpec, lanes: tuple[int, ...]) -> Array:
    rows = np.zeros(lanes, expected.dtype)  # zeros: padding must not differ from run to run
    found = observation if isinstance(observation, Mapping) else dict(zip(expected.names, observation, strict=False))
    if not set(expected.names) <= set(found):
        raise ValueError(f"observation with the parts {', '.join(map(str, found))}, expected {', '.join(expected.names)}")
    for name, part in zip(expected.names, expected.parts, strict=True):
        try:
            rows[name] = fitted(found[name], part, lanes=lanes)
        except ValueError as error:
            raise ValueError(f"part '{name}': {error}") from error
    return rows


def _fitted_numbers(found: Array, count: int | Array, start: int | Array) -> Array:
    if found.dtype.kind not in "iub":
        raise ValueError(f"observation of dtype {found.dtype}, expected whole numbers")
    numbers = found.astype(np.int64) - start
    if (numbers < 0).any() or (numbers >= count).any():
        last = np.asarray(start) + count - 1
        raise ValueError(f"observation {found.tolist()} outside {np.asarray(start).tolist()}..{last.tolist()}")
    return np.asarray(numbers)


def all_finite(numbers: Array) -> bool:
    """Whether every number is finite; whole numbers always are, and cost nothing."""
    if numbers.dtype.names is not None:
        return all(all_finite(part) for _, part in parts_of(numbers))
    return numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())


def finite_lanes(rows: Array) -> Array:
    """Which lanes' rows are finite, [B]."""
    parts = (part.reshape(len(rows), -1) for _, part in parts_of(rows))
    finite: Array = np.logical_and.reduce([np.isfinite(part).all(axis=1) for part in parts])
    return finite
