"""A ring of K + 2 places, one version each.

Version b lies in place b mod (K + 2). Publishing v overwrites version v - K - 2, which nobody may act with any more: a live
segment of version b is trained at b + K at the latest, so while v - 1 is being trained every live segment has b >= v - 1 - K.
A reader that has outlived its segment is caught by the sequence number: odd while a place is being written, and different
after reading from before if it was rewritten meanwhile.
"""

from __future__ import annotations

import numpy as np

from penstock.core.errors import RunFailed
from penstock.core.specs import Array
from penstock.memory.arena import Arena
from penstock.memory.layout import Field, Layout


class TornRead(RunFailed):
    """A version was asked for that is not on the board, or went while it was being read."""


def _layout(num_weights: int, num_statistics: int) -> Layout:
    return Layout.of(
        [
            Field("sequence", (8,), "int64"),  # [0]: twice the number of writes, odd during one; a line of its own
            Field("version", (8,), "int64"),
            Field("weights", (num_weights,), "float32"),
            Field("statistics", (num_statistics,), "float64"),
        ]
    )


class Board:
    """`places` versions of `num_weights` float32 weights and `num_statistics` float64 normaliser statistics."""

    def __init__(self, arena: Arena, *, num_weights: int, num_statistics: int, places: int) -> None:
        self.arena = arena
        self.places = places
        views = _layout(num_weights, num_statistics).views(arena.memory, places)
        self._sequence, self._version = views["sequence"], views["version"]
        self._weights, self._statistics = views["weights"], views["statistics"]

    @classmethod
    def create(cls, *, num_weights: int, num_statistics: int, staleness: int) -> Board:
        """An empty board for a run with this staleness bound."""
        places = staleness + 2
        arena = Arena.create("weights", _layout(num_weights, num_statistics).total_bytes(places))
        board = cls(arena, num_weights=num_weights, num_statistics=num_statistics, places=places)
        board._version[:] = -1
        return board

    @classmethod
    def attach(cls, fd: int, *, num_weights: int, num_statistics: int, places: int) -> Board:
        """The board behind a descriptor that the learner made."""
        arena = Arena(fd, Arena.size_of(_layout(num_weights, num_statistics).total_bytes(places)))
        return cls(arena, num_weights=num_weights, num_statistics=num_statistics, places=places)

    def publish(self, version: int, weights: Array, statistics: Array) -> None:
        """Put a version on the board. One writer only; nobody is waited for."""
        place = version % self.places
        self._sequence[place, 0] += 1
        self._version[place, 0] = version
        np.copyto(self._weights[place], weights)
        np.copyto(self._statistics[place], statistics)
        self._sequence[place, 0] += 1

    def load(self, version: int, weights: Array, statistics: Array) -> None:
        """Copy a version into these arrays; raises TornRead if it is not there whole."""
        place = version % self.places
        before = int(self._sequence[place, 0])
        np.copyto(weights, self._weights[place])
        np.copyto(statistics, self._statistics[place])
        after = int(self._sequence[place, 0])
        if before % 2 or before != after or self._version[place, 0] != version:
            raise TornRead(
                f"weights of version {version} are not on the board (place {place} holds {self._version[place, 0]}); "
                "this is a bug in Penstock: please report it with the run's journal.jsonl"
            )
