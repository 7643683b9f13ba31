"""How long steps take where time is only counted. Knows no law and no process.

Pace     lanes that step together; drawn by (seed, block, segment), so a run is the same whatever the order of events
Streams  lanes that drift, each with a stream of delays of its own, which goes on where the segment before was cut
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Protocol

import numpy as np

from penstock.core.seeds import Purpose, stream

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
"""(generator, block, number of steps) to the seconds of each of these steps of the block."""


def even(step_s: float) -> Draw:
    """Every step takes the same."""
    return lambda _, __, steps: np.full(steps, step_s)


def exponential(step_s: float) -> Draw:
    """Steps as uneven as those of environments that wait for a network."""
    return lambda generator, _, steps: generator.exponential(step_s, steps)


def slowed(draw: Draw, factors: dict[int, float]) -> Draw:
    """The same with some blocks slower by a factor."""
    return lambda generator, block, steps: draw(generator, block, steps) * factors.get(block, 1.0)


class Begins(Protocol):
    """Whatever says how long the segments of blocks take."""

    def begin(self, block: int, segment: int, now_s: float) -> Underway:
        """A segment that starts now."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The shape of a segment whose lanes step together, and the time that its steps take."""

    steps: int = 16
    """T"""
    lanes: int = 4
    """B"""
    draw: Draw = field(default_factory=lambda: exponential(0.01))
    seed: int = 0

    def begin(self, block: int, segment: int, now_s: float) -> Underway:
        """A segment that starts now."""
        seconds = self.draw(stream(self.seed, Purpose.DELAY, block, segment), block, self.steps)
        return Underway(block, [_moments(now_s, seconds.tolist())], abreast=self.lanes)


class Streams:
    """Lanes that drift: block b has the lanes b*B .. b*B + B - 1, and each takes its own delays one after the other."""

    def __init__(self, delays_s: Sequence[Iterator[float]], *, lanes_per_block: int, steps: int) -> None:
        self._steps, self._lanes_per_block = steps, lanes_per_block
        self._delays_s = list(delays_s)
        self._left_s: list[list[float]] = [[] for _ in delays_s]  # drawn for a segment that was cut before them
        self._drawn_s: list[list[float]] = [[] for _ in delays_s]  # drawn for the segment that began last
        self._last: dict[int, Underway] = {}

    def begin(self, block: int, segment: int, now_s: float) -> Underway:
        """A segment that starts now; the block's last one is over, and what it did not use comes first."""
        del segment
        lanes = range(block * self._lanes_per_block, (block + 1) * self._lanes_per_block)
        if block in self._last:
            for lane, moments in zip(lanes, self._last[block].moments_s, strict=True):
                self._left_s[lane] = self._drawn_s[lane][len(moments) :]
        self._last[block] = Underway(block, [_moments(now_s, self._draw(lane)) for lane in lanes])
        return self._last[block]

    def _draw(self, lane: int) -> list[float]:
        left = self._left_s[lane]
        self._drawn_s[lane] = left + list(islice(self._delays_s[lane], self._steps - len(left)))
        return self._drawn_s[lane]


def _moments(now_s: float, seconds: Sequence[float]) -> list[float]:
    return [now_s + s for s in accumulate(seconds)]


@dataclass
class Underway:
    """A segment that is being run: the moments at which its steps are done, for each lane or group that goes its own way."""

    block: int
    moments_s: list[list[float]]
    abreast: int = 1
    """Lanes that go each of these ways together."""

    @property
    def steps(self) -> int:
        return max(map(len, self.moments_s))

    @property
    def rows(self) -> int:
        return self.abreast * sum(map(len, self.moments_s))

    @property
    def end_s(self) -> float:
        return max(moments[-1] for moments in self.moments_s)

    def cut(self, now_s: float) -> None:
        """End with the steps that are under way; at least one is taken."""
        for moments in self.moments_s:
            del moments[bisect.bisect_left(moments, now_s) + 1 :]

    def step_end_s(self, now_s: float) -> float:
        """When the steps that are under way now will be done."""
        return max(moments[min(bisect.bisect_left(moments, now_s), len(moments) - 1)] for moments in self.moments_s)
