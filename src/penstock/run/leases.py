"""Leases: until when something must have happened. Knows no clock; the supervisor asks with the time in its hand."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass

SLACK = 64
"""Entries that no longer count and are kept, beside as many as there are leases."""


@dataclass(frozen=True)
class Opening:
    """A worker is to open what it works with: the learner its network, a sampler its blocks."""

    worker: int


@dataclass(frozen=True)
class Running:
    """A segment is to be completed."""

    segment: int


@dataclass(frozen=True)
class LettingGo:
    """A worker is to let go of a segment that was written off."""

    segment: int
    worker: int


@dataclass(frozen=True)
class Training:
    """The learner is to finish an update."""

    worker: int


@dataclass(frozen=True)
class Answering:
    """The inference server is to show that it answers at all."""

    worker: int


Lease = Opening | Running | LettingGo | Training | Answering
"""Everything that a run has a lease on."""


class Leases:
    """Ends by key, soonest first. What was given back, or given anew, no longer counts under its old end."""

    def __init__(self) -> None:
        self._ends: dict[Hashable, float] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        self._num_given = 0

    def give(self, key: Hashable, end_s: float) -> None:
        """From now on `key` must be given back before `end_s`."""
        self._ends[key] = end_s
        self._num_given += 1  # keys need not be comparable: the older lease comes first
        heapq.heappush(self._heap, (end_s, self._num_given, key))
        if len(self._heap) > 2 * len(self._ends) + SLACK:
            self._forget_what_no_longer_counts()

    def __len__(self) -> int:
        """Entries kept, those that no longer count included."""
        return len(self._heap)

    def _forget_what_no_longer_counts(self) -> None:
        """A lease that lasts long hides those behind it that were given back meanwhile."""
        self._heap = [entry for entry in self._heap if self._ends.get(entry[2]) == entry[0]]
        heapq.heapify(self._heap)

    def take_back(self, key: Hashable) -> None:
        """It has happened."""
        self._ends.pop(key, None)

    @property
    def next_end_s(self) -> float | None:
        """When the next lease ends."""
        while self._heap and self._ends.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expired(self, now_s: float) -> list[Hashable]:
        """Keys whose leases are over; they are no longer held."""
        found: list[Hashable] = []
        while (end_s := self.next_end_s) is not None and end_s <= now_s:
            key = heapq.heappop(self._heap)[2]
            del self._ends[key]
            found.append(key)
        return found
