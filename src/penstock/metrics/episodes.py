"""The returns of the last hundred training episodes. Knows numbers only, not where episodes come from or when they count."""

from __future__ import annotations

import math
from collections import deque

WINDOW = 100


class ReturnWindow:
    """Mean and spread over the last `WINDOW` finished episodes, and the count of all."""

    def __init__(self) -> None:
        self.episodes = 0
        self._returns: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[int] = deque(maxlen=WINDOW)

    def add(self, episode_return: float, length: int) -> None:
        """One more episode, raw return, in the order in which episodes count."""
        self.episodes += 1
        self._returns.append(float(episode_return))
        self._lengths.append(int(length))

    @property
    def full(self) -> bool:
        """Whether a target return may be judged: a mean of three lucky episodes is not a result."""
        return len(self._returns) == WINDOW

    @property
    def mean(self) -> float | None:
        return math.fsum(self._returns) / len(self._returns) if self._returns else None

    @property
    def std(self) -> float | None:
        """Standard deviation of the window itself (divided by n), as NumPy's default."""
        mean = self.mean
        if mean is None:
            return None
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self._returns) / len(self._returns))

    @property
    def last(self) -> float | None:
        return self._returns[-1] if self._returns else None

    @property
    def length_mean(self) -> float | None:
        return sum(self._lengths) / len(self._lengths) if self._lengths else None

    def reached(self, target: float | None) -> bool:
        """Whether the mean over a full window is at the target or above."""
        mean = self.mean
        return target is not None and mean is not None and self.full and mean >= target
