"""How long simulated steps take. Drawn by (seed, block, segment), so a run is the same whatever the order of events."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

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


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The shape of a segment and the time that its steps take."""

    steps: int = 16
    """T"""
    lanes: int = 4
    """B"""
    draw: Draw = field(default_factory=lambda: exponential(0.01))
    seed: int = 0

    def begin(self, block: int, segment: int, now_s: float) -> Underway:
        """A segment that starts now."""
        seconds = self.draw(stream(self.seed, Purpose.DELAY, block, segment), block, self.steps)
        return Underway(block, [now_s + s for s in accumulate(seconds.tolist())])


@dataclass
class Underway:
    """A segment that is being run: the moments at which its steps are done."""

    block: int
    moments_s: list[float]

    @property
    def steps(self) -> int:
        return len(self.moments_s)

    @property
    def end_s(self) -> float:
        return self.moments_s[-1]

    def cut(self, now_s: float) -> None:
        """End with the step that is under way; at least one is taken."""
        del self.moments_s[bisect.bisect_left(self.moments_s, now_s) + 1 :]

    def step_end_s(self, now_s: float) -> float:
        """When the step that is under way now will be done."""
        return self.moments_s[min(bisect.bisect_left(self.moments_s, now_s), self.steps - 1)]
