"""Actors of exactly the versions that are asked for, and what acts for one segment. The same in every placement.

Knows no block's state and no message. Sampler and inference server act through these two classes and nothing else, so that
where a policy acts cannot be seen in what it does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.core.protocols import Acted, Actor
from penstock.core.seeds import Purpose, stream
from penstock.core.specs import Array
from penstock.weights.board import Board

Step = int | Array
"""The row that all lanes of a block are at, or the row that each of them is at, [B]."""


class Actors:
    """One actor for each version in use; actors of versions that no block needs any more are used again."""

    def __init__(self, board: Board, build: Callable[[], Actor], *, num_weights: int, num_statistics: int) -> None:
        self._board, self._build = board, build
        self._weights = np.zeros(num_weights, np.float32)
        self._statistics = np.zeros(num_statistics, np.float64)
        self._held: dict[int, Actor] = {}
        self._spare: list[Actor] = []

    def of_version(self, version: int, in_use: set[int]) -> Actor:
        """The actor of exactly this version; what is not in `in_use` may be recycled for it."""
        if version not in self._held:
            for old in [v for v in self._held if v not in in_use]:
                self._spare.append(self._held.pop(old))
            self._board.load(version, self._weights, self._statistics)
            actor = self._spare.pop() if self._spare else self._build()
            actor.load(self._weights, self._statistics)
            self._held[version] = actor
        return self._held[version]


class SegmentActor:
    """Acts for one segment. Its numbers are drawn now, by (block, segment), so they belong to (lane, step)."""

    def __init__(self, actor: Actor, *, seed: int, block: int, segment: int, steps: int, lanes: int) -> None:
        self._actor = actor
        self._noise = actor.noise(stream(seed, Purpose.ACTION, block, segment), steps, lanes)
        self._last, self._lanes = steps - 1, np.arange(lanes)

    def act(self, observation: Array, step: Step) -> Acted:
        """One forward at the block's full shape. Lanes that are done or not ready are carried along, and ignored."""
        if isinstance(step, int):
            noise = self._noise[step]
        else:
            noise = self._noise[np.minimum(step, self._last), self._lanes]
        return self._actor.act(observation, noise)

    def value(self, observation: Array) -> Array:
        """The value of each row, [B]."""
        return self._actor.value(observation)
