"""The arrays of a block, one row per lane, private or shared with child processes. Knows no environment."""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.seeds import episode_seed
from penstock.core.specs import Array, DiscreteSpec, EnvironmentSpec, LanePosition, ObservationSpec

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Rows:
    """What lanes write and a block shows, and what they need to say where they stand."""

    observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    valid: Array
    action: Array
    """What each lane was sent last."""
    episode: Array
    """The episode each lane is in."""
    step: Array
    """Steps begun in that episode: while a step is under way, it is counted."""

    def position(self, row: int, *, lane: int, seed: int) -> LanePosition:
        """Where the lane of this row stands, when each of its episodes has a seed of its own."""
        episode, step = int(self.episode[row]), int(self.step[row])
        last_action = self.action[row].tolist() if step else None
        return LanePosition(lane, episode_seed(seed, lane, episode), episode, step, last_action)


def allocate_rows(spec: EnvironmentSpec, num_lanes: int, *, shared: bool = False) -> Rows:
    """Rows for these lanes; `shared` ones are seen by processes forked afterwards, and vanish with the last of them."""
    layout: dict[str, tuple[tuple[int, ...], Any]] = {
        "observation": (spec.observation.shape, spec.observation.dtype),
        "reward": ((), np.float64),
        "terminated": ((), np.bool_),
        "truncated": ((), np.bool_),
        "valid": ((), np.bool_),
        "action": (spec.action.shape, spec.action.dtype),
        "episode": ((), np.int64),
        "step": ((), np.int64),
    }
    sizes = [_padded(num_lanes * _row_bytes(*row)) for row in layout.values()]
    memory: Any = mmap.mmap(-1, sum(sizes)) if shared else bytearray(sum(sizes))
    arrays, offset = {}, 0
    for (name, (shape, dtype)), size in zip(layout.items(), sizes, strict=True):
        arrays[name] = np.ndarray((num_lanes, *shape), dtype, memory, offset)
        offset += size
    rows = Rows(**arrays)
    rows.valid[:] = True
    return rows


def _row_bytes(shape: tuple[int, ...], dtype: Any) -> int:
    return math.prod(shape) * int(np.dtype(dtype).itemsize)


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT


def fitted(observation: Any, expected: ObservationSpec, *, lanes: tuple[int, ...] = ()) -> Array:
    """The observation of one lane, or of `lanes`, as rows hold it; or a ValueError that says what is wrong with it."""
    found = np.asarray(observation)
    if found.shape != (*lanes, *expected.shape):
        raise ValueError(f"observation of shape {found.shape}, expected {(*lanes, *expected.shape)}")
    if isinstance(expected, DiscreteSpec):
        return _fitted_number(found, expected)
    if np.can_cast(found.dtype, expected.dtype, "same_kind"):
        return found.astype(expected.dtype)
    if found.dtype.kind in "iu" and np.array_equal(found.astype(expected.dtype), found):
        return found.astype(expected.dtype)
    raise ValueError(f"observation of dtype {found.dtype}, expected {expected.dtype}")


def _fitted_number(found: Array, expected: DiscreteSpec) -> Array:
    if found.dtype.kind not in "iu":
        raise ValueError(f"observation of dtype {found.dtype}, expected a whole number")
    number = found.astype(np.int64) - expected.start
    if (number < 0).any() or (number >= expected.n).any():
        raise ValueError(f"observation {found.tolist()} outside {expected.start}..{expected.start + expected.n - 1}")
    return np.asarray(number)


def all_finite(numbers: Array) -> bool:
    """Whether every number is finite; whole numbers always are, and cost nothing."""
    return numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())
