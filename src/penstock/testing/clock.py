"""A clock that jumps: hours pass in no time, and tests of timeouts are exact. It does not know who waits on it."""

from __future__ import annotations


class JumpingClock:
    """Simulated seconds since 0. They pass only when somebody lets them."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now(self) -> float:
        return self._now_s

    def jump_to(self, moment_s: float) -> None:
        """Time never runs backwards: an earlier moment changes nothing."""
        self._now_s = max(self._now_s, moment_s)
