"""What an environment looks like from outside, in plain data that travels between processes and into files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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


@dataclass(frozen=True)
class DiscreteSpec:
    """One of `n` whole numbers, the first of which is `start`. Slots hold the number less `start`."""

    n: int
    start: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = "int64"


ObservationSpec = BoxSpec | DiscreteSpec
ActionSpec = BoxSpec | DiscreteSpec


@dataclass(frozen=True)
class EnvironmentSpec:
    """One lane: what goes in, what comes out, when it ends, what counts as solved."""

    id: str
    observation: ObservationSpec
    action: ActionSpec
    max_episode_steps: int | None = None
    reward_threshold: float | None = None
    frame_skip: int = 1


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
    plain = asdict(spec)
    for side in ("observation", "action"):
        for bound in ("low", "high"):
            if bound in plain[side]:
                plain[side][bound] = [x if math.isfinite(x) else str(x) for x in map(float, plain[side][bound])]
    return plain


def from_plain(plain: Mapping[str, Any]) -> EnvironmentSpec:
    """The spec that `to_plain` wrote."""
    sides = {side: _space_of(plain[side]) for side in ("observation", "action")}
    return EnvironmentSpec(**{**plain, **sides})


def _space_of(plain: Mapping[str, Any]) -> BoxSpec | DiscreteSpec:
    if "n" in plain:
        return DiscreteSpec(int(plain["n"]), int(plain["start"]))
    low, high = (tuple(map(float, plain[bound])) for bound in ("low", "high"))
    return BoxSpec(tuple(plain["shape"]), str(plain["dtype"]), low, high)
