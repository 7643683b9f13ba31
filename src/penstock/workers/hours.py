"""Where a sampler's time goes. It counts a moment once, however many of the sampler's blocks are at work in it.

    idle          no block has a segment to fill
    inference     a forward pass is being computed here
    environment   not so, and environments of some block are at work
    inference     nor that, and the inference server has been asked something
    the rest      rows are copied, messages read

Knows no block and no message: whoever does something says when it begins and when it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Spent:
    """Seconds since the last account was given. `cpu_s`: a processor was at work for this process."""

    environment_s: float = 0.0
    inference_s: float = 0.0
    idle_s: float = 0.0
    elapsed_s: float = 0.0
    cpu_s: float = 0.0


class Hours:
    """The book of one sampler."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, cpu_clock: Callable[[], float] = time.process_time
    ) -> None:
        self._clock, self._cpu_clock = clock, cpu_clock
        self._segments = 0
        self._stepping = 0
        self._asking = 0
        self._acting = False
        self._spent = Spent()
        self._since, self._cpu_since = clock(), cpu_clock()

    def begin_segment(self) -> None:
        self._turn_page()
        self._segments += 1

    def end_segment(self) -> None:
        self._turn_page()
        self._segments -= 1

    def begin_acting(self) -> None:
        self._turn_page()
        self._acting = True

    def end_acting(self) -> None:
        self._turn_page()
        self._acting = False

    def begin_asking(self) -> None:
        self._turn_page()
        self._asking += 1

    def end_asking(self) -> None:
        self._turn_page()
        self._asking -= 1

    def begin_stepping(self) -> None:
        self._turn_page()
        self._stepping += 1

    def end_stepping(self) -> None:
        self._turn_page()
        self._stepping -= 1

    def account(self) -> Spent:
        """What was spent since this was last asked."""
        self._turn_page()
        now = self._cpu_clock()
        spent, self._spent = self._spent, Spent()
        spent.cpu_s, self._cpu_since = now - self._cpu_since, now
        return spent

    def _turn_page(self) -> None:
        """Book the time since the last change under what was going on until now."""
        now = self._clock()
        took, self._since = now - self._since, now
        spent = self._spent
        spent.elapsed_s += took
        if self._acting:
            spent.inference_s += took
        elif self._stepping:
            spent.environment_s += took
        elif self._asking:
            spent.inference_s += took
        elif not self._segments:
            spent.idle_s += took
