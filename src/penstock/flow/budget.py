"""The budget of a pinned run, as the law sees it: how many rounds it certainly needs. Knows no block and no version.

A round brings `round_rows` decisions at most, less those rows that turn out to be resets. So rounds 0 .. r - 1 bring at most
r * round_rows - masked, where masked counts what is known to be missing by now; round r is certain once that is too little:

    r * round_rows - masked < rows

`masked` only grows, so what is certain stays so; and once all of rounds 0 .. r - 1 is done the left side is what they brought.
So which rounds become certain in the end is a function of what the rounds hold, whenever that becomes known.
"""

from __future__ import annotations


class Budget:
    """A run of `rows` decisions, in rounds of `round_rows` at most."""

    def __init__(self, rows: int, *, num_blocks: int, segment_rows: int) -> None:
        self._rows, self._segment_rows = rows, segment_rows
        self._round_rows = num_blocks * segment_rows
        self._masked = 0

    def segment_done(self, rows: int | None) -> None:
        """A segment brought so many decisions; None: all that it could."""
        if rows is not None:
            self._masked += self._segment_rows - rows

    def needs(self, round_: int) -> bool:
        """Whether the rounds before this one are certain not to suffice."""
        return round_ * self._round_rows - self._masked < self._rows
