"""What an environment looks like from outside, in plain data that travels between processes and into files.

A row of an observation or an action is one NumPy item of `shape` and `dtype`: numbers for a Box, whole numbers from 0 for
Discrete and MultiDiscrete, and one structured item for a Dict or a Tuple of these. So whatever is stored, moved or compared
row by row need not know what a row is made of; what computes with numbers asks for the `leaves`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class BoxSpec:
    """A box of numbers. `low` and `high` are flat tuples in C order, so that the spec is hashable and prints."""

    shape: tuple[int, ...]
    dtype: str
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bounds(self) -> tuple[Array, Array]:
        low = np.asarray(self.low, self.dtype).reshape(self.shape)
        return low, np.asarray(self.high, self.dtype).reshape(self.shape)

    @property
    def is_image(self) -> bool:
        """Bytes with a height and a width, which convolutions read; anything else is a row of numbers."""
        return self.dtype == "uint8" and len(self.shape) in (2, 3) and min(self.height_and_width) >= 5

    @property
    def height_and_width(self) -> tuple[int, int]:
        """Of an image: channels come first or last, whichever is smaller, or not at all."""
        if len(self.shape) == 2:
            return self.shape[0], self.shape[1]
        first = self.shape[0] <= self.shape[2]
        return (self.shape[1], self.shape[2]) if first else (self.shape[0], self.shape[1])


@dataclass(frozen=True)
class DiscreteSpec:
    """One of `n` whole numbers, the first of which is `start`. Slots hold the number less `start`."""

    n: int
    start: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = "int64"


@dataclass(frozen=True)
class MultiDiscreteSpec:
    """Several whole numbers at once, each with its own count; yes or no is a count of 2. Slots hold them less `start`.

    `counts` and `start` are flat tuples in C order, `shape` is the space's.
    """

    counts: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str = "int64"


@dataclass(frozen=True)
class MaskSpec:
    """Which choices of the action are allowed: a flag for each, in the order of the distribution's parameters."""

    size: int
    dtype: str = "bool"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)


Kind = Literal["dict", "tuple", "masked"]


@dataclass(frozen=True)
class CompositeSpec:
    """Named parts, of which a row is one structured item; a tuple's names are 0, 1, ...

    A `masked` one is an observation beside the mask of the actions that may follow it (`OBSERVED`, `MASK`).
    """

    kind: Kind
    names: tuple[str, ...]
    parts: tuple[Space, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Aligned as in C, so that each part is an array that any library can look at where it lies."""
        fields = [(name, part.dtype, part.shape) for name, part in zip(self.names, self.parts, strict=True)]
        return np.dtype(fields, align=True)


OBSERVED, MASK = "observation", "action_mask"

Leaf = BoxSpec | DiscreteSpec | MultiDiscreteSpec | MaskSpec
Space = Leaf | CompositeSpec
ObservationSpec = Space
ActionSpec = Space


@dataclass(frozen=True)
class Place:
    """A leaf and the way to it from the row."""

    path: tuple[str, ...]
    leaf: Leaf

    @property
    def name(self) -> str:
        """Of the leaf among its siblings; empty where the row is the leaf."""
        return "/".join(self.path)

    def of(self, rows: Array) -> Array:
        """The leaf's array in an array of rows: a view."""
        for name in self.path:
            rows = rows[name]
        return rows


def leaves(space: Space, path: tuple[str, ...] = ()) -> Iterator[Place]:
    """All that a row is made of, in order."""
    if isinstance(space, CompositeSpec):
        for name, part in zip(space.names, space.parts, strict=True):
            yield from leaves(part, (*path, name))
    else:
        yield Place(path, space)


def parts_of(rows: Array, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Array]]:
    """The plain arrays that an array of rows is made of, as views, by the names of their places. Padding is in none."""
    if rows.dtype.names is None:
        yield "/".join(path), rows
    else:
        for name in rows.dtype.names:
            yield from parts_of(rows[name], (*path, name))


@dataclass(frozen=True)
class EnvironmentSpec:
    """One lane: what goes in, what comes out, when it ends, what counts as solved."""

    id: str
    observation: ObservationSpec
    action: ActionSpec
    max_episode_steps: int | None = None
    reward_threshold: float | None = None
    frame_skip: int = 1

    @property
    def masked(self) -> bool:
        """Whether observations carry the mask of the actions that may follow."""
        return isinstance(self.observation, CompositeSpec) and self.observation.kind == "masked"

    @property
    def seen(self) -> Space:
        """What a network sees: the observation without the mask."""
        if isinstance(self.observation, CompositeSpec) and self.observation.kind == "masked":
            return self.observation.parts[0]
        return self.observation

    @property
    def seen_places(self) -> tuple[Place, ...]:
        """Where the leaves that a network sees lie in a row of the whole observation."""
        return tuple(place for place in leaves(self.observation) if not isinstance(place.leaf, MaskSpec))


@dataclass(frozen=True)
class LanePosition:
    """Where a lane stands; enough to find the step again."""

    lane: int
    seed: int | None
    episode: int
    step: int
    last_action: Any


def to_plain(spec: EnvironmentSpec) -> dict[str, Any]:
    """A spec as data that strict JSON can hold: infinite bounds are written as text."""
    plain = {name: getattr(spec, name) for name in ("id", "max_episode_steps", "reward_threshold", "frame_skip")}
    return {**plain, "observation": _plain_space(spec.observation), "action": _plain_space(spec.action)}


def from_plain(plain: Mapping[str, Any]) -> EnvironmentSpec:
    """The spec that `to_plain` wrote."""
    sides = {side: _space_of(plain[side]) for side in ("observation", "action")}
    return EnvironmentSpec(**{**plain, **sides})


def _plain_space(space: Space) -> dict[str, Any]:
    match space:
        case BoxSpec(shape, dtype, low, high):
            bounds = {"low": low, "high": high}
            shown = {name: [x if math.isfinite(x) else str(x) for x in map(float, b)] for name, b in bounds.items()}
            return {"shape": list(shape), "dtype": dtype, **shown}
        case DiscreteSpec(n, start):
            return {"n": n, "start": start}
        case MultiDiscreteSpec(counts, start, shape):
            return {"counts": list(counts), "start": list(start), "shape": list(shape)}
        case MaskSpec(size):
            return {"size": size}
        case CompositeSpec(kind, names, parts):
            return {"kind": kind, "parts": {name: _plain_space(part) for name, part in zip(names, parts, strict=True)}}


def _space_of(plain: Mapping[str, Any]) -> Space:
    if "parts" in plain:
        parts = tuple(_space_of(part) for part in plain["parts"].values())
        return CompositeSpec(plain["kind"], tuple(map(str, plain["parts"])), parts)
    if "counts" in plain:
        counts, start, shape = (tuple(map(int, plain[name])) for name in ("counts", "start", "shape"))
        return MultiDiscreteSpec(counts, start, shape)
    if "n" in plain:
        return DiscreteSpec(int(plain["n"]), int(plain["start"]))
    if "size" in plain:
        return MaskSpec(int(plain["size"]))
    low, high = (tuple(map(float, plain[bound])) for bound in ("low", "high"))
    return BoxSpec(tuple(plain["shape"]), str(plain["dtype"]), low, high)
