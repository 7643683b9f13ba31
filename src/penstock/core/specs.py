"""What an environment looks like from outside, in plain data that travels between processes and into files."""

from __future__ import annotations

from dataclasses import dataclass
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
